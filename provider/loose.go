package provider

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// The types of this file read what a provider answers as it was meant. An answer was paid for, and a field in another
// form than the documentation has (12.0, "77", null, an object where there was a string) must not cost it: what cannot be
// read is as if it were not there.

// loose is a value that is zero where it has another form.
type loose[T any] struct{ is T }

// UnmarshalJSON never fails, for the reason above.
func (l *loose[T]) UnmarshalJSON(data []byte) error {
	var v T
	if json.Unmarshal(data, &v) == nil {
		l.is = v
	}
	return nil
}

// looseInt is a whole number: 12, 12.0, 1e1, "77". Anything else is not set.
type looseInt struct {
	n   int64
	set bool
}

// UnmarshalJSON exists because of these forms.
func (i *looseInt) UnmarshalJSON(data []byte) error {
	*i = looseInt{}
	text := strings.TrimSpace(strings.Trim(string(data), `"`))
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*i = looseInt{n, true}
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		*i = looseInt{int64(f), true}
	}
	return nil
}

// tokens is a number of tokens, 0 where there is none.
func (i looseInt) tokens() tidemark.Tokens { return tidemark.Tokens(i.n) }

// looseText is a string where some endpoints send null, a list of text parts, a number (Workers AI,
// where a token is a numeral) or, for arguments, an object; numbers and objects keep their JSON. Half of a surrogate
// pair at its beginning or end is kept, see [halves].
type looseText string

// UnmarshalJSON exists because of these forms.
func (t *looseText) UnmarshalJSON(data []byte) error {
	switch {
	case len(data) == 0 || string(data) == "null":
		return nil
	case data[0] == '[':
		var parts []loose[struct {
			Text looseText `json:"text"`
		}]
		if json.Unmarshal(data, &parts) == nil {
			for _, p := range parts {
				*t += p.is.Text
			}
		}
		return nil
	case data[0] != '"':
		*t = looseText(data)
		return nil
	}
	*t = looseText(withHalves(data))
	return nil
}

// looseName is the text of an id or a name: a number is one, too; what has parts is none.
type looseName string

// UnmarshalJSON exists because of these forms.
func (t *looseName) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] == '{' || data[0] == '[' || string(data) == "null" {
		return nil
	}
	*t = looseName(scalar(data))
	return nil
}

// Bytes of half a surrogate pair in UTF-8, which has none: text that is cut by UTF-16 units, as some servers cut their
// deltas, comes with the escapes of the halves in two pieces, and a decoder makes a replacement character of each.
const (
	halfBytes = 3
	highLead  = "\xed" // then 0xa0 to 0xaf of the first half, 0xb0 to 0xbf of the second
)

// withHalves decodes a JSON string; a low surrogate at its beginning and a high one at its end stand in it as three
// bytes each.
func withHalves(data []byte) string {
	var s, before, behind string
	if bytes.Contains(data, []byte(`\u`)) {
		if r, ok := escaped(data[1:]); ok && 0xdc00 <= r && r <= 0xdfff {
			before, data = half(r), append([]byte{'"'}, data[1+escapeBytes:]...)
		}
		if at := len(data) - 1 - escapeBytes; at > 0 {
			if r, ok := escaped(data[at:]); ok && 0xd800 <= r && r <= 0xdbff && backslashes(data[:at])%2 == 0 {
				behind, data = half(r), append(bytes.Clone(data[:at]), '"')
			}
		}
	}
	if json.Unmarshal(data, &s) != nil {
		return ""
	}
	return before + s + behind
}

// escapeBytes is the length of an escape such as \ud83d.
const escapeBytes = 6

// escaped returns the code point of the escape that data begins with.
func escaped(data []byte) (rune, bool) {
	if len(data) < escapeBytes || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:escapeBytes]), 16, 16)
	return rune(n), err == nil
}

// backslashes counts those at the end of data.
func backslashes(data []byte) int { return len(data) - len(bytes.TrimRight(data, `\`)) }

// half is a surrogate in three bytes.
func half(r rune) string {
	return string([]byte{highLead[0], 0x80 | byte(r>>6&0x3f), 0x80 | byte(r&0x3f)})
}

// halfAt is the surrogate that s begins with, 0 for none.
func halfAt(s string) rune {
	if len(s) < halfBytes || s[0] != highLead[0] || s[1] < 0xa0 {
		return 0
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f)
}

// halves joins pieces of a text that were cut between the halves of a surrogate pair. The zero value is ready.
type halves struct{ held string }

// next returns a piece as a reader may see it: with the half that the piece before ended with, without the one that it
// ends with itself.
func (h *halves) next(piece string) string {
	if piece == "" {
		return ""
	}
	s := h.held + piece
	h.held = ""
	if first := halfAt(s); first >= 0xd800 && first < 0xdc00 {
		if second := halfAt(s[halfBytes:]); second >= 0xdc00 {
			s = string(0x10000+(first-0xd800)<<10+(second-0xdc00)) + s[2*halfBytes:]
		}
	}
	if at := len(s) - halfBytes; at >= 0 {
		if r := halfAt(s[at:]); r != 0 && r < 0xdc00 {
			s, h.held = s[:at], s[at:]
		}
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// rest is what stands for a half whose other never came.
func (h *halves) rest() string {
	if h.held == "" {
		return ""
	}
	h.held = ""
	return "\ufffd"
}

// looseBlock decodes a block of an answer. Names and ids that are numbers are text; a field of another form than it has is
// left out, and the block is what remains.
func looseBlock(raw json.RawMessage) (tidemark.Block, error) {
	var b tidemark.Block
	err := b.UnmarshalJSON(raw)
	if err == nil || !json.Valid(raw) || len(raw) == 0 || raw[0] != '{' {
		return b, err
	}
	var sets []field
	_ = jsonscan.Members(raw, func(key, value []byte) { // it is valid
		switch string(key) {
		case "type", "text", "thinking", "id", "name", "tool_use_id", "signature":
			var name looseName
			if value[0] != '"' && name.UnmarshalJSON(value) == nil {
				sets = append(sets, field{Key: string(key), Value: json.AppendString(nil, string(name))})
			}
		case "is_error":
			if string(value) != "true" && string(value) != "false" {
				sets = append(sets, field{Key: string(key)})
			}
		case "source":
			if value[0] != '{' {
				sets = append(sets, field{Key: string(key)})
			}
		}
	})
	err = b.UnmarshalJSON(jsonscan.Set(nil, raw, sets...))
	return b, err
}
