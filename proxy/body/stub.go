package body

import (
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// Bounds of stubs. A definition below MinStub is about as short as its stub, and not worth a change.
const (
	MinStub     = 300 // bytes
	maxSentence = 120 // characters of a description
	maxEnum     = 8   // values that stay
	maxValues   = 160 // bytes of these together, and of a constant
	maxLevels   = 2   // levels of arguments that keep their names
)

// ToolStub is a definition of the Messages API in short: the name, the first sentence of the description, and of
// the schema the names of arguments, their types and which are required. It is nil where it would not be shorter,
// where the definition is below [MinStub], and for what is no definition.
func ToolStub(raw []byte) []byte { return stub(Messages, raw) }

// stub is a definition that tells no more than which arguments the tool takes: its name, the first sentence of
// its description, and of the schema names, types and which are required. What is unknown stays as it is, and so
// does a cache marker. It is nil for a tool that the server runs, and where it would not be shorter.
func stub(d Dialect, raw []byte) []byte {
	if len(raw) < MinStub {
		return nil
	}
	var out []byte
	if d == Chat {
		out = chatStub(raw)
	} else {
		out = shorten(raw, "input_schema")
	}
	if len(out) == 0 || len(out) >= len(raw) {
		return nil
	}
	return out
}

// chatStub shortens the function of a definition of chat completions.
func chatStub(raw []byte) []byte {
	function := find(raw, "function")
	if typeOf(raw) != "function" || len(function) == 0 || function[0] != '{' {
		return nil
	}
	inner := shorten(function, "parameters")
	if inner == nil {
		return nil
	}
	return setMember(raw, "function", inner)
}

// shorten writes a definition with a short description and schema.
func shorten(raw []byte, schema string) []byte {
	own, strict := true, false
	c := over(raw)
	c.Members("the tool", func(key []byte) {
		switch string(key) {
		case "type":
			v := string(c.Raw())
			own = v == `"custom"` || v == "null" || schema == "parameters"
		case "strict":
			strict = c.Peek() == 't'
			c.Skip()
		default:
			c.Skip()
		}
	})
	if c.Err() != nil || !own {
		return nil
	}
	s := shortener{cursor: over(raw), strict: strict, dst: make([]byte, 0, len(raw)/2)}
	s.object(func(key string, from int) {
		switch {
		case key == "description" && s.Peek() == '"':
			s.member(from)
			s.dst = append(s.dst, quote(sentence(s.Text()))...)
		case key == schema && s.Peek() == '{':
			s.member(from)
			s.schema(0)
		case key == "input_examples":
			s.Skip()
		default:
			s.Skip()
			s.comma()
			s.dst = append(s.dst, s.Since(from)...)
		}
	})
	if s.Err() != nil {
		return nil
	}
	return s.dst
}

// shortener copies a definition and leaves out what a stub does not need.
type shortener struct {
	cursor
	strict bool // the API demands the whole structure
	dst    []byte
	many   bool // a member of the object that is open was written
}

func (s *shortener) comma() {
	if s.many {
		s.dst = append(s.dst, ',')
	}
	s.many = true
}

// member writes a key that began at from, up to its value.
func (s *shortener) member(from int) {
	s.comma()
	s.dst = append(s.dst, s.Since(from)...)
}

// object copies an object; f gets each key and where it began, and reads the value.
func (s *shortener) object(f func(key string, from int)) {
	many := s.many
	s.many = false
	s.dst = append(s.dst, '{')
	for ok := s.Open('{'); ok && s.More(); {
		from := s.At()
		f(string(s.Key()), from)
	}
	s.dst = append(s.dst, '}')
	s.many = many
}

// copyValue copies any value.
func (s *shortener) copyValue() {
	s.dst = append(s.dst, s.Raw()...)
}

// schema copies a schema; level is how many levels of arguments are above it.
func (s *shortener) schema(level int) {
	if s.Peek() != '{' {
		s.copyValue()
		return
	}
	deep := level >= maxLevels && !s.strict
	s.object(func(key string, from int) {
		switch key {
		case "type", "$ref":
			s.member(from)
			s.copyValue()
		case "enum", "const":
			s.values(from)
		case "items", "prefixItems":
			s.member(from)
			s.schemas(level)
		case "anyOf", "oneOf", "allOf":
			s.member(from)
			s.schemas(level)
		case "$defs", "definitions":
			s.member(from)
			s.named(level + 1)
		case "properties", "patternProperties":
			if deep {
				s.Skip()
				break
			}
			s.member(from)
			s.named(level + 1)
		case "required":
			if deep {
				s.Skip()
				break
			}
			s.member(from)
			s.copyValue()
		case "additionalProperties":
			if deep {
				s.Skip()
				break
			}
			s.member(from)
			s.schema(level + 1)
		default:
			s.Skip()
		}
	})
}

// named copies an object whose members are schemas: here no name means anything else.
func (s *shortener) named(level int) {
	if s.Peek() != '{' {
		s.copyValue()
		return
	}
	s.object(func(_ string, from int) {
		s.member(from)
		s.schema(level)
	})
}

// schemas copies a schema or a list of them.
func (s *shortener) schemas(level int) {
	if s.Peek() != '[' {
		s.schema(level)
		return
	}
	s.dst = append(s.dst, '[')
	n := 0
	s.Open('[')
	for ; s.More(); n++ {
		if n > 0 {
			s.dst = append(s.dst, ',')
		}
		s.schema(level)
	}
	s.dst = append(s.dst, ']')
}

// values copies what an argument may be, if it is short.
func (s *shortener) values(from int) {
	key := s.Since(from)
	raw := s.Raw()
	n := 0
	_ = jsonscan.Elements(raw, func([]byte) { n++ }) // a constant has none
	if n > maxEnum || len(raw) > maxValues {
		return
	}
	s.comma()
	s.dst = append(append(s.dst, key...), raw...)
}

// sentence is the first sentence of a description, within its first line that says something.
func sentence(text string) string {
	line := ""
	for rest := text; line == "" && rest != ""; {
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.TrimSpace(strings.TrimLeft(line, "-#*> \t\r"))
	}
	if n := strings.Index(line, ". "); n > 0 {
		line = line[:n+1]
	}
	if utf8.RuneCountInString(line) <= maxSentence {
		return line
	}
	short := string([]rune(line)[:maxSentence-1])
	if n := strings.LastIndexByte(short, ' '); n > maxSentence/2 {
		short = short[:n]
	}
	return short + "…"
}
