package body

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
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
	From, To int32
	kind     kind
	marked   bool
	typed    bool // it says of what type it is
}

func (b block) Of(raw []byte) []byte { return raw[b.From:b.To:b.To] }

// NewItem reads one message of the Messages API.
func NewItem(raw []byte) (Item, error) {
	c := over(raw)
	left := MaxBlocks
	it := c.item(&left)
	c.End()
	if c.Err() != nil {
		return Item{}, fmt.Errorf("read the message: %w", c.Err())
	}
	return it, nil
}

// item reads the message that is next; left is how many blocks may follow.
func (c *cursor) item(left *int) Item {
	var it Item
	var seen uint32
	first := c.Peek()
	start := c.At()
	if first != '{' {
		it.Raw, it.fixed = c.Raw(), true
		return it
	}
	c.Members("the message", func(key []byte) {
		switch string(key) {
		case "role":
			c.once(&seen, 1, "role")
			it.Role = c.role()
		case "content":
			c.once(&seen, 2, "content")
			from := c.At()
			switch first := c.Peek(); first {
			case '"':
				it.bare = true
				c.String()
			case '[':
				it.blocks = c.blocks(start, left)
			default:
				c.Skip()
				it.fixed = true
			}
			it.content = span{From: from - start, To: c.At() - start}
		default:
			it.more = true
			c.Skip()
		}
	})
	if c.Err() == nil {
		it.Raw = c.Since(start)
	}
	it.fixed = it.fixed || seen != 3 || !known(it.Role)
	return it
}

// role reads a role, "" for what is no string.
func (c *cursor) role() tidemark.Role {
	if c.Peek() != '"' {
		c.Skip()
		return ""
	}
	switch role := jsonscan.Unquoted(c.String()); string(role) { // the usual ones take no memory
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
	c.Elements("content", func(int) {
		if *left--; *left < 0 {
			c.Fail("too many blocks")
			return
		}
		b := c.block()
		b.From -= int32(start)
		b.To -= int32(start)
		list = append(list, b)
	})
	return list
}

// block reads a block. What is no object, or has no type, is one of an unknown kind.
func (c *cursor) block() block {
	var b block
	var seen uint32
	first := c.Peek()
	from := c.At()
	if first != '{' {
		c.Skip()
		b.From, b.To = int32(from), int32(c.At())
		return b
	}
	c.Members("the block", func(key []byte) {
		switch string(key) {
		case "type":
			c.once(&seen, 1, "type")
			if c.Peek() != '"' {
				c.Skip()
				return
			}
			b.kind, b.typed = kindOf(jsonscan.Unquoted(c.String())), true
		case marker:
			c.once(&seen, 2, marker)
			b.marked = c.Peek() != 'n'
			c.Skip()
		case "text":
			c.once(&seen, 4, "text")
			c.Skip()
		case "content":
			c.once(&seen, 8, "content")
			c.Skip()
		default:
			c.Skip()
		}
	})
	b.From, b.To = int32(from), int32(c.At())
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
	return append(append(out, i.content.Of(i.Raw)...), '}')
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
		return textBlock(i.content.Of(i.Raw))
	}
	return i.blocks[n].Of(i.Raw)
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
	c := over(raw)
	alone = true
	isText := false
	c.Members("the block", func(key []byte) {
		switch string(key) {
		case "type":
			isText = kindOf(jsonscan.Unquoted(c.Raw())) == text
		case "text":
			quoted = c.Raw()
		default:
			alone = false
			c.Skip()
		}
	})
	if c.Err() != nil || !isText || len(quoted) == 0 || quoted[0] != '"' {
		return nil, false
	}
	return quoted, alone
}

// typeOf is the type of a block, "" for what has none.
func typeOf(raw []byte) string { return string(jsonscan.Unquoted(find(raw, "type"))) }

// checkBlock reports what is no block: JSON of ours that is spliced in must not break the body.
func checkBlock(raw []byte) (block, error) {
	c := over(raw)
	b := c.block()
	if !b.typed {
		c.Fail("the block has no type")
	}
	c.End()
	return b, c.Err()
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
