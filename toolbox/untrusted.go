package toolbox

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// ours are the names of tags by which we, or programs in front of a model, speak to it. What a source writes must not
// look like one of them.
var ours = [...]string{
	"system-reminder", "memory_cleanup", "tidemark:", "system", "tool_use", "tool_result", "function_calls", "function_results", "invoke", "antml:",
}

// Harmless is text of a source as it is shown: valid, without control characters but line ends and tabs, and
// without marks that only change the direction or hide what stands there; an angle bracket that would begin a tag of
// ours becomes ‹. It is the same for the same text, and harmless text stays as it is.
func Harmless(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if r == '\r' || unicode.IsControl(r) || hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		if s = s[i+1:]; isOurs(s) {
			b.WriteString("‹")
		} else {
			b.WriteByte('<')
		}
	}
}

// hidden reports characters that are not seen and change what is read: marks of direction, and the tag characters of
// plane 14, which spell a text that only a machine reads.
func hidden(r rune) bool {
	return r == 0x200B || r == 0x2060 || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r >= 0xE0000 && r <= 0xE007F || r == 0xFEFF
}

// isOurs reports whether a tag of ours goes on behind an angle bracket.
func isOurs(rest string) bool {
	const longest = 32
	rest = strings.ToLower(strings.TrimLeft(rest[:min(len(rest), longest)], " \t\n/!-\u200c\u200d"))
	for _, name := range ours {
		if after, ok := strings.CutPrefix(rest, name); ok && (strings.HasSuffix(name, ":") || after == "" || !wordByte(after[0])) {
			return true
		}
	}
	return false
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
}

// cut shortens a text to a number of bytes, at a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "…"
	n := max(0, most-len(mark))
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// harmlessJSON is a JSON value with all its texts harmless, compact. Where nothing was changed, the keys of objects
// stay in their order. A key that is not harmless is an error: another one would mean something else.
func harmlessJSON(raw []byte) ([]byte, error) {
	v, err := json.DecodeAny(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, tidemark.ErrInvalid)
	}
	walked, changed, err := harmlessValue(v)
	if err != nil {
		return nil, err
	}
	if changed {
		return json.Marshal(walked)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func harmlessValue(v any) (out any, changed bool, err error) {
	switch v := v.(type) {
	case string:
		s := Harmless(v)
		return s, s != v, nil
	case []any:
		for i := range v {
			w, c, err := harmlessValue(v[i])
			if err != nil {
				return nil, false, err
			}
			v[i], changed = w, changed || c
		}
	case map[string]any:
		for key, e := range v {
			if Harmless(key) != key {
				return nil, false, fmt.Errorf("the key %q: %w", cut(key, 40), tidemark.ErrInvalid)
			}
			w, c, err := harmlessValue(e)
			if err != nil {
				return nil, false, err
			}
			v[key], changed = w, changed || c
		}
	}
	return v, changed, nil
}
