package trim

import (
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// nameOf is the name of a member, without escapes.
func nameOf(m *jsonscan.Member) []byte {
	if m.Escaped {
		return jsonscan.Unquoted([]byte(`"` + string(m.Name) + `"`))
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
