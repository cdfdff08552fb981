package trim

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/scan"
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

// units counts the UTF-16 units of UTF-8: one for each byte, but none for those behind the first of a character, and one
// more for characters of four bytes. Of 32 bytes at a time each such byte leaves one bit.
func units(raw []byte) int64 {
	n := int64(len(raw))
	for ; len(raw) >= 32; raw = raw[32:] {
		w0, w1 := binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[8:])
		w2, w3 := binary.LittleEndian.Uint64(raw[16:]), binary.LittleEndian.Uint64(raw[24:])
		n -= int64(bits.OnesCount64(behind(w0)>>7 | behind(w1)>>6 | behind(w2)>>5 | behind(w3)>>4))
		n += int64(bits.OnesCount64(ofFour(w0)>>7 | ofFour(w1)>>6 | ofFour(w2)>>5 | ofFour(w3)>>4))
	}
	for _, c := range raw {
		switch {
		case c >= 0xF0:
			n++
		case c >= 0x80 && c < 0xC0:
			n--
		}
	}
	return n
}

const tops = 0x8080808080808080

// behind has the top bits of the bytes of w that stand behind the first of a character.
func behind(w uint64) uint64 { return w &^ (w << 1) & tops }

// ofFour has the top bits of the bytes of w that begin a character of four bytes.
func ofFour(w uint64) uint64 {
	w &= w << 1
	return w & (w << 2) & tops
}

// nameOf is the name of a member, without escapes.
func nameOf(m *scan.Member) []byte {
	if m.Escaped {
		return unescape(nil, m.Name)
	}
	return m.Name
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

func hexDigit(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
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
