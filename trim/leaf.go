package trim

import "github.com/tidemark-ai/tidemark/internal/calls"

// maxCopy bounds the copies of a result that stay, when their long strings are cut.
const maxCopy = 64 << 10

// copies scans a member that the API never gets: the copy of a result for the screen, or what progress carries.
func (p *parser) copies(s *scan, m *member, which part) bool {
	start := m.start
	p.put(op{kind: opOpen, what: byte(which)})
	p.saved = 0
	before := p.cutLeaves
	if !p.leaves(s, formCopy, 0) {
		return false
	}
	p.put(op{kind: opClose})
	at := span{start, s.pos()}
	if p.cutLeaves > before {
		p.copied |= 1 << which
	}
	if at.size()-p.saved > maxCopy {
		p.whole[which] = at
	}
	return true
}

// stubBytes is more than a note of a cut string takes: what is left of a copy is never taken for less than it will be, so
// that a second trim finds nothing to cut.
const stubBytes = 64

// leaves scans a value and cuts the long strings in it.
func (p *parser) leaves(s *scan, f form, limit int64) bool {
	switch s.space() {
	case '"':
		v := value{span: span{from: s.pos()}, kind: '"'}
		s.i++
		s.escaped, s.bits = 0, 0
		if !s.str() {
			return false
		}
		v.to = s.pos()
		v.count(s)
		p.leaf(v, f, max(limit, p.threshold))
		return true
	case '[', '{':
	default:
		return s.value()
	}
	if !s.open() {
		return false
	}
	m := member{first: true}
	for s.next(&m) {
		limit := int64(0)
		if f == formInput && calls.Tells(m.name) {
			limit = 10 * p.threshold
			if len(s.stack) == 1 {
				limit = 1 << 62
			}
		}
		var ok bool
		if m.kind == '"' || m.kind == '[' || m.kind == '{' {
			ok = p.leaves(s, f, limit)
		} else {
			ok = s.value()
		}
		if !ok {
			m.ok = false
			return false
		}
	}
	return m.ok
}

// leaf cuts a string that is longer than a limit. A copy gets no handle: nobody reads the note but a person who looks
// at the screen, and hashing copies would take as long as all else.
func (p *parser) leaf(v value, f form, limit int64) {
	if v.size()-2 <= limit || p.note(v) {
		return
	}
	n := p.textOf(v)
	if n <= limit {
		return
	}
	o := op{kind: opStub, what: byte(f), span: v.span, n: n}
	if f == formInput {
		o.chars, o.handle = n, p.named(v.span, n)
		p.cutInputs++
	} else {
		p.cutLeaves++
		p.saved += v.size() - stubBytes
	}
	p.put(o)
}

// attached scans what was attached to a message, from which blocks with pictures go. Its other parts are told to the
// model in ways of which only their writer knows, so they stay.
func (p *parser) attached(s *scan, element bool) bool {
	c := s.space()
	if c != '[' && c != '{' {
		return s.value()
	}
	at := span{from: s.pos()}
	if !s.open() {
		return false
	}
	var b blockFields
	m := member{first: true}
	for s.next(&m) {
		var ok bool
		name := string(m.name)
		if c == '[' || m.kind == '[' || m.kind == '{' && name != "source" {
			ok = p.attached(s, c == '[')
		} else {
			if name == "source" {
				ok = p.sourceOf(s, &m, &b.source)
			} else {
				var v value
				if v, ok = p.skip(s, &m); name == "type" {
					b.typ = v
				}
			}
		}
		if !ok {
			return false
		}
	}
	if !m.ok || !element || c != '{' || p.last > at.from {
		return m.ok
	}
	at.to = s.pos()
	if t := string(p.word(b.typ)); t == "image" || t == "document" {
		if pic, ok := p.picture(at, &b); ok {
			p.putPicture(pic)
		}
	}
	return true
}
