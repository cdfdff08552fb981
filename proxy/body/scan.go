package body

import (
	"fmt"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Scan reads a request. What it cannot read is tidemark.ErrInvalid, and a body that is too big
// tidemark.ErrTooLarge: such a body is to be passed on as it is.
func Scan(d Dialect, raw []byte) (*Request, error) {
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("scan the request: %d bytes are more than %d: %w", len(raw), MaxBytes, tidemark.ErrTooLarge)
	}
	s := scanner{cursor: cursor{data: raw, i: len(raw) - len(json.Unmarked(raw))}, r: &Request{Dialect: d, raw: raw}, left: MaxBlocks}
	s.request()
	if s.err != nil {
		return nil, fmt.Errorf("scan the request: %w", s.err)
	}
	return s.r, nil
}

// scanner reads one request.
type scanner struct {
	cursor
	r    *Request
	left int // blocks that may follow

	cacheKey string // prompt_cache_key
}

// Keys of a request that may stand only once.
const (
	keyModel uint32 = 1 << iota
	keyStream
	keyMax
	keySystem
	keyTools
	keyChoice
	keyThinking
	keyMetadata
	keyMessages
	keyUser
	keyCacheKey
	keyMaxNew
)

func (s *scanner) request() {
	if !s.open('{') {
		s.fail("the body is no object")
		return
	}
	var seen uint32
	for {
		s.part, s.message = "", 0
		if !s.more('}') {
			break
		}
		at := s.i
		key := string(s.key())
		s.part = key
		known := s.shared(key, at, &seen)
		switch {
		case known:
		case s.r.Dialect == Chat:
			s.chatKey(key, &seen)
		default:
			s.messagesKey(key, &seen)
		}
	}
	s.end()
	if seen&keyMessages == 0 {
		s.fail("there are no messages")
	}
	if s.r.Dialect == Chat && s.err == nil {
		if s.r.User == "" {
			s.r.User = s.cacheKey
		}
		s.convert()
	}
}

// shared reads a member that both dialects have; at is where its key stands.
func (s *scanner) shared(key string, at int, seen *uint32) bool {
	switch key {
	case "model":
		s.once(seen, keyModel, key)
		if s.r.Model = ""; s.peek() == '"' {
			s.r.Model = s.text()
		} else {
			s.skip()
		}
	case "stream":
		s.once(seen, keyStream, key)
		s.r.Stream = s.peek() == 't'
		s.skip()
	case "max_tokens":
		s.once(seen, keyMax, key)
		s.max()
	case "tools":
		s.once(seen, keyTools, key)
		s.toolDefs()
	case "tool_choice":
		s.once(seen, keyChoice, key)
		s.choice()
	case "messages":
		s.once(seen, keyMessages, key)
		s.r.before = at
		from := s.i
		if s.r.Dialect == Chat {
			s.chatMessages()
		} else {
			s.messages()
		}
		s.r.list = span{from, s.i}
	default:
		return false
	}
	return true
}

// messagesKey reads a member that only the Messages API has.
func (s *scanner) messagesKey(key string, seen *uint32) {
	switch key {
	case "system":
		s.once(seen, keySystem, key)
		v := s.value()
		s.r.Fixed += v.to - v.from
	case "thinking":
		s.once(seen, keyThinking, key)
		kind := s.member("type")
		s.r.Thinking = kind != "" && kind != "disabled"
	case "metadata":
		s.once(seen, keyMetadata, key)
		s.r.User = s.member("user_id")
	default:
		s.skip()
	}
}

// member reads a value and returns the text that it has under a name, if it is an object and has one.
func (s *scanner) member(name string) (found string) {
	if s.peek() != '{' {
		s.skip()
		return ""
	}
	var seen uint32
	s.members(s.part, func(key []byte) {
		if string(key) != name {
			s.skip()
			return
		}
		s.once(&seen, 1, name)
		if s.peek() == '"' {
			found = s.text()
			return
		}
		s.skip()
	})
	return found
}

// max reads the bound of the answer; one that is no whole number says nothing.
func (s *scanner) max() {
	v := s.value()
	if n, err := strconv.ParseInt(string(v.of(s.data)), 10, 64); err == nil && n > 0 {
		s.r.Max = tidemark.Tokens(n)
	}
}

// choice reads tool_choice: an object with a type, or in chat the word itself.
func (s *scanner) choice() {
	var word string
	if s.peek() == '"' {
		word = s.text()
	} else {
		word = s.member("type")
	}
	switch word {
	case "required":
		word = "any"
	case "function", "custom":
		word = "tool"
	}
	s.r.Choice = word
}

func (s *scanner) messages() {
	s.elements("messages", func(n int) {
		s.part, s.message = "messages["+strconv.Itoa(n)+"]", n+1
		if n >= MaxMessages {
			s.fail("too many messages")
			return
		}
		from := s.i
		it := s.item(&s.left)
		s.r.Items = append(s.r.Items, it)
		s.r.at = append(s.r.at, span{from, s.i})
	})
}

// toolDefs reads the definitions; null is the same as none, and so is what is no list.
func (s *scanner) toolDefs() {
	from := s.i
	if first := s.peek(); first != '[' {
		s.skip()
		s.r.tools, s.r.closed = span{from, s.i}, first != 'n'
		return
	}
	s.elements("tools", func(n int) {
		if n >= MaxTools {
			s.fail("too many tools")
			return
		}
		start := s.i
		name := s.toolName()
		at := span{start, s.i}
		s.r.toolList = append(s.r.toolList, at)
		s.r.Tools = append(s.r.Tools, Tool{Name: name, Raw: at.of(s.data)})
	})
	s.r.tools = span{from, s.i}
	s.r.Fixed += s.i - from
}

// toolName reads a definition; in chat the name stands one level below.
func (s *scanner) toolName() (name string) {
	var seen uint32
	if s.peek() != '{' {
		s.skip()
		return ""
	}
	s.members("the tool", func(key []byte) {
		switch k := string(key); {
		case k == "name":
			s.once(&seen, 1, k)
			if s.peek() != '"' {
				s.skip()
				return
			}
			name = s.text()
		case s.r.Dialect == Chat && (k == "function" || k == "custom"):
			s.once(&seen, 2, k)
			name = s.member("name")
		default:
			s.skip()
		}
	})
	return name
}
