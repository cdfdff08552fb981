package trim

import (
	"slices"

	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// parser makes the ops of lines.
type parser struct {
	source
	threshold int64
	main      jsonscan.Scanner // of the line
	sub       jsonscan.Scanner // of a part of it that is scanned once more
	ops       []op
	h         head
	unread    int64 // the number of the last line that was not read
	m         Metrics
	pictures  []picture
	stay      bool // in the list of content at hand, elements that stay have begun
	inLine

	cutInputs, cutLeaves int64 // strings, in all
	imagesIn             int64 // pictures that went with the results they were in
	saved                int64 // bytes, of the copy at hand
}

// inLine is what is noted of the line at hand.
type inLine struct {
	lists  int  // of content
	copied byte // bits of the parts in which something was cut
	whole  [partList]span
}

func (p *parser) put(o op) { p.ops = append(p.ops, o) }

// fields is what the members of a line and of its message say, while it is read.
type fields struct {
	typ, subtype, uuid, role, agent value
	inner, mid                      value // the message's role and id
	side, meta, leaf                value
	message, content, top           value
	preserved                       value
}

// value is a value of the line, kind 0 for none.
type value struct {
	span
	kind byte
	list part // of content that is a list
}

// parse makes the ops of a line, and reports whether it is JSON that was read: a piece of a long line is not.
func (p *parser) parse(l jsonscan.Line) (f fields, ok bool) {
	p.data, p.base, p.ops = l.Raw, l.From, p.ops[:0]
	p.h = head{start: l.From, size: int64(len(l.Raw))}
	p.inLine = inLine{}
	if blank(l.Raw) {
		return f, false
	}
	old, images := p.m, p.imagesIn
	if !l.Long {
		p.main.Reset(l.Raw, l.From)
		if ok = p.object(&p.main, &f) && p.main.Space() == 0 && p.main.AtEnd(); ok {
			p.judge(&f)
			return f, true
		}
	}
	p.ops, p.m, p.imagesIn = p.ops[:0], old, images
	if l.Number != p.unread {
		p.m.LinesUnread, p.unread = p.m.LinesUnread+1, l.Number
	}
	return f, false
}

// object scans a line that is an object. Other values are lines that no rule knows.
func (p *parser) object(s *jsonscan.Scanner, f *fields) bool {
	if s.Space() != '{' {
		return s.Value()
	}
	if !s.Open() {
		return false
	}
	var m jsonscan.Member
	var gone removal
	for s.Next(&m) {
		gone.next(p, m)
		if !p.topMember(s, f, &m, &gone) {
			return false
		}
	}
	gone.end(p)
	return s.Err == nil
}

func (p *parser) topMember(s *jsonscan.Scanner, f *fields, m *jsonscan.Member, gone *removal) bool {
	name := nameOf(m)
	switch string(name) {
	case "message":
		return p.message(s, f, m)
	case "content":
		return p.list(s, m, &f.top)
	case "toolUseResult":
		return p.copies(s, m, partCopy)
	case "data":
		return p.copies(s, m, partData)
	case "attachment":
		return p.attached(s, false)
	}
	to, link := (*value)(nil), link(0)
	switch string(name) {
	case "type":
		to = &f.typ
	case "subtype":
		to = &f.subtype
	case "uuid":
		to = &f.uuid
	case "role":
		to = &f.role
	case "agentId":
		to = &f.agent
	case "isSidechain":
		to = &f.side
	case "isMeta":
		to = &f.meta
	case "compactMetadata":
		to = &f.preserved
	case "parentUuid":
		link = linkParent
	case "logicalParentUuid":
		link = linkLogical
	case "sourceToolAssistantUUID":
		link = linkSource
	case "leafUuid":
		link, to = linkLeaf, &f.leaf
	}
	usage := string(name) == "usage"
	v, ok := p.skip(s, m, to)
	if !ok {
		return false
	}
	if link != 0 {
		p.link(link, v)
	}
	if usage {
		gone.take(p, m, v)
	}
	return true
}

// skip scans a value and says where it is, to its caller and, unless that is nil, in to.
func (p *parser) skip(s *jsonscan.Scanner, m *jsonscan.Member, to *value) (value, bool) {
	v := value{span: span{from: m.Start}, kind: m.Kind}
	if !s.Value() {
		return v, false
	}
	v.to = s.Pos()
	if to != nil {
		*to = v
	}
	return v, true
}

// link notes a field that names another line. Values that cannot be a name are taken for one that no line has.
func (p *parser) link(l link, v value) {
	o := op{kind: opLink, link: l, span: v.span}
	switch v.kind {
	case '"':
		if o.hash = p.id(v.span); o.hash == 0 {
			return
		}
	case 'n', 'f':
		return
	default:
		if l != linkParent {
			return
		}
	}
	p.put(o)
}

// message scans the member that holds the message.
func (p *parser) message(s *jsonscan.Scanner, f *fields, m *jsonscan.Member) bool {
	f.message = value{kind: m.Kind}
	f.inner, f.mid, f.content = value{}, value{}, value{}
	if m.Kind != '{' {
		return s.Value()
	}
	if !s.Open() {
		return false
	}
	var in jsonscan.Member
	var gone removal
	for s.Next(&in) {
		gone.next(p, in)
		name := nameOf(&in)
		if string(name) == "content" {
			if !p.list(s, &in, &f.content) {
				return false
			}
			continue
		}
		to := (*value)(nil)
		switch string(name) {
		case "role":
			to = &f.inner
		case "id":
			to = &f.mid
		}
		usage := string(name) == "usage"
		v, ok := p.skip(s, &in, to)
		if !ok {
			return false
		}
		if usage {
			gone.take(p, &in, v)
		}
	}
	gone.end(p)
	return s.Err == nil
}

// removal takes members out of an object, each with the one comma that goes with it.
type removal struct {
	kept    bool // a member before stays
	open    bool // a member goes whose end is where the next begins
	removed bool // the present member is taken out
	seen    bool
	cut     span
}

// next is told each member when it begins.
func (g *removal) next(p *parser, m jsonscan.Member) {
	if g.open {
		p.put(op{kind: opCut, span: span{g.cut.from, m.At}})
		g.open = false
	}
	if g.seen && !g.removed {
		g.kept = true
	}
	g.seen, g.removed = true, false
}

// take takes the present member out, whose value was scanned.
func (g *removal) take(p *parser, m *jsonscan.Member, v value) {
	g.removed = true
	if g.kept {
		p.put(op{kind: opCut, span: span{m.Prev, v.to}})
		return
	}
	g.cut, g.open = span{m.At, v.to}, true
}

// end is told when the object closed.
func (g *removal) end(p *parser) {
	if g.open {
		p.put(op{kind: opCut, span: g.cut})
	}
}

// list scans content: a list of blocks, or something else. Of several the last counts, as of all equal keys.
func (p *parser) list(s *jsonscan.Scanner, m *jsonscan.Member, to *value) bool {
	start, kind := m.Start, m.Kind
	if kind != '[' {
		_, ok := p.skip(s, m, to)
		return ok
	}
	which := partList + part(p.lists)
	p.lists = min(p.lists+1, maxLists)
	p.put(op{kind: opOpen, part: which})
	p.stay = false
	if !s.Open() {
		return false
	}
	var el jsonscan.Member
	for s.Next(&el) {
		if !p.element(s, &el) {
			return false
		}
	}
	p.put(op{kind: opClose})
	*to = value{span: span{start, s.Pos()}, kind: kind, list: which}
	return s.Err == nil
}

// maxLists bounds the lists of content in one line that are told apart.
const maxLists = 200

var notMessages = []string{"system", "summary", "progress", "attachment", "queue-operation", "file-history-snapshot"}

// judge says what the line is, when all of it was read.
func (p *parser) judge(f *fields) {
	h := &p.h
	typ := string(p.word(f.typ))
	switch typ {
	case "file-history-snapshot":
		h.flags |= isHistory
		p.m.FileHistoryRemoved++
		return
	case "queue-operation":
		h.flags |= isQueue
		p.m.QueueOperationsRemoved++
		return
	case "progress":
		h.flags |= isProgress
	}
	p.judgeCopies()
	if f.uuid.kind == '"' {
		h.uuid = p.id(f.uuid.span)
	}
	content := f.content
	if f.message.kind != '{' || content.kind == 0 || content.kind == 'n' {
		content = f.top
	}
	h.list = content.list
	role := p.role(f, typ)
	switch role {
	case "user":
		p.m.UserMessages++
	case "assistant":
		p.m.AssistantResponses++
	}
	if (role != "user" && role != "assistant") || slices.Contains(notMessages, typ) {
		return
	}
	h.flags |= isMessage
	if truthy(p, f.side) {
		h.flags |= isSide
		if f.agent.kind == '"' {
			h.agent = p.id(f.agent.span)
		}
	}
	if truthy(p, f.meta) {
		h.flags |= isMeta
	}
	if role == "assistant" {
		h.flags |= isAssistant
		if f.mid.kind == '"' {
			h.id = p.id(f.mid.span)
		}
	}
	if content.kind == '"' && !content.empty() {
		h.flags |= hasString
		h.chars = p.textOf(content)
	}
}

// judgeCopies says whether the copies in the line are replaced as a whole.
func (p *parser) judgeCopies() {
	which := partCopy
	if p.h.flags&isProgress != 0 {
		which = partData
	}
	if at := p.whole[which]; at.size() > 0 {
		p.h.flags |= hasWhole
		p.h.whole = at
	}
	if p.h.flags&hasWhole != 0 || p.copied>>partCopy&1 != 0 || p.copied>>which&1 != 0 {
		p.m.CopiesStubbed++
	}
}

// word returns the text of a short string.
func (p *parser) word(v value) []byte {
	if v.kind != '"' {
		return nil
	}
	return p.str(v.span)
}

// role is who speaks: what the message says, else the line, else its type.
func (p *parser) role(f *fields, typ string) string {
	role := ""
	if f.message.kind == '{' {
		role = string(p.word(f.inner))
	}
	if role == "" {
		role = string(p.word(f.role))
	}
	if role == "" {
		role = typ
	}
	if role == "human" {
		return "user"
	}
	return role
}

// truthy is what other languages take for true.
func truthy(p *parser, v value) bool {
	switch v.kind {
	case 0, 'n', 'f':
		return false
	case '"', '[', '{':
		return v.size() > 2
	case '0':
		return v.size() > 1 && string(p.raw(v.span)) != "0.0"
	}
	return true
}
