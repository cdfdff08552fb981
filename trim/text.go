package trim

import (
	"bytes"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/scan"
)

// textOf is the text of a JSON string, given with its quotes.
func textOf(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw[1 : len(raw)-1] // it was scanned: it cannot be
	}
	return []byte(text)
}

// nameOf is the name of a member, without escapes.
func nameOf(m *scan.Member) []byte {
	if m.Escaped {
		return textOf([]byte(`"` + string(m.Name) + `"`))
	}
	return m.Name
}

// appendText appends text as part of a JSON string, on one line and without what is no text.
func appendText(dst []byte, text []byte) []byte {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			dst = append(dst, '?')
		case r < ' ' || r == 0x7F || r == 0x85 || r == 0x2028 || r == 0x2029:
			dst = append(dst, ' ')
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		default:
			dst = append(dst, text[i:i+n]...)
		}
		i += n
	}
	return dst
}
