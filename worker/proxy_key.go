package worker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// proxyKey names the conversations that a client has under a credential, and under the name by which it tells
// one of them from others. Whoever has neither never meets them. build/proxy.mjs says the same, by
// testdata/proxies.json.
func proxyKey(credential, session string) tidemark.Key {
	sum := sha256.Sum256([]byte(credential + "\n" + session))
	return tidemark.Key("agent:main:" + proxyChannel + ":dm:" + hex.EncodeToString(sum[:keyBytes]))
}

// proxyChannel holds the conversations of clients that keep their history themselves.
const proxyChannel = "proxy"

// keyBytes are enough of a hash that nobody finds a second name with the same.
const keyBytes = 16

// sessionOf is the name by which a request tells its conversation from others of its client: the id that it
// gives of its user, or else a hash of what was said first. It is empty for a body that is none of this API.
// Nothing but these is decoded: a body has megabytes, and the front of the Worker does the same in JavaScript.
func sessionOf(raw []byte, chat bool) string {
	ids := []string{"metadata"}
	if chat {
		ids = []string{"user", "prompt_cache_key"}
	}
	found, first, s := make([]span, len(ids)+1), len(ids), scan{raw: raw}
	if !s.object(s.begin(), append(ids, "messages"), found) {
		return ""
	}
	for _, at := range found[:first] {
		if !chat && at.to > 0 {
			inner := make([]span, 1)
			s.object(at.from, []string{"user_id"}, inner)
			at = inner[0]
		}
		if id, ok := s.text(at); ok && id != "" {
			return id
		}
	}
	text, ok := s.first(found[first], chat)
	if !ok {
		return ""
	}
	return string(tidemark.HashOf([]byte(text)))
}

// userOf is what a body of chat completions says of its user, empty for nothing.
func userOf(raw []byte) string {
	found, s := make([]span, 1), scan{raw: raw}
	if !s.object(s.begin(), []string{"user"}, found) {
		return ""
	}
	user, _ := s.text(found[0])
	return user
}

// span is where a value stands; the zero value is none, since no value stands at the very start of an object.
type span struct{ from, to int }

// scan reads JSON without decoding it: strings and brackets are all that it looks at, so what it finds in what
// is no JSON means nothing, and nothing in it recurses.
type scan struct{ raw []byte }

// begin is where the text begins, behind a byte order mark.
func (s scan) begin() int { return len(s.raw) - len(json.Unmarked(s.raw)) }

// object finds the members of an object by name, the last of those that are given twice. It is false for
// what is no object.
func (s scan) object(at int, names []string, found []span) bool {
	at = s.space(at)
	if s.at(at) != '{' {
		return false
	}
	if at = s.space(at + 1); s.at(at) == '}' {
		return true
	}
	for {
		end := s.end(at)
		if s.at(at) != '"' || end < 0 {
			return false
		}
		name := s.name(span{at, end})
		if at = s.space(end); s.at(at) != ':' {
			return false
		}
		at = s.space(at + 1)
		if end = s.end(at); end < 0 {
			return false
		}
		for i, n := range names {
			if n == name {
				found[i] = span{at, end}
			}
		}
		switch at = s.space(end); s.at(at) {
		case '}':
			return true
		case ',':
			at = s.space(at + 1)
		default:
			return false
		}
	}
}

// each gives the elements of a list in their order until f returns false.
func (s scan) each(list span, f func(span) bool) {
	at := list.from
	if s.at(at) != '[' {
		return
	}
	for {
		at = s.space(at + 1)
		end := s.end(at)
		if end < 0 || !f(span{at, end}) {
			return
		}
		if at = s.space(end); s.at(at) != ',' {
			return
		}
	}
}

// first is the plain text of the first message with its role, without what agents put into it. The role is empty where
// there is none, as in body.Request.First. Instructions of chat completions are the same in all conversations of a
// client, so they are no message.
func (s scan) first(list span, chat bool) (text string, ok bool) {
	s.each(list, func(m span) bool {
		parts := make([]span, 2)
		if !s.object(m.from, []string{"role", "content"}, parts) {
			clear(parts)
		}
		role, _ := s.text(parts[0])
		if chat && (role == "system" || role == "developer") {
			return true
		}
		text, ok = role+"\n"+s.plain(parts[1]), true
		return false
	})
	return text, ok
}

// plain is the text of a message's content.
func (s scan) plain(content span) string {
	var texts []string
	add := func(at span) {
		t, _ := s.text(at)
		if t = strings.TrimSpace(tidemark.StripReminders(t)); t != "" {
			texts = append(texts, t)
		}
	}
	add(content)
	s.each(content, func(block span) bool {
		parts := make([]span, 2)
		if s.object(block.from, []string{"type", "text"}, parts) {
			if kind, _ := s.text(parts[0]); kind == tidemark.TypeText {
				add(parts[1])
			}
		}
		return true
	})
	return strings.Join(texts, "\n")
}

// text decodes a string; anything else is none.
func (s scan) text(at span) (text string, ok bool) {
	raw := s.raw[at.from:at.to]
	if len(raw) < 2 || raw[0] != '"' || !utf8.Valid(raw) {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 && bytes.IndexFunc(raw, func(r rune) bool { return r < ' ' }) < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// maxScanned is the length of the longest of the names that are looked for, with every character escaped.
const maxScanned = 6*16 + 2

func (s scan) name(at span) string {
	if at.to-at.from > maxScanned {
		return ""
	}
	name, _ := s.text(at)
	return name
}

// end is where the value ends that begins at a place, -1 for none.
func (s scan) end(at int) int {
	depth := 0
	for i := at; i < len(s.raw); i++ {
		switch s.raw[i] {
		case '"':
			if i = s.quote(i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 && i == at {
				return -1
			}
			if depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r', ':':
			if depth == 0 && i == at {
				return -1
			}
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// quote is where the string ends that begins at a place, -1 for one that does not.
func (s scan) quote(at int) int {
	for i := at + 1; ; i++ {
		n := bytes.IndexByte(s.raw[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for j := i - 1; j > at && s.raw[j] == '\\'; j-- {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

func (s scan) space(at int) int {
	for at < len(s.raw) && (s.raw[at] == ' ' || s.raw[at] == '\t' || s.raw[at] == '\n' || s.raw[at] == '\r') {
		at++
	}
	return at
}

// at is a byte, 0 behind the last.
func (s scan) at(i int) byte {
	if i >= len(s.raw) {
		return 0
	}
	return s.raw[i]
}
