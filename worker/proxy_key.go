package worker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
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
	names := []string{"messages", "metadata"}
	if chat {
		names = []string{"messages", "user", "prompt_cache_key"}
	}
	found, ok := members(raw, names...)
	if !ok {
		return ""
	}
	for _, id := range found[1:] {
		if !chat {
			inner, _ := members(id, "user_id")
			id = inner[0]
		}
		if id, ok := quoted(id); ok && id != "" {
			return id
		}
	}
	text, ok := firstSaid(found[0], chat)
	if !ok {
		return ""
	}
	return string(tidemark.HashOf([]byte(text)))
}

// userOf is what a body of chat completions says of its user, empty for nothing.
func userOf(raw []byte) string {
	found, ok := members(raw, "user")
	if !ok {
		return ""
	}
	user, _ := quoted(found[0])
	return user
}

// members finds the members of an object by name, as they are written, the last of those that are given twice. It is
// false for what is no object, or breaks off; what was found before is there all the same.
func members(raw []byte, names ...string) (found [][]byte, ok bool) {
	var s jsonscan.Scanner
	s.Reset(raw, 0)
	s.SkipMark()
	found = make([][]byte, len(names))
	if s.Space() != '{' || !s.Open() {
		return found, false
	}
	for m := (jsonscan.Member{}); s.Next(&m); {
		name := string(m.Name)
		if m.Escaped {
			name, _ = quoted(raw[m.At:m.Start])
		}
		if !s.Value() {
			break
		}
		if i := slices.Index(names, name); i >= 0 {
			found[i] = raw[m.Start:s.Pos()]
		}
	}
	return found, s.Err == nil
}

// elements gives the elements of a list in their order, none of what is no list.
func elements(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var s jsonscan.Scanner
		s.Reset(list, 0)
		if s.Space() != '[' || !s.Open() {
			return
		}
		for m := (jsonscan.Member{}); s.Next(&m) && s.Value(); {
			if !yield(list[m.Start:s.Pos()]) {
				return
			}
		}
	}
}

// firstSaid is the plain text of the first message with its role, without what agents put into it. The role is empty where
// there is none, as in body.Request.First. Instructions of chat completions are the same in all conversations of a
// client, so they are no message.
func firstSaid(list []byte, chat bool) (text string, ok bool) {
	for m := range elements(list) {
		parts, whole := members(m, "role", "content")
		if !whole {
			clear(parts)
		}
		role, _ := quoted(parts[0])
		if !chat || role != "system" && role != "developer" {
			return role + "\n" + plainText(parts[1]), true
		}
	}
	return "", false
}

// plainText is the text of a message's content.
func plainText(content []byte) string {
	var texts []string
	add := func(raw []byte) {
		t, _ := quoted(raw)
		if t = strings.TrimSpace(tidemark.StripReminders(t)); t != "" {
			texts = append(texts, t)
		}
	}
	add(content)
	for block := range elements(content) {
		parts, ok := members(block, "type", "text")
		if kind, _ := quoted(parts[0]); ok && kind == tidemark.TypeText {
			add(parts[1])
		}
	}
	return strings.Join(texts, "\n")
}

// quoted decodes a string; anything else is none.
func quoted(raw []byte) (text string, ok bool) {
	if raw = bytes.TrimRight(raw, ": \t\r\n"); len(raw) < 2 || raw[0] != '"' || !utf8.Valid(raw) {
		return "", false
	}
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}
