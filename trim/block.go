package trim

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// blockFields is what the members of a block say, while it is read.
type blockFields struct {
	typ, id, name, input, content, callID, text, thinking, data value
	label                                                       value  // of an input, the member that says best what it is about
	source                                                      inner  // of a picture
	list                                                        listed // what content holds, when it is a list
}

// inner is the source of a picture.
type inner struct {
	kind             byte // 0 for none
	typ, media, data value
}

// listed is how large the content of a result is, pictures included, and how much of that is pictures; how many there
// are, and how large their files.
type listed struct{ chars, pictures, many, files int64 }

// element scans one block of content.
func (p *parser) element(s *jsonscan.Scanner, el *jsonscan.Member) bool {
	if el.Kind != '{' {
		p.stays(el.Start)
		return s.Value()
	}
	var b blockFields
	at := span{from: el.Start}
	prev := el.Prev
	if !p.block(s, &b, true) {
		return false
	}
	at.to = s.Pos()
	switch string(p.word(b.typ)) {
	case "text":
		if b.text.empty() {
			p.put(op{kind: opEmpty, span: at, prev: prev})
			break
		}
		p.stays(at.from)
		p.weigh(p.textOf(b.text))
	case "thinking":
		p.put(op{kind: opThink, span: at, prev: prev, chars: p.textOf(b.thinking)})
	case "redacted_thinking":
		p.put(op{kind: opThink, span: at, prev: prev, chars: p.textOf(b.data)})
	case "tool_result":
		p.result(at, prev, &b)
	case "tool_use":
		p.call(at, prev, &b)
	case "image", "document":
		p.stays(at.from)
		p.imageBlock(at, &b)
	default:
		p.stays(at.from)
	}
	return true
}

// block scans an object and notes what a block may consist of; of one in a message also what is in the content of a
// result and in the input of a call.
func (p *parser) block(s *jsonscan.Scanner, b *blockFields, outer bool) bool {
	if !s.Open() {
		return false
	}
	var m jsonscan.Member
	for s.Next(&m) {
		var to *value
		switch string(nameOf(&m)) {
		case "type":
			to = &b.typ
		case "id":
			to = &b.id
		case "name":
			to = &b.name
		case "input":
			to = &b.input
		case "content":
			to = &b.content
		case "tool_use_id":
			to = &b.callID
		case "text":
			to = &b.text
		case "thinking":
			to = &b.thinking
		case "data":
			to = &b.data
		case "source":
			if !p.sourceOf(s, &m, &b.source) {
				return false
			}
			continue
		}
		var ok bool
		switch {
		case outer && to == &b.content && m.Kind == '[':
			*to, ok = p.resultList(s, &m, &b.list)
		case outer && to == &b.input && m.Kind == '{':
			*to, ok = p.inputOf(s, &m, &b.label)
		default:
			_, ok = p.skip(s, &m, to)
		}
		if !ok {
			return false
		}
	}
	return s.Err == nil
}

// sourceOf scans the source of a picture.
func (p *parser) sourceOf(s *jsonscan.Scanner, of *jsonscan.Member, in *inner) bool {
	*in = inner{kind: of.Kind}
	if of.Kind != '{' {
		return s.Value()
	}
	if !s.Open() {
		return false
	}
	var m jsonscan.Member
	for s.Next(&m) {
		var to *value
		switch string(nameOf(&m)) {
		case "type":
			to = &in.typ
		case "media_type":
			to = &in.media
		case "data":
			to = &in.data
		}
		if _, ok := p.skip(s, &m, to); !ok {
			return false
		}
	}
	return s.Err == nil
}

// inputOf scans the input of a call, and finds what says best what that is about.
func (p *parser) inputOf(s *jsonscan.Scanner, of *jsonscan.Member, best *value) (value, bool) {
	v := value{span: span{from: of.Start}, kind: of.Kind}
	*best = value{}
	if !s.Open() {
		return v, false
	}
	rank := len(labelKeys)
	var m jsonscan.Member
	for s.Next(&m) {
		r := slices.Index(labelKeys[:rank], string(nameOf(&m)))
		if !s.Value() {
			return v, false
		}
		if at := (span{m.Start, s.Pos()}); r >= 0 && m.Kind == '"' && at.size() > 2 {
			rank, *best = r, value{span: at, kind: m.Kind}
		}
	}
	v.to = s.Pos()
	return v, s.Err == nil
}

// stays notes that an element stays in any case.
func (p *parser) stays(at int64) {
	if !p.stay {
		p.stay = true
		p.put(op{kind: opKept, span: span{at, at}})
	}
}

// weigh adds to what stays in the conversation in any case.
func (p *parser) weigh(chars int64) { p.h.chars += chars }

// textOf counts the units of a string.
func (p *parser) textOf(v value) int64 {
	if v.kind != '"' {
		return 0
	}
	return int64(tidemark.UTF16LenJSON(p.raw(span{v.from + 1, v.to - 1})))
}

// empty reports an empty string, which the API refuses as text. White space alone stays: the model writes it between its
// thinking and a call, and who sends it knows what becomes of it.
func (v value) empty() bool { return v.kind == '"' && v.size() == 2 }

// noteChars bounds the notes that a trim leaves, which it knows again.
const noteChars = 700 + maxNamed

// note reports whether a string is what a trim left in the place of something.
func (p *parser) note(v value) bool {
	if v.size() > noteChars {
		return false
	}
	raw := p.raw(v.span)
	return bytes.HasPrefix(raw, []byte(`"[Trimmed: ~`)) || bytes.HasPrefix(raw, []byte(`"[Image removed: `)) ||
		bytes.HasPrefix(raw, []byte(`"[Document removed: `))
}

// call plans a block that calls a tool.
func (p *parser) call(at span, prev int64, b *blockFields) {
	o := op{kind: opCall, span: at, prev: prev, id: span{at.from, at.from}}
	if b.id.kind == '"' && b.id.size() <= maxText {
		o.hash, o.id = p.id(b.id.span), b.id.span
	}
	p.m.ToolUseRequests++
	if o.chars = int64(len(`{}`)); b.input.kind != 0 {
		o.chars = int64(tidemark.UTF16LenJSON(p.raw(b.input.span)))
	}
	o.label = p.label(b)
	p.put(o)
	if b.input.kind == '{' && b.input.size() > p.threshold {
		before := p.cutInputs
		p.sub.Reset(p.raw(b.input.span), b.input.from)
		p.leaves(&p.sub, formInput, p.threshold)
		if p.cutInputs > before {
			p.m.ToolUseInputsStubbed++
		}
	}
}

// Bounds of what a note says about a call, in bytes and characters.
const (
	maxTool  = 64
	maxLabel = 80
)

// labelKeys are the inputs that say best what a call was about; the first that is there is taken.
var labelKeys = []string{"file_path", "notebook_path", "path", "command", "pattern", "url", "query", "description", "skill"}

// label says what a call was: the tool, and the path or the beginning of the command.
func (p *parser) label(b *blockFields) []byte {
	out := clip(nil, p.word(b.name), maxTool)
	if v := b.label; b.input.kind == '{' && v.kind == '"' {
		if len(out) > 0 {
			out = append(out, ' ')
		}
		out = clip(out, jsonscan.Unquoted(p.raw(v.span)), maxLabel)
	}
	return out
}

// clip appends at most limit characters of text, and says when there were more.
func clip(dst, text []byte, limit int) []byte {
	for n := 0; len(text) > 0; n++ {
		if n == limit {
			return append(dst, "…"...)
		}
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size <= 1 {
			r = '?'
		}
		dst = utf8.AppendRune(dst, r)
		text = text[size:]
	}
	return dst
}

// maxPictures bounds the pictures of one result that get a note each; with more the result is cut as a whole.
const maxPictures = 1000

// result plans a block with the result of a call.
func (p *parser) result(at span, prev int64, b *blockFields) {
	o := op{kind: opResult, span: at, prev: prev}
	if b.callID.kind == '"' {
		o.hash = p.id(b.callID.span)
	}
	c := b.content
	switch c.kind {
	case '"':
		o.chars = p.textOf(c)
		p.put(o)
		if o.chars > p.threshold && !p.note(c) {
			p.put(op{kind: opStub, form: formResult, span: c.span, n: o.chars, chars: o.chars})
		}
	case '[':
		n := b.list.chars
		o.chars = n - b.list.pictures
		p.put(o)
		switch {
		case n > p.threshold || len(p.pictures) > maxPictures:
			p.put(op{kind: opStub, form: formList, span: c.span, n: n, chars: o.chars, many: b.list.many, files: b.list.files,
				pictures: slices.Clone(p.pictures[:min(len(p.pictures), namedPictures)])})
			p.imagesIn += b.list.many
		default:
			for _, pic := range p.pictures {
				p.putPicture(pic)
			}
		}
	default:
		p.put(o)
	}
}

// resultList scans the content of a result that is a list: how large it is, pictures included. Notes of an earlier trim
// weigh nothing, so that a second one changes nothing.
func (p *parser) resultList(s *jsonscan.Scanner, of *jsonscan.Member, l *listed) (value, bool) {
	c := value{span: span{from: of.Start}, kind: of.Kind}
	*l, p.pictures = listed{}, p.pictures[:0]
	if !s.Open() {
		return c, false
	}
	var m jsonscan.Member
	for s.Next(&m) {
		at := span{from: m.Start}
		if m.Kind != '{' {
			v, ok := p.skip(s, &m, nil)
			if !ok {
				return c, false
			}
			l.chars += int64(tidemark.UTF16LenJSON(p.raw(v.span)))
			continue
		}
		var b blockFields
		if !p.block(s, &b, false) {
			return c, false
		}
		at.to = s.Pos()
		if string(p.word(b.typ)) == "text" {
			if !p.note(b.text) {
				l.chars += p.textOf(b.text)
			}
			continue
		}
		pic, ok := p.picture(at, &b)
		if !ok {
			l.chars += int64(tidemark.UTF16LenJSON(p.raw(at)))
			continue
		}
		l.chars += at.size()
		l.pictures += at.size()
		l.many++
		l.files += pic.bytes
		if len(p.pictures) <= maxPictures {
			p.pictures = append(p.pictures, pic)
		}
	}
	c.to = s.Pos()
	return c, s.Err == nil
}
