package session

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// skim gives of a message what a search reads of it, which is what [textParts] looks at, in one pass: decoded whole,
// a message with a call or a result is read six times. It knows the form that [tidemark.Message.AppendJSON] gives;
// anything else, a reference to a large block too, is not ok.
func skim(payload []byte) (m tidemark.Message, ok bool) {
	c := cutter{rest: payload}
	c.want(`{"role":`)
	m.Role = tidemark.Role(c.text())
	c.want(`,"content":`)
	m.Content = c.content()
	c.want("}")
	return m, !c.bad && len(c.rest) == 0 && (m.Role == tidemark.User || m.Role == tidemark.Assistant)
}

// cutter takes JSON of one form off the front of rest; bad stays set after the first that is not there.
type cutter struct {
	rest  []byte
	bad   bool
	depth int // of lists of blocks
}

func (c *cutter) skip(text string) bool {
	rest, ok := bytes.CutPrefix(c.rest, []byte(text))
	if ok {
		c.rest = rest
	}
	return ok
}

func (c *cutter) want(text string) { c.bad = !c.skip(text) || c.bad }

func (c *cutter) text() string {
	text, _, rest, ok := json.CutString(c.rest)
	c.rest, c.bad = rest, c.bad || !ok
	return text
}

// content takes a text, or a list of blocks.
func (c *cutter) content() (blocks []tidemark.Block) {
	if !c.skip("[") {
		return []tidemark.Block{tidemark.Text(c.text())}
	}
	if c.depth++; c.depth > 2 {
		c.bad = true
		return nil
	}
	for {
		blocks = append(blocks, c.block())
		if c.bad || !c.skip(",") {
			break
		}
	}
	c.depth--
	c.want("]")
	return blocks
}

// block takes a block of the types that have text, its fields in any order: an agent's log has others than the API. Of
// what a result holds, texts alone are skimmed.
func (c *cutter) block() (b tidemark.Block) {
	c.want("{")
	var seen [blockFields]string
	for n := range seen {
		key := c.text()
		c.want(":")
		switch c.bad = c.bad || slices.Contains(seen[:n], key); key {
		case "type":
			b.Type = c.text()
		case "text":
			b.Text = c.text()
		case "name":
			b.Name = c.text()
		case "id", "tool_use_id", "thinking", "signature":
			c.text()
		case "input":
			b.Input = c.object()
		case "caller", "cache_control":
			c.object()
		case "content":
			b.Content = c.content()
		case "is_error":
			if !c.skip("true") {
				c.want("false")
			}
		default:
			c.bad = true
		}
		if seen[n] = key; c.bad || !c.skip(",") {
			break
		}
	}
	c.want("}")
	switch b.Type {
	case tidemark.TypeText:
		c.bad = c.bad || c.depth > 2
	case tidemark.TypeToolUse, tidemark.TypeToolResult, tidemark.TypeThinking:
		c.bad = c.bad || c.depth > 1
	default:
		c.bad = true
	}
	return b
}

// blockFields is the most fields that a block which is skimmed has.
const blockFields = 8

// object takes an object on one line, which was checked when it was logged.
func (c *cutter) object() json.RawMessage {
	depth, quoted := 0, false
	for i := 0; i < len(c.rest); i++ {
		switch b := c.rest[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b < ' ':
			c.bad = true
		case b == '{':
			depth++
		case b == '}':
			if depth--; depth == 0 {
				object := c.rest[:i+1]
				c.rest, c.bad = c.rest[i+1:], c.bad || !utf8.Valid(object)
				return json.RawMessage(object)
			}
		}
		if depth == 0 {
			break
		}
	}
	c.bad = true
	return nil
}
