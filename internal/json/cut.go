package json

import "unicode/utf8"

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
			if text, ok = unescape(raw[1:i]); ok {
				return text, raw, rest, true
			}
			err := Unmarshal(raw, &text)
			return text, raw, rest, err == nil
		}
	}
	return "", nil, nil, false
}

// unescape gives the text of what stands between the quotes of a string, but for one with code points in digits.
func unescape(raw []byte) (string, bool) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '\\' {
			i++ // there is one: it would have escaped the quote
			switch c = raw[i]; c {
			case '"', '\\', '/':
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			default:
				return "", false
			}
		}
		out = append(out, c)
	}
	return string(out), true
}
