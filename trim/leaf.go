package trim

import (
	"github.com/tidemark-ai/tidemark/internal/calls"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// maxCopy bounds the copies of a result that stay, when their long strings are cut.
const maxCopy = 64 << 10

// copies scans a member that the API never gets: the copy of a result for the screen, or what progress carries.
func (p *parser) copies(s *jsonscan.Scanner, m *jsonscan.Member, which part) bool {
	start := m.Start
	p.put(op{kind: opOpen, part: which})
	p.saved = 0
	before := p.cutLeaves
	if !p.leaves(s, formCopy, p.threshold) {
		return false
	}
	p.put(op{kind: opClose})
	at := span{start, s.Pos()}
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

// leaves scans a value and cuts the long strings in it; of a value that is a string, limit says what is long.
func (p *parser) leaves(s *jsonscan.Scanner, f form, limit int64) bool {
	switch s.Space() {
	case '"':
		v := value{span: span{from: s.Pos()}, kind: '"'}
		if !s.String() {
			return false
		}
		v.to = s.Pos()
		p.leaf(v, f, limit)
		return true
	case '[', '{':
	default:
		return s.Value()
	}
	if !s.Open() {
		return false
	}
	var m jsonscan.Member
	for s.Next(&m) {
		limit := p.threshold
		if f == formInput {
			limit = int64(calls.Most(nameOf(&m), s.Depth(), int(p.threshold)))
		}
		var ok bool
		if m.Kind == '"' || m.Kind == '[' || m.Kind == '{' {
			ok = p.leaves(s, f, limit)
		} else {
			ok = s.Value()
		}
		if !ok {
			return false
		}
	}
	return s.Err == nil
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
	o := op{kind: opStub, form: f, span: v.span, n: n}
	if f == formInput {
		o.chars = n
		p.cutInputs++
	} else {
		p.cutLeaves++
		p.saved += v.size() - stubBytes
	}
	p.put(o)
}

// attached scans what was attached to a message, from which blocks with pictures go. Its other parts are told to the
// model in ways of which only their writer knows, so they stay.
func (p *parser) attached(s *jsonscan.Scanner, element bool) bool {
	c := s.Space()
	if c != '[' && c != '{' {
		return s.Value()
	}
	at, before := span{from: s.Pos()}, len(p.ops)
	if !s.Open() {
		return false
	}
	var b blockFields
	var m jsonscan.Member
	for s.Next(&m) {
		var ok bool
		name := string(nameOf(&m))
		if c == '[' || m.Kind == '[' || m.Kind == '{' && name != "source" {
			ok = p.attached(s, c == '[')
		} else {
			if name == "source" {
				ok = p.sourceOf(s, &m, &b.source)
			} else {
				var v value
				if v, ok = p.skip(s, &m, nil); name == "type" {
					b.typ = v
				}
			}
		}
		if !ok {
			return false
		}
	}
	at.to = s.Pos()
	if t := string(p.word(b.typ)); element && s.Err == nil && (t == "image" || t == "document") {
		if pic, ok := p.picture(at, &b); ok {
			p.ops = p.ops[:before] // what stands in it goes with it
			p.putPicture(pic)
		}
	}
	return s.Err == nil
}
