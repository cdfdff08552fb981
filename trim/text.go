package trim

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// charsOf counts the UTF-16 units of the text of a JSON string, or of a part of one: an escape at the end that is not
// complete is not used.
func charsOf(raw []byte) (n int64, used int) {
	escapes := int64(0)
	used = len(raw)
	for i := 0; ; {
		k := bytes.IndexByte(raw[i:], '\\')
		if k < 0 {
			break
		}
		i += k
		size := 2
		if i+1 < len(raw) && raw[i+1] == 'u' {
			size = 6
		}
		if i+size > len(raw) {
			used = i
			break
		}
		escapes += int64(size) - 1
		i += size
	}
	return units(raw[:used]) - escapes, used
}

// units counts the UTF-16 units of UTF-8.
func units(raw []byte) int64 {
	const tops = 0x8080808080808080
	n := int64(len(raw))
	i := 0
	for ; i+8 <= len(raw); i += 8 {
		for i+40 <= len(raw) && (binary.LittleEndian.Uint64(raw[i:])|binary.LittleEndian.Uint64(raw[i+8:])|
			binary.LittleEndian.Uint64(raw[i+16:])|binary.LittleEndian.Uint64(raw[i+24:]))&tops == 0 {
			i += 32
		}
		w := binary.LittleEndian.Uint64(raw[i:])
		if w&tops == 0 {
			continue
		}
		n -= int64(bits.OnesCount64(w & tops &^ (w << 1)))                      // bytes behind the first of a character
		n += int64(bits.OnesCount64(w & (w << 1) & (w << 2) & (w << 3) & tops)) // characters of four bytes are two units
	}
	for ; i < len(raw); i++ {
		switch c := raw[i]; {
		case c >= 0xF0:
			n++
		case c >= 0x80 && c < 0xC0:
			n--
		}
	}
	return n
}

// unescape appends the text of a JSON string, given without its quotes. A lone surrogate becomes the three bytes that
// its number has, so that different strings stay different.
func unescape(dst, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' || i+1 >= len(raw) {
			dst = append(dst, c)
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := unit(raw[i+1:])
			i += 4
			if r >= 0xD800 && r < 0xDC00 && i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if low := unit(raw[i+3:]); low >= 0xDC00 && low < 0xE000 {
					r = (r-0xD800)<<10 + low - 0xDC00 + 0x10000
					i += 6
				}
			}
			dst = appendCode(dst, r)
		default:
			dst = append(dst, raw[i])
		}
	}
	return dst
}

func unit(hex []byte) rune {
	r := rune(0)
	for _, c := range hex[:min(4, len(hex))] {
		r = r<<4 + rune(max(0, hexDigit(c)))
	}
	return r
}

func appendCode(dst []byte, r rune) []byte {
	if r >= 0xD800 && r < 0xE000 {
		return append(dst, 0xED, byte(0x80|r>>6&0x3F), byte(0x80|r&0x3F))
	}
	return utf8.AppendRune(dst, r)
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
