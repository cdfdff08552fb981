package body

import (
	"bytes"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// chatMessage is where a message of chat completions stands in the body.
type chatMessage struct {
	at      span
	role    string
	item    int    // that it belongs to; -1 for instructions
	id      span   // tool_call_id, with its quotes
	content span   // empty if there is none
	bare    bool   // content is a string
	parts   []span // content as a list
	fixed   bool   // of a form that is not known
	calls   span   // tool_calls, with its brackets; empty if there are none
	calling []chatCall
}

// chatCall is one call of tool_calls.
type chatCall struct {
	at, id, name span
	args         span // a string with its quotes, or JSON
}

// chatItem is what an item was made of.
type chatItem struct {
	first, last int // messages
	blocks      []origin
}

// origin is where a block of a converted item stands.
type origin struct {
	message int
	at      span
	call    int // of the message's calls, -1 for a part or a string
}

// chatKey reads a member that only chat completions have.
func (s *scanner) chatKey(key string) bool {
	switch key {
	case "user":
		s.r.User = s.words()
	case "prompt_cache_key":
		s.cacheKey = s.words()
	case "max_completion_tokens":
		s.max()
	case "n": // an answer of several has no one that the history goes on with
		if at := s.Value(); s.Err() == nil && string(at.Of(s.r.raw)) != "1" && string(at.Of(s.r.raw)) != "null" {
			s.Fail("several answers are asked for")
		}
		return false
	default:
		s.Skip()
		return false
	}
	return true
}

// chatMessages reads the messages and makes items of them.
func (s *scanner) chatMessages() {
	s.Elements("messages", func(n int) {
		s.part, s.message = "messages["+strconv.Itoa(n)+"]", n+1
		if n >= MaxMessages {
			s.Fail("too many messages")
			return
		}
		m := s.chatMessage()
		if s.Err() == nil {
			s.sort(m, n)
		}
	})
}

// sort gives a message to its item.
func (s *scanner) sort(m chatMessage, n int) {
	r := s.r
	last := len(r.chatItems) - 1
	switch {
	case m.role == "system" || m.role == "developer":
		m.item = -1
		r.Fixed += m.at.To - m.at.From
	case m.results() && n > 0 && r.chat[n-1].results():
		m.item = last
		r.chatItems[last].last = n
	default:
		m.item = last + 1
		r.chatItems = append(r.chatItems, chatItem{first: n, last: n})
	}
	r.chat = append(r.chat, m)
}

// results reports a message that is the result of a call.
func (m *chatMessage) results() bool { return m.role == "tool" && !m.fixed }

func (s *scanner) chatMessage() chatMessage {
	var m chatMessage
	var seen uint32
	first := s.Peek()
	m.at.From = s.At()
	if first != '{' {
		s.Skip()
		m.at.To, m.fixed = s.At(), true
		return m
	}
	s.Members("the message", func(key []byte) {
		switch string(key) {
		case "role":
			s.once(&seen, 1, "role")
			m.role = s.words()
		case "content":
			s.once(&seen, 2, "content")
			from := s.At()
			s.chatContent(&m)
			m.content = span{From: from, To: s.At()}
		case "tool_calls":
			s.once(&seen, 4, "tool_calls")
			from := s.At()
			s.chatCalls(&m)
			m.calls = span{From: from, To: s.At()}
		case "tool_call_id":
			s.once(&seen, 8, "tool_call_id")
			m.id = s.quoted()
		default:
			s.Skip()
		}
	})
	m.at.To = s.At()
	switch m.role {
	case "system", "developer", "user", "assistant":
	case "tool":
		m.fixed = m.fixed || m.id.To == 0
	default:
		m.fixed = true
	}
	return m
}

// chatContent reads a string, a list of parts, or null.
func (s *scanner) chatContent(m *chatMessage) {
	switch s.Peek() {
	case '"':
		s.String()
		m.bare = true
		return
	case '[':
	default:
		m.fixed = m.fixed || s.Peek() != 'n'
		s.Skip()
		return
	}
	s.Elements("content", func(int) {
		if s.left--; s.left < 0 {
			s.Fail("too many parts")
			return
		}
		b := s.block()
		m.parts = append(m.parts, span{From: int(b.From), To: int(b.To)})
	})
}

// chatCalls reads the calls of a message; null is none. One of another form makes the message fixed.
func (s *scanner) chatCalls(m *chatMessage) {
	if first := s.Peek(); first != '[' {
		m.fixed = m.fixed || first != 'n'
		s.Skip()
		return
	}
	s.Elements("tool_calls", func(int) {
		if s.left--; s.left < 0 {
			s.Fail("too many calls")
			return
		}
		if k, ok := s.chatCall(); ok {
			m.calling = append(m.calling, k)
		} else {
			m.fixed = true
		}
	})
}

// chatCall reads a call; ok is false for one without id, name or arguments.
func (s *scanner) chatCall() (k chatCall, ok bool) {
	var seen uint32
	first := s.Peek()
	k.at.From = s.At()
	if first != '{' {
		s.Skip()
		return k, false
	}
	s.Members("the call", func(key []byte) {
		switch string(key) {
		case "id":
			s.once(&seen, 1, "id")
			k.id = s.quoted()
		case "function", "custom":
			s.once(&seen, 2, "function")
			var inner uint32
			if s.Peek() != '{' {
				s.Skip()
				return
			}
			s.Members("the function", func(key []byte) {
				switch string(key) {
				case "name":
					s.once(&inner, 1, "name")
					k.name = s.quoted()
				case "arguments", "input":
					s.once(&inner, 2, "arguments")
					k.args = s.Value()
				default:
					s.Skip()
				}
			})
		default:
			s.Skip()
		}
	})
	k.at.To = s.At()
	return k, k.id.To > 0 && k.name.To > 0 && k.args.To > 0
}

// quoted reads a string and returns where it stands, with its quotes; nothing for another value.
func (s *scanner) quoted() span {
	if s.Peek() != '"' {
		s.Skip()
		return span{}
	}
	return s.Value()
}

// convert makes the items of chat completions.
func (s *scanner) convert() {
	r := s.r
	s.part, s.message = "", 0
	left := MaxBlocks
	r.Items = make([]Item, 0, len(r.chatItems))
	for n := range r.chatItems {
		raw := r.convert(&r.chatItems[n])
		c := over(raw)
		it := c.item(&left)
		if c.End(); c.Err() != nil {
			s.part, s.message = "messages["+strconv.Itoa(r.chatItems[n].first)+"]", r.chatItems[n].first+1
			s.Stop(c.Err())
			return
		}
		it.fixed = it.fixed || r.chat[r.chatItems[n].first].fixed
		for k := range it.blocks {
			if b := &it.blocks[k]; b.kind == call || b.kind == result {
				if r.partly(r.chatItems[n].blocks[k]) {
					b.kind = other
				}
			}
		}
		r.Items = append(r.Items, it)
	}
}

// partly reports that a block was a part of a content, neither a call nor a result.
func (r *Request) partly(o origin) bool { return o.call < 0 && !r.chat[o.message].results() }

// convert is an item as a message of the Messages API; it notes where each block comes from.
func (r *Request) convert(ci *chatItem) []byte {
	first := r.chat[ci.first]
	role := first.role
	if first.results() {
		role = string(tidemark.User)
	}
	dst := make([]byte, 0, r.chat[ci.last].at.To-first.at.From+64)
	dst = append(append(append(dst, `{"role":`...), quote(role)...), `,"content":`...)
	if first.bare && !first.results() && len(first.calling) == 0 {
		ci.blocks = append(ci.blocks, origin{ci.first, first.content, -1})
		dst = append(dst, first.content.Of(r.raw)...)
		return append(dst, '}')
	}
	dst = append(dst, '[')
	begin := len(dst)
	for n := ci.first; n <= ci.last; n++ {
		m := r.chat[n]
		if m.results() {
			ci.blocks = append(ci.blocks, origin{n, m.at, -1})
			dst = r.appendResult(separated(dst, begin), m)
			continue
		}
		if m.bare && m.content.To-m.content.From > 2 {
			ci.blocks = append(ci.blocks, origin{n, m.content, -1})
			dst = append(separated(dst, begin), textBlock(m.content.Of(r.raw))...)
		}
		for _, at := range m.parts {
			ci.blocks = append(ci.blocks, origin{n, at, -1})
			dst = appendPart(separated(dst, begin), at.Of(r.raw))
		}
		for k, call := range m.calling {
			ci.blocks = append(ci.blocks, origin{n, call.at, k})
			dst = r.appendCall(separated(dst, begin), call)
		}
	}
	return append(dst, ']', '}')
}

// separated is dst with a comma, if something stands behind begin.
func separated(dst []byte, begin int) []byte {
	if len(dst) > begin {
		dst = append(dst, ',')
	}
	return dst
}

func (r *Request) appendResult(dst []byte, m chatMessage) []byte {
	dst = append(dst, `{"type":"tool_result","tool_use_id":`...)
	dst = append(dst, m.id.Of(r.raw)...)
	switch {
	case m.bare:
		dst = append(append(dst, `,"content":`...), m.content.Of(r.raw)...)
	case len(m.parts) > 0:
		dst = append(dst, `,"content":[`...)
		begin := len(dst)
		for _, at := range m.parts {
			dst = appendPart(separated(dst, begin), at.Of(r.raw))
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func (r *Request) appendCall(dst []byte, k chatCall) []byte {
	dst = append(dst, `{"type":"tool_use","id":`...)
	dst = append(dst, k.id.Of(r.raw)...)
	dst = append(dst, `,"name":`...)
	dst = append(dst, k.name.Of(r.raw)...)
	dst = append(dst, `,"input":`...)
	args := k.args.Of(r.raw)
	if args[0] == '"' {
		args = bytes.TrimSpace(jsonscan.Unquoted(args))
	}
	switch {
	case len(args) == 0:
		dst = append(dst, `{}`...)
	case args[0] == '{' && json.Valid(args):
		dst = append(dst, args...)
	default:
		dst = append(dst, `{"arguments":`...)
		dst = append(append(dst, quote(string(jsonscan.Unquoted(k.argsQuoted(r.raw))))...), '}')
	}
	return append(dst, '}')
}

// argsQuoted is the arguments as a string with its quotes.
func (k chatCall) argsQuoted(raw []byte) []byte {
	args := k.args.Of(raw)
	if args[0] == '"' {
		return args
	}
	return quote(string(args))
}

// appendPart appends a part as a block: an image in the form of the Messages API, all others as they are.
func appendPart(dst, part []byte) []byte {
	url := imageURL(part)
	if url == "" {
		return append(dst, part...)
	}
	dst = append(dst, `{"type":"image","source":`...)
	if media, data, ok := dataURL(url); ok {
		dst = append(dst, `{"type":"base64","media_type":`...)
		dst = json.AppendString(dst, media)
		dst = append(dst, `,"data":`...)
		dst = json.AppendString(dst, data)
	} else {
		dst = append(dst, `{"type":"url","url":`...)
		dst = json.AppendString(dst, url)
	}
	return append(dst, '}', '}')
}
