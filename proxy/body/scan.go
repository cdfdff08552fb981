package body

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// Scan reads a request. What it cannot read is tidemark.ErrInvalid, and a body that is too big
// tidemark.ErrTooLarge: such a body is to be passed on as it is.
func Scan(d Dialect, raw []byte) (*Request, error) {
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("scan the request: %d bytes are more than %d: %w", len(raw), MaxBytes, tidemark.ErrTooLarge)
	}
	s := scanner{cursor: cursor{jsonscan.From(raw, len(raw)-len(json.Unmarked(raw)), MaxDepth)}, r: &Request{Dialect: d, raw: raw}, left: MaxBlocks}
	s.request()
	if err := s.why(); err != nil {
		return nil, fmt.Errorf("scan the request: %w", err)
	}
	return s.r, nil
}

// scanner reads one request.
type scanner struct {
	cursor
	r    *Request
	left int // blocks that may follow

	part    string // what is being read, for errors
	message int    // that is being read, from 1; 0 for none

	cacheKey string // prompt_cache_key
}

// why is what is wrong with the request, and where.
func (s *scanner) why() error {
	var e *jsonscan.Error
	if !errors.As(s.Err(), &e) {
		return s.Err()
	}
	return &ReadError{Part: s.part, Message: s.message - 1, Byte: int(e.At), Why: e.Why}
}

func (s *scanner) request() {
	if !s.Open('{') {
		s.Fail("the body is no object")
		return
	}
	seen := map[string]bool{} // those that count may stand only once
	for s.More() {
		at := s.At()
		key := string(s.Key())
		if s.part = key; seen[key] {
			s.Fail("the key " + key + " stands twice")
		}
		seen[key] = s.key(key, at)
		if s.Err() == nil {
			s.part, s.message = "", 0
		}
	}
	s.End()
	if !seen["messages"] {
		s.Fail("there are no messages")
	}
	if s.r.Dialect == Chat && s.Err() == nil {
		if s.r.User == "" {
			s.r.User = s.cacheKey
		}
		s.convert()
	}
}

// key reads a member and reports whether it counts; at is where its key stands.
func (s *scanner) key(key string, at int) bool {
	switch key {
	case "model":
		s.r.Model = s.words()
	case "stream":
		s.r.Stream = s.Peek() == 't'
		s.Skip()
	case "max_tokens":
		s.max()
	case "tools":
		s.toolDefs()
	case "tool_choice":
		s.choice()
	case "messages":
		s.r.before = at
		from := s.At()
		if s.r.Dialect == Chat {
			s.chatMessages()
		} else {
			s.messages()
		}
		s.r.list = span{From: from, To: s.At()}
	default:
		if s.r.Dialect == Chat {
			return s.chatKey(key)
		}
		return s.messagesKey(key)
	}
	return true
}

// messagesKey reads a member that only the Messages API has.
func (s *scanner) messagesKey(key string) bool {
	switch key {
	case "system":
		v := s.Value()
		s.r.Fixed += v.To - v.From
	case "metadata":
		s.r.User = s.member("user_id")
	default:
		s.Skip()
		return false
	}
	return true
}

// member reads a value and returns the text that it has under a name, if it is an object and has one.
func (s *scanner) member(name string) (found string) {
	if s.Peek() != '{' {
		s.Skip()
		return ""
	}
	var seen uint32
	s.Members(s.part, func(key []byte) {
		if string(key) != name {
			s.Skip()
			return
		}
		s.once(&seen, 1, name)
		found = s.words()
	})
	return found
}

// max reads the bound of the answer; one that is no whole number says nothing.
func (s *scanner) max() {
	v := s.Value()
	if n, err := strconv.ParseInt(string(v.Of(s.r.raw)), 10, 64); err == nil && n > 0 {
		s.r.Max = tidemark.Tokens(n)
	}
}

// choice reads tool_choice: an object with a type, or in chat the word itself.
func (s *scanner) choice() {
	var word string
	if s.Peek() == '"' {
		word = s.Text()
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
	s.Elements("messages", func(n int) {
		s.part, s.message = "messages["+strconv.Itoa(n)+"]", n+1
		if n >= MaxMessages {
			s.Fail("too many messages")
			return
		}
		from := s.At()
		it := s.item(&s.left)
		s.r.Items = append(s.r.Items, it)
		s.r.at = append(s.r.at, span{From: from, To: s.At()})
	})
}

// toolDefs reads the definitions; null is the same as none, and so is what is no list.
func (s *scanner) toolDefs() {
	from := s.At()
	if first := s.Peek(); first != '[' {
		s.Skip()
		s.r.tools, s.r.closed = span{From: from, To: s.At()}, first != 'n'
		return
	}
	s.Elements("tools", func(n int) {
		if n >= MaxTools {
			s.Fail("too many tools")
			return
		}
		start := s.At()
		name := s.toolName()
		at := span{From: start, To: s.At()}
		s.r.toolList = append(s.r.toolList, at)
		s.r.Tools = append(s.r.Tools, Tool{Name: name, Raw: at.Of(s.r.raw)})
	})
	s.r.tools = span{From: from, To: s.At()}
	s.r.Fixed += s.At() - from
}

// toolName reads a definition; in chat the name stands one level below.
func (s *scanner) toolName() (name string) {
	var seen uint32
	if s.Peek() != '{' {
		s.Skip()
		return ""
	}
	s.Members("the tool", func(key []byte) {
		switch k := string(key); {
		case k == "name":
			s.once(&seen, 1, k)
			name = s.words()
		case s.r.Dialect == Chat && (k == "function" || k == "custom"):
			s.once(&seen, 2, k)
			name = s.member("name")
		default:
			s.Skip()
		}
	})
	return name
}
