package blocks

import (
	"slices"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// skim gives of a message what a search reads of it, which is what [room.TextAt] looks at, in one pass: decoded whole,
// a message with a call or a result is read six times. It knows messages without white space, as
// [tidemark.Message.AppendJSON] gives them; anything else, a reference to a large block too, is not ok.
func skim(payload []byte) (m tidemark.Message, ok bool) {
	s := skimmer{jsonscan.Over(payload)}
	s.members(func(key []byte) {
		switch string(key) {
		case "role":
			m.Role = tidemark.Role(s.Text())
		case "content":
			m.Content = s.content(1)
		default:
			s.Fail("a field of a block")
		}
	})
	s.End()
	ok = s.Err() == nil && s.Compact() == s.At() && utf8.Valid(payload) && len(m.Content) > 0
	return m, ok && (m.Role == tidemark.User || m.Role == tidemark.Assistant)
}

// skimmer reads messages of one form.
type skimmer struct{ jsonscan.Cursor }

// skimmed are the fields of messages and blocks that are known.
var skimmed = []string{"role", "content", "type", "text", "name", "id", "tool_use_id", "thinking", "signature", "input", "caller", "cache_control", "is_error"}

// members gives the members of an object, each of them known and there once.
func (s *skimmer) members(f func(key []byte)) {
	seen := 0
	s.Members("the value", func(key []byte) {
		n := slices.Index(skimmed, string(key))
		if n < 0 || seen&(1<<n) != 0 {
			s.Fail("a field that is not known, or twice")
			return
		}
		seen |= 1 << n
		f(key)
	})
}

// content takes a text, or a list of blocks.
func (s *skimmer) content(depth int) (blocks []tidemark.Block) {
	if s.Peek() == '"' {
		return []tidemark.Block{tidemark.Text(s.Text())}
	}
	if depth > 2 {
		s.Fail("results within results")
	}
	s.Elements("the content", func(int) { blocks = append(blocks, s.block(depth)) })
	if len(blocks) == 0 {
		s.Fail("no blocks")
	}
	return blocks
}

// block takes a block of the types that have text, its fields in any order: an agent's log has others than the API. Of
// what a result holds, texts alone are skimmed.
func (s *skimmer) block(depth int) (b tidemark.Block) {
	s.members(func(key []byte) {
		switch string(key) {
		case "type":
			b.Type = s.Text()
		case "text":
			b.Text = s.Text()
		case "name":
			b.Name = s.Text()
		case "id", "tool_use_id", "thinking", "signature":
			s.String()
		case "input", "caller", "cache_control":
			if s.Peek() != '{' {
				s.Fail("no object")
			}
			if v := s.Raw(); key[0] == 'i' {
				b.Input = json.RawMessage(v)
			}
		case "content":
			b.Content = s.content(depth + 1)
		case "is_error":
			if v := string(s.Raw()); v != "true" && v != "false" {
				s.Fail("no boolean")
			}
		default:
			s.Fail("a field of a message")
		}
	})
	switch b.Type {
	case tidemark.TypeText:
	case tidemark.TypeToolUse, tidemark.TypeToolResult, tidemark.TypeThinking:
		if depth > 1 {
			s.Fail("a result holds more than texts")
		}
	default:
		s.Fail("a type that is not known")
	}
	return b
}
