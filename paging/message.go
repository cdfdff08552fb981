package paging

import (
	"bytes"
	"crypto/sha256"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// Message is what paging keeps of a message.
type Message struct {
	Role   tidemark.Role
	Bytes  int  // as compact JSON
	Typed  bool // of role user, and not only tool results: a turn as a person counts begins
	Blocks []Block
	Names  []string // what looks like the name of a file in the text of a typed message
	Handle string   // what the model knows the message as, "" for nothing: see [Pager.find]

	said  *said  // what else its text speaks of, nil without one
	asked *asked // what else came with it, nil for nothing
}

// What a [Block] is.
const (
	called   = 'c' // a call of a tool
	answered = 'r' // its result
	pictured = 'i' // an image
)

// Block is what paging keeps of a call, a result or an image; other blocks are not kept at all.
type Block struct {
	what  byte
	index int    // in the message's content
	ID    string // of the call, also in its result
	Call  Call   // of a call

	Hash  [sha256.Size]byte // of canonical bytes: of a result, of a large input, of an image
	Size  int               // bytes of a result's content, of a call's input, of an image's JSON
	Lines int               // of a result that is text
	Err   bool              // the result reports a failure

	codes   *coded // of a result: what may be quoted of it
	media   string // of an image: its type
	decoded int    // of an image that stands in the message: its bytes
	inline  inline // in a result, or an image itself

	at, wire     int   // where the content (the input, the image) begins in the message's compact JSON, and its length there
	paged, clear uint8 // of a result: how many of its first bytes are those of a stub
	stub, common int   // of an input and an image: bytes of its stub without a handle, and how many of their first ones are those
}

// Scanner reads messages as JSON. It reuses its memory: one for each goroutine.
type Scanner struct {
	Tools Tools
	text  []byte
	join  []byte
}

// Of is a decoded message as paging keeps it: as the same message read from JSON.
func (s *Scanner) Of(m tidemark.Message) (Message, error) {
	raw, err := m.MarshalJSON()
	if err != nil {
		return Message{}, err
	}
	return s.Message(raw)
}

// Message reads one message.
func (s *Scanner) Message(raw []byte) (Message, error) {
	c := over(raw)
	m := s.message(c)
	if c.Err() == nil && c.Peek() != 0 {
		c.Fail("more than one value")
	}
	return m, c.Err()
}

// over returns a reader at the beginning of JSON.
func over(data []byte) *jsonscan.Cursor {
	c := jsonscan.Over(data)
	return &c
}

// message reads the message that is next.
func (s *Scanner) message(c *jsonscan.Cursor) (m Message) {
	start := c.Compact()
	if !c.Open('{') {
		c.Fail("a message is an object with role and content")
		return m
	}
	var content jsonscan.Cursor // where it stands, if it is to be read when the role is known
	found, read := false, false
	for c.More() {
		switch key := c.Key(); string(key) {
		case "role":
			m.Role = tidemark.Role(s.word(c))
		case "content":
			if found = true; speaks(m.Role) {
				read = true
				m.Typed, m.Blocks, m.Names, m.said = false, nil, nil, nil // of equal keys the last one counts
				s.content(c, &m, start)
				continue
			}
			content = *c
			read = false
			c.Skip()
		default:
			c.Skip()
		}
	}
	m.Bytes = c.Compact() - start
	switch {
	case c.Err() != nil:
	case m.Role == "":
		c.Fail("a message without a role")
	case !speaks(m.Role): // nothing of it leaves
	case !found:
		c.Fail("a message without content: want a string or a list of blocks")
	case !read:
		s.content(&content, &m, start)
		c.Stop(content.Err())
	}
	return m
}

// speaks reports a role whose messages have pages; those of others count with their size.
func speaks(r tidemark.Role) bool { return r == tidemark.User || r == tidemark.Assistant }

// word reads a short string that is kept, "" for another value.
func (s *Scanner) word(c *jsonscan.Cursor) string {
	if c.Peek() != '"' {
		c.Skip()
		return ""
	}
	raw := c.String()
	if c.Err() != nil {
		return ""
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		switch string(inner) {
		case "user":
			return "user"
		case "assistant":
			return "assistant"
		case "system":
			return "system"
		case "text":
			return "text"
		case "tool_use":
			return "tool_use"
		case "tool_result":
			return "tool_result"
		}
		return string(inner)
	}
	return string(s.decode(raw))
}

// decode gives the text of a string that a cursor read, until the next call.
func (s *Scanner) decode(raw []byte) []byte {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	s.text, _ = json.AppendText(s.text[:0], raw) // the cursor looked at its escapes
	return s.text
}

// content reads the content of a message that begins at start.
func (s *Scanner) content(c *jsonscan.Cursor, m *Message, start int) {
	user := m.Role == tidemark.User
	if c.Peek() == '"' {
		m.Typed = user
		if raw := c.String(); user && c.Err() == nil {
			m.speaks(s.decode(raw))
		}
		return
	}
	if !c.Open('[') {
		c.Fail("content of a message: want a string or a list of blocks")
		return
	}
	for i := 0; c.More(); i++ {
		b, typed := s.block(c, m, start)
		b.index = i
		if m.Typed = m.Typed || typed && user; b.what != 0 {
			m.Blocks = append(m.Blocks, b)
		}
	}
}

// part is a value of a block that is read again when the block's type is known.
type part struct {
	c    jsonscan.Cursor
	ok   bool
	end  int // behind it
	wire int // its bytes as compact JSON
}

// block reads a block. typed is whether it is something else than a result.
func (s *Scanner) block(c *jsonscan.Cursor, m *Message, start int) (b Block, typed bool) {
	from, begin := c.Compact(), c.At()
	if !c.Open('{') {
		c.Skip() // of a kind that is not known
		return b, true
	}
	var kind, id, name, of string
	var text, input, content, source part
	for c.More() {
		switch key := c.Key(); string(key) {
		case "type":
			kind = s.word(c)
		case "id":
			id = s.word(c)
		case "name":
			name = s.word(c)
		case "tool_use_id":
			of = s.word(c)
		case "is_error":
			b.Err = c.Peek() == 't'
			c.Skip()
		case "text":
			text = s.keep(c)
		case "input":
			input = s.keep(c)
		case "content":
			content = s.keep(c)
		case "source":
			source = s.keep(c)
		default:
			c.Skip()
		}
	}
	if c.Err() != nil {
		return b, false
	}
	switch {
	case kind == tidemark.TypeToolResult && m.Role == tidemark.User:
		b.what, b.ID, b.at = answered, bounded(of), content.c.Compact()-start
		s.result(c, &b, content)
		return b, false
	case kind == tidemark.TypeToolUse && m.Role == tidemark.Assistant:
		b = Block{what: called, ID: bounded(id)}
		s.call(c, &b, name, input, start)
		return b, false
	case kind == tidemark.TypeImage || kind == tidemark.TypeDocument:
		b = Block{what: pictured, Size: c.Compact() - from, at: from - start, wire: c.Compact() - from, inline: s.inlineOf(source)}
		if m.Role == tidemark.User {
			s.inline(&b, kind, source, c.Since(begin))
		}
		return b, true
	case kind == tidemark.TypeText && m.Role == tidemark.User && text.c.Peek() == '"':
		m.speaks(s.decode(text.c.String()))
	}
	return Block{}, true
}

// keep remembers where a value is and goes behind it.
func (s *Scanner) keep(c *jsonscan.Cursor) part {
	p := part{c: *c, ok: true}
	c.Skip()
	p.end, p.wire = c.At(), c.Compact()-p.c.Compact()
	return p
}

func (s *Scanner) call(c *jsonscan.Cursor, b *Block, name string, input part, start int) {
	var raw []byte
	if input.ok {
		raw = c.Since(0)[input.c.At():input.end]
		b.at, b.wire, b.Size, b.stub = input.c.Compact()-start, input.wire, input.wire, input.wire
	}
	if b.Call = s.Tools.Call(name, raw); b.wire >= leastInput {
		raw = compact(raw)
		stub := s.Tools.StubInput(name, "", raw)
		b.Hash, b.stub, b.common = sha256.Sum256(raw), len(stub), sameBegin(raw, stub)
	}
}

// Bytes that all stubs begin with, behind the quote.
const (
	pagedHead = `[Paged out: `
	clearHead = `[Cleared: `
)

// result reads the content of a result: its size, lines and hash.
func (s *Scanner) result(c *jsonscan.Cursor, b *Block, content part) {
	if !content.ok {
		b.Hash = sha256.Sum256(nil)
		return
	}
	b.wire = content.wire
	raw := c.Since(0)[content.c.At():content.end]
	if raw[0] == '"' {
		b.paged, b.clear = common(raw[1:], pagedHead), common(raw[1:], clearHead)
		b.measure(s.decode(raw), 0)
		return
	}
	if texts, n, ok := s.texts(content.c); ok {
		b.measure(texts, max(n-1, 0))
		return
	}
	b.measure(compact(raw), 0)
	b.inline = s.inlineIn(content.c)
	b.Lines = 0
}

// texts joins the texts of a list of text blocks, by a byte that no text has.
func (s *Scanner) texts(c jsonscan.Cursor) (joined []byte, n int, ok bool) {
	s.join = s.join[:0]
	if !c.Open('[') {
		return nil, 0, false
	}
	for ; c.More(); n++ {
		if !c.Open('{') {
			return nil, 0, false
		}
		var raw []byte
		plain := false
		for c.More() {
			switch key := c.Key(); {
			case string(key) == "type":
				plain = s.word(&c) == tidemark.TypeText
			case string(key) == "text" && c.Peek() == '"':
				raw = c.String()
			default:
				c.Skip()
			}
		}
		if !plain || raw == nil {
			return nil, 0, false
		}
		if n > 0 {
			s.join = append(s.join, 0xff)
		}
		s.join = append(s.join, s.decode(raw)...)
	}
	return s.join, n, true
}

// measure takes size, lines and hash of canonical bytes, in which some bytes part texts.
func (b *Block) measure(text []byte, parting int) {
	b.Hash = sha256.Sum256(text)
	b.Size = len(text) - parting
	b.Lines = countLines(text)
	b.codes = codesOf(text)
}

// common is how many first bytes raw shares with head, and with the quote before it.
func common(raw []byte, head string) uint8 {
	n := 0
	for n < len(raw) && n < len(head) && raw[n] == head[n] {
		n++
	}
	return uint8(n) + 1 //nolint:gosec // a head has some ten bytes
}
