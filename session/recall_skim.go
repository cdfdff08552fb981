package session

import (
	"bytes"
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
	if !c.skip("[") {
		m.Content = []tidemark.Block{tidemark.Text(c.text())}
	} else {
		for {
			m.Content = append(m.Content, c.block())
			if c.bad || !c.skip(",") {
				break
			}
		}
		c.want("]")
	}
	c.want("}")
	return m, !c.bad && len(c.rest) == 0 && (m.Role == tidemark.User || m.Role == tidemark.Assistant)
}

// cutter takes JSON of one form off the front of rest; bad stays set after the first that is not there.
type cutter struct {
	rest []byte
	bad  bool
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

func (c *cutter) block() (b tidemark.Block) {
	switch {
	case c.skip(`{"type":"text","text":`):
		b = tidemark.Text(c.text())
	case c.skip(`{"type":"tool_use","id":`):
		c.text()
		c.want(`,"name":`)
		b = tidemark.Block{Type: tidemark.TypeToolUse, Name: c.text()}
		c.want(`,"input":`)
		b.Input = c.object()
	case c.skip(`{"type":"tool_result","tool_use_id":`):
		c.text()
		c.want(`,"content":`)
		b = tidemark.Block{Type: tidemark.TypeToolResult, Content: []tidemark.Block{tidemark.Text(c.text())}}
		c.skip(`,"is_error":true`)
	default:
		c.bad = true
	}
	c.want("}")
	return b
}

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
