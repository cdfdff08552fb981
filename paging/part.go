package paging

import (
	"bytes"
	"crypto/sha256"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// Part says what of a message a [Page] is.
type Part uint8

// The parts of a message that may leave.
const (
	Result Part = iota // the content of a tool's result
	Input              // the input of a call
	Image              // an image or an inline document that stands by itself in a message of the user
)

var partNames = [...]string{"result", "input", "image"}

// String is the part's name.
func (p Part) String() string {
	if int(p) < len(partNames) {
		return partNames[p]
	}
	return "part"
}

// imageStub is the text that stands for an image that is out.
func (p *Page) imageStub(handle string) string {
	s := pagedHead + StubName(p.Media)
	if p.Size > 0 {
		s += " (" + strconv.Itoa(p.Size) + " bytes)"
	}
	s += "."
	if handle != "" {
		s += " " + handle
	}
	return s + "]"
}

// textBlock is a text as a block, which stands in the place of an image.
func textBlock(text string) []byte {
	return append(json.AppendString([]byte(`{"type":"text","text":`), text), '}')
}

// parts reports whether inputs and images may leave. fifo is the paper unadorned, batch and min are to compare with.
func (p *policy) parts() bool { return p.safe() || p.rule == "lru" }

// input makes a page of the input of a call, of the age of its result.
func (p *Pager) input(b *Block) {
	if !p.parts() || b.Call.cooperates() || b.Size < p.min || b.stub >= b.wire {
		return
	}
	g := &Page{Part: Input, ID: b.ID, Call: b.Call, Message: len(p.messages) - 1, Block: b.index, Hash: b.Hash, Size: b.Size, Lines: b.Lines,
		born: p.users, tick: p.clock + roundTicks, at: b.at, wire: b.wire, common: b.common, short: b.stub}
	put(&p.history, p.inputs, b.ID, g)
	p.add(g)
}

// answered lets the input of a call go from now on: what has no result yet is still being worked on.
func (p *Pager) answered(id string) {
	g := p.inputs[id]
	if g == nil || g.answered {
		return
	}
	set(&p.history, &g.answered, true)
	switch {
	case !g.waits || p.rule == optimal:
	case p.rule == "lru":
		p.again = append(p.again, g)
	default:
		p.ripe(g)
	}
}

// open reports whether a page is the input of a call that has no result; it is looked at again when that comes.
func (p *policy) open(g *Page) bool {
	if g.Part != Input || g.answered {
		return false
	}
	if !g.waits {
		set(&p.history, &g.waits, true)
	}
	return true
}

// image makes a page of an image.
func (p *Pager) image(b *Block) {
	if !p.parts() || b.stub == 0 || b.stub >= b.wire || max(b.decoded, b.wire) < p.min {
		return
	}
	g := &Page{Part: Image, Media: b.media, Message: len(p.messages) - 1, Block: b.index, Hash: b.Hash, Size: b.decoded,
		born: p.users, tick: p.clock, at: b.at, wire: b.wire, common: b.common, short: b.stub, inline: b.inline}
	p.picture(g)
	p.add(g)
}

// inline reads an image or a document: its kind, its bytes, and what its stub will be. raw is the block.
func (s *Scanner) inline(b *Block, kind string, source part, raw []byte) {
	b.media = kind
	if source.ok {
		s.source(source.c, b, kind)
	}
	g := Page{Part: Image, Media: b.media, Size: b.decoded}
	stub := textBlock(g.Stub(""))
	if len(raw) != b.wire {
		raw = compact(raw)
	}
	b.Hash, b.stub, b.common = sha256.Sum256(raw), len(stub), sameBegin(raw, stub)
}

// source reads the source of an image or a document.
func (s *Scanner) source(c jsonscan.Cursor, b *Block, kind string) {
	if !c.Open('{') {
		return
	}
	form := ""
	var size, text int
	for c.More() {
		switch key := c.Key(); {
		case string(key) == "type":
			form = s.word(&c)
		case string(key) == "media_type":
			if b.media = mediaType(s.word(&c)); b.media == "" {
				b.media = kind
			}
		case string(key) == "data" && c.Peek() == '"':
			data := s.decode(c.String())
			size, text = base64Size(data), len(data)
		default:
			c.Skip()
		}
	}
	switch form {
	case "base64":
		b.decoded = size
	case tidemark.TypeText:
		b.decoded = text
	}
}

// mediaType is a media type that a stub may name, "" for what is none.
func mediaType(s string) string {
	if len(s) > maxMedia {
		return ""
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '[' || c == ']' {
			return ""
		}
	}
	return s
}

// maxMedia bounds the name of a media type; RFC 6838 has 127 bytes for each half.
const maxMedia = 100

// base64Size is how many bytes a text in base64 stands for.
func base64Size(data []byte) int {
	n := len(data) - bytes.Count(data, []byte{'\n'}) - bytes.Count(data, []byte{'\r'})
	for i := len(data) - 1; i >= 0 && (data[i] == '=' || data[i] == '\n' || data[i] == '\r'); i-- {
		if data[i] == '=' {
			n--
		}
	}
	return n * 3 / 4
}
