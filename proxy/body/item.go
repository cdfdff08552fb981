package body

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// kind is what the writer must know of a block.
type kind uint8

const (
	other kind = iota
	text
	thinking
	call
	result
	media // an image or a document
)

// block is where a block stands in the message that it is of.
type block struct {
	from, to int32
	kind     kind
	marked   bool
	typed    bool // it says of what type it is
}

func (b block) of(raw []byte) []byte { return raw[b.from:b.to:b.to] }

// NewItem reads one message of the Messages API.
func NewItem(raw []byte) (Item, error) {
	c := cursor{data: raw}
	left := MaxBlocks
	it := c.item(&left)
	c.end()
	if c.err != nil {
		return Item{}, fmt.Errorf("read the message: %w", c.err)
	}
	return it, nil
}

// item reads the message that is next; left is how many blocks may follow.
func (c *cursor) item(left *int) Item {
	var it Item
	var seen uint32
	first := c.peek()
	start := c.i
	if first != '{' {
		at := c.value()
		it.Raw, it.fixed = at.of(c.data), true
		return it
	}
	c.members("the message", func(key []byte) {
		switch string(key) {
		case "role":
			c.once(&seen, 1, "role")
			it.Role = c.role()
		case "content":
			c.once(&seen, 2, "content")
			from := c.i
			switch first := c.peek(); first {
			case '"':
				it.bare = true
				c.str()
			case '[':
				it.blocks = c.blocks(start, left)
			default:
				c.skip()
				it.fixed = true
			}
			it.content = span{from - start, c.i - start}
		default:
			it.more = true
			c.skip()
		}
	})
	if c.err == nil {
		it.Raw = c.data[start:c.i:c.i]
	}
	it.fixed = it.fixed || seen != 3 || !known(it.Role)
	return it
}

// role reads a role, "" for what is no string.
func (c *cursor) role() tidemark.Role {
	if c.peek() != '"' {
		c.skip()
		return ""
	}
	switch role := unquoted(c.str()); string(role) {
	case "user":
		return tidemark.User
	case "assistant":
		return tidemark.Assistant
	case "system":
		return tidemark.System
	default:
		return tidemark.Role(role)
	}
}

// known reports a role of which it is known what its messages are.
func known(r tidemark.Role) bool {
	return r == tidemark.User || r == tidemark.Assistant || r == tidemark.System
}

// blocks reads a list of blocks, whose places count from start.
func (c *cursor) blocks(start int, left *int) []block {
	var list []block
	c.elements("content", func(int) {
		if *left--; *left < 0 {
			c.fail("too many blocks")
			return
		}
		b := c.block()
		b.from -= int32(start)
		b.to -= int32(start)
		list = append(list, b)
	})
	return list
}

// block reads a block. What is no object, or has no type, is one of an unknown kind.
func (c *cursor) block() block {
	var b block
	var seen uint32
	first := c.peek()
	from := c.i
	if first != '{' {
		c.skip()
		b.from, b.to = int32(from), int32(c.i)
		return b
	}
	c.members("the block", func(key []byte) {
		switch string(key) {
		case "type":
			c.once(&seen, 1, "type")
			if c.peek() != '"' {
				c.skip()
				return
			}
			b.kind, b.typed = kindOf(unquoted(c.str())), true
		case marker:
			c.once(&seen, 2, marker)
			b.marked = c.peek() != 'n'
			c.skip()
		case "text":
			c.once(&seen, 4, "text")
			c.skip()
		case "content":
			c.once(&seen, 8, "content")
			c.skip()
		default:
			c.skip()
		}
	})
	b.from, b.to = int32(from), int32(c.i)
	return b
}

func kindOf(name []byte) kind {
	switch string(name) {
	case tidemark.TypeText:
		return text
	case tidemark.TypeThinking, tidemark.TypeRedactedThinking:
		return thinking
	case tidemark.TypeToolUse:
		return call
	case tidemark.TypeToolResult:
		return result
	case tidemark.TypeImage, tidemark.TypeDocument:
		return media
	}
	return other
}

// Alone is the message with its role and content only, which is all that a log keeps of one.
func (i Item) Alone() []byte {
	if !i.more || i.fixed {
		return i.Raw
	}
	out := append(append([]byte(`{"role":`), quote(string(i.Role))...), `,"content":`...)
	return append(append(out, i.content.of(i.Raw)...), '}')
}

// Blocks is the number of blocks of the message; a string is one.
func (i Item) Blocks() int {
	if i.bare {
		return 1
	}
	return len(i.blocks)
}

// Block is the JSON of block n, from 0; a string is given as a text block. It is nil if there is none.
func (i Item) Block(n int) []byte {
	switch {
	case n < 0 || n >= i.Blocks():
		return nil
	case i.bare:
		return textBlock(i.content.of(i.Raw))
	}
	return i.blocks[n].of(i.Raw)
}

// textBlock is a text block of a string that is given with its quotes.
func textBlock(quoted []byte) []byte {
	out := make([]byte, 0, len(quoted)+24)
	out = append(out, `{"type":"text","text":`...)
	out = append(out, quoted...)
	return append(out, '}')
}

// textOf is the text of a text block with its quotes, and whether the block has nothing else.
func textOf(raw []byte) (quoted []byte, alone bool) {
	c := cursor{data: raw}
	alone = true
	isText := false
	c.members("the block", func(key []byte) {
		switch string(key) {
		case "type":
			at := c.value()
			isText = kindOf(unquoted(at.of(raw))) == text
		case "text":
			quoted = c.value().of(raw)
		default:
			alone = false
			c.skip()
		}
	})
	if c.err != nil || !isText || len(quoted) == 0 || quoted[0] != '"' {
		return nil, false
	}
	return quoted, alone
}

// typeOf is the type of a block, "" for what has none.
func typeOf(raw []byte) (kind string) {
	c := cursor{data: raw}
	if c.peek() != '{' {
		return ""
	}
	c.members("the block", func(key []byte) {
		if string(key) == "type" && c.peek() == '"' {
			kind = c.text()
			return
		}
		c.skip()
	})
	return kind
}

// First is the text by which a conversation is known that has no other name: the role of the first item, a
// line break, and the texts of its text blocks without system reminders and the white space around them,
// joined by line breaks; texts that are empty then do not count.
func (r *Request) First() string {
	if len(r.Items) == 0 {
		return ""
	}
	it := r.Items[0]
	var texts []string
	for n := range it.Blocks() {
		quoted, _ := textOf(it.Block(n))
		if t := strings.TrimSpace(tidemark.StripReminders(string(unquoted(quoted)))); t != "" {
			texts = append(texts, t)
		}
	}
	return string(it.Role) + "\n" + strings.Join(texts, "\n")
}

// setMember is an object with another value of a member, which is added at its end if it has none.
func setMember(raw []byte, name string, value []byte) []byte {
	at := span{-1, -1}
	c := cursor{data: raw}
	c.members("the object", func(key []byte) {
		if string(key) == name {
			at = c.value()
			return
		}
		c.skip()
	})
	out := make([]byte, 0, len(raw)+len(name)+len(value)+8)
	if at.from >= 0 {
		out = append(append(out, raw[:at.from]...), value...)
		return append(out, raw[at.to:]...)
	}
	out = append(out, raw[:c.i-1]...)
	if len(bytes.TrimSpace(out)) > 1 {
		out = append(out, ',')
	}
	out = append(append(append(out, '"'), name...), '"', ':')
	return append(append(out, value...), raw[c.i-1:]...)
}

// dropMember is an object without a member.
func dropMember(raw []byte, name string) []byte {
	var at span
	c := cursor{data: raw}
	end, kept := 0, false
	for ok := c.open('{'); ok && c.more('}'); end = c.i {
		from := c.i
		found := string(c.key()) == name
		c.skip()
		if !found {
			kept = true
			continue
		}
		at = span{from, c.i}
		if kept {
			at.from = end
		} else if c.peek() == ',' {
			at.to = c.i + 1
		}
	}
	if at.to == 0 || c.err != nil {
		return raw
	}
	return append(append(make([]byte, 0, len(raw)), raw[:at.from]...), raw[at.to:]...)
}

// checkBlock reports what is no block: JSON of ours that is spliced in must not break the body.
func checkBlock(raw []byte) (block, error) {
	c := cursor{data: raw}
	b := c.block()
	if !b.typed {
		c.fail("the block has no type")
	}
	c.end()
	return b, c.err
}

// newMessage reads a message of ours, which must have a role and content.
func newMessage(raw []byte) (Item, error) {
	it, err := NewItem(unmarked(raw))
	if err == nil && it.fixed {
		err = fmt.Errorf("a message of ours without a known role and content: %w", tidemark.ErrInvalid)
	}
	return it, err
}

// quote is s as a JSON string.
func quote(s string) []byte { return json.AppendString(nil, s) }
