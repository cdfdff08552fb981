package tidemark

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Chain returns the identity of a history that ends with m: a hash of the previous link and of
// what makes a message the same message. Two clients that send the same conversation get the same
// chain although cache markers, thinking, signatures and system reminders moved between requests.
//
// Identity is the role and the blocks without cache_control, thinking and <system-reminder> spans;
// white space around a text does not count, since a reminder behind it brings some; string content
// equals one text block; a call is its id, name and canonical input; a result its
// id and the hash of its content. Blocks of other types count with their JSON as sent, less
// cache_control.
func Chain(prev Hash, m Message) Hash {
	h := sha256.New()
	field(h, "prev", string(prev))
	field(h, "role", string(m.Role))
	for _, b := range m.Content {
		identify(h, b)
	}
	return Hash(hex.EncodeToString(h.Sum(nil)))
}

// field writes a tagged, length-prefixed value, so that no two lists of fields write alike.
func field(h hash.Hash, tag, value string) {
	n := len(value)
	h.Write([]byte{byte(len(tag)), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	h.Write([]byte(tag))
	h.Write([]byte(value))
}

// Counts reports whether a block is part of what its message is.
func Counts(b Block) bool {
	switch b.Type {
	case TypeThinking, TypeRedactedThinking:
		return false
	case TypeText:
		return strings.TrimSpace(StripReminders(b.Text)) != ""
	}
	return true
}

func identify(h hash.Hash, b Block) {
	if !Counts(b) {
		return
	}
	switch b.Type {
	case TypeText:
		field(h, "text", strings.TrimSpace(StripReminders(b.Text)))
	case TypeToolUse:
		field(h, "call", b.ID)
		field(h, "name", b.Name)
		field(h, "input", canonical(b.Input, false))
	case TypeToolResult:
		sub := sha256.New()
		for _, c := range b.Content {
			identify(sub, c)
		}
		field(h, "result", b.ToolUseID)
		field(h, "content", hex.EncodeToString(sub.Sum(nil)))
	default:
		field(h, "block", canonical(b.AppendJSON(nil), true)) // its type is part of it
	}
}

// canonical returns JSON with sorted keys; numbers keep their form. Of a block its cache_control is
// left out, but not of the arguments of a call. What is not JSON stands for itself.
func canonical(raw json.RawMessage, block bool) string {
	if len(raw) == 0 {
		return "{}"
	}
	v, err := json.DecodeAny(raw)
	if err != nil {
		return string(raw)
	}
	if m, ok := v.(map[string]any); ok && block {
		delete(m, "cache_control")
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// StripReminders removes <system-reminder> spans, which agents put into user messages and change
// between requests, and the white space around what remains.
func StripReminders(s string) string {
	const open, end = "<system-reminder>", "</system-reminder>"
	if !strings.Contains(s, open) {
		return s
	}
	var out strings.Builder
	for {
		i := strings.Index(s, open)
		if i < 0 {
			break
		}
		j := strings.Index(s[i:], end)
		if j < 0 {
			break
		}
		out.WriteString(s[:i])
		s = s[i+j+len(end):]
	}
	out.WriteString(s)
	return strings.TrimSpace(out.String())
}
