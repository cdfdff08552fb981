package json

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string, without HTML escapes: the bytes that encoding/json
// gives. Invalid UTF-8 becomes \ufffd; U+2028 and U+2029, which end a line in JavaScript, are
// escaped. It is written out because an encoder for each string costs 3 allocations, which is most
// of the time of a short name.
func AppendString(dst []byte, s string) []byte {
	dst = append(slices.Grow(dst, len(s)+len(s)/16+16), '"')
	for len(s) > 0 {
		if len(s) >= 8 {
			w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
				uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
			if n := unescaped(w); n > 0 {
				dst = binary.LittleEndian.AppendUint64(dst, w)[:len(dst)+n]
				s = s[n:]
				continue
			}
		}
		if c := s[0]; c < utf8.RuneSelf {
			dst = appendASCII(dst, c)
			s = s[1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
		default:
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return append(dst, '"')
}

// unescaped returns how many of 8 bytes, the lowest first, are ASCII and stand for themselves before
// the first that is not. It looks at all at once: in each byte of found the highest bit is set where
// a byte is not ASCII, below a space, a quote or a backslash. A borrow may set it above a true one
// only, and the lowest is what counts.
func unescaped(w uint64) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^(ones*'"'), w^(ones*'\\')
	found := (w | (w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs
	return bits.TrailingZeros64(found) / 8
}

// appendASCII appends an ASCII character, escaped if it cannot stand for itself.
func appendASCII(dst []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c >= ' ':
		return append(dst, c)
	case c == '\n':
		return append(dst, '\\', 'n')
	case c == '\t':
		return append(dst, '\\', 't')
	case c == '\r':
		return append(dst, '\\', 'r')
	case c == '\b':
		return append(dst, '\\', 'b')
	case c == '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
