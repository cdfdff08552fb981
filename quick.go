package tidemark

import (
	"bytes"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// quickMessage decodes a message of the form that [Message.AppendJSON] gives to plain text, which is
// nearly all of what a view reads, in one pass; anything else is not ok and decoded the long way,
// which reads each byte six times. A message that is ok is the same as decoded the long way.
func quickMessage(data []byte) (m Message, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"role":"`))
	if !ok {
		return m, false
	}
	for _, role := range []Role{User, Assistant, System} {
		content, is := bytes.CutPrefix(rest, []byte(role))
		if !is {
			continue
		}
		if content, is = bytes.CutPrefix(content, []byte(`","content":`)); !is {
			return m, false
		}
		blocks, bare, ok := quickContent(content)
		return Message{Role: role, Content: blocks, bare: bare}, ok
	}
	return m, false
}

// quickContent decodes a string, or a list of one block of plain text, and the brace behind it.
func quickContent(data []byte) (blocks []Block, bare, ok bool) {
	const head, tail = `[{"type":"text","text":`, `}]}`
	if inner, is := bytes.CutPrefix(data, []byte(head)); is {
		text, _, rest, ok := json.CutString(inner)
		if !ok || string(rest) != tail {
			return nil, false, false
		}
		raw := append(json.RawMessage(nil), data[1:len(data)-len(tail)+1]...)
		return []Block{{Type: TypeText, Text: text, raw: raw}}, false, true
	}
	text, str, rest, ok := json.CutString(data)
	if !ok || string(rest) != "}" {
		return nil, false, false
	}
	return []Block{{Type: TypeText, Text: text, str: append(json.RawMessage(nil), str...)}}, true, true
}
