package json

import (
	"bytes"
	"unicode/utf8"
)

// CutString decodes the JSON string that data begins with: its text, its bytes with the quotes, and what
// stands behind it. ok is false where it is cut off or not valid, or has bytes that are not UTF-8, which
// [Unmarshal] would replace. It is for readers of one exact form that let encoding/json, which reads each
// byte several times, take all others.
func CutString(data []byte) (text string, raw, rest []byte, ok bool) {
	if len(data) == 0 || data[0] != '"' {
		return "", nil, nil, false
	}
	escaped := false
	for i := 1; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return "", nil, nil, false
		case c == '"':
			raw, rest = data[:i+1], data[i+1:]
			if !utf8.Valid(raw) {
				return "", nil, nil, false
			}
			if !escaped {
				return string(raw[1:i]), raw, rest, true
			}
			out, ok := AppendText(make([]byte, 0, len(raw)), raw)
			return string(out), raw, rest, ok
		}
	}
	return "", nil, nil, false
}

// AppendText appends the text of a JSON string, which has its quotes, to dst: half a surrogate pair is U+FFFD, bytes that
// are not UTF-8 stay. ok is false where an escape is none.
func AppendText(dst, raw []byte) (text []byte, ok bool) {
	s := raw[1 : len(raw)-1]
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			return append(dst, s...), true
		}
		if n+1 == len(s) {
			return dst, false
		}
		dst = append(dst, s[:n]...)
		b := s[n+1]
		s = s[n+2:]
		switch b {
		case 'n':
			b = '\n'
		case 't':
			b = '\t'
		case 'r':
			b = '\r'
		case 'b':
			b = '\b'
		case 'f':
			b = '\f'
		case '"', '\\', '/':
		case 'u':
			if dst, s, ok = codePoint(dst, s); !ok {
				return dst, false
			}
			continue
		default:
			return dst, false
		}
		dst = append(dst, b)
	}
}

// codePoint appends what stands behind \u.
func codePoint(dst, s []byte) (out, rest []byte, ok bool) {
	r, ok := hex4(s)
	if !ok {
		return dst, s, false
	}
	s = s[4:]
	if r >= 0xd800 && r < 0xdc00 && len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
		if low, ok := hex4(s[2:]); ok && low >= 0xdc00 && low < 0xe000 {
			return utf8.AppendRune(dst, (r-0xd800)<<10|(low-0xdc00)+0x10000), s[6:], true
		}
	}
	return utf8.AppendRune(dst, r), s, true
}

func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, b := range s[:4] {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			b = b | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(b)
	}
	return r, true
}
