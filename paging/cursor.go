package paging

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxNested is how deep values may nest; encoding/json has the same limit.
const maxNested = 10000

// cursor walks once over JSON that stands in memory as a whole, checks its structure and counts the
// white space between values, so that sizes are those of compact JSON though nothing is written anew.
// (The scanner of package transcript reads a line in pieces and does not count.)
type cursor struct {
	data  []byte
	i     int
	blank int    // bytes of white space so far
	fresh bool   // the container that is open has had no member yet
	stack []byte // closers of the containers within a value that is skipped
	err   error
}

// at is where the cursor would be in compact JSON.
func (c *cursor) at() int { return c.i - c.blank }

func (c *cursor) fail(why string) {
	if c.err == nil {
		c.err = fmt.Errorf("byte %d: %s: %w", c.i, why, tidemark.ErrInvalid)
	}
}

// peek skips white space and returns the next byte, 0 at the end and after a failure.
func (c *cursor) peek() byte {
	if c.err != nil {
		return 0
	}
	for c.i < len(c.data) {
		switch b := c.data[c.i]; b {
		case ' ', '\n', '\t', '\r':
			c.i++
			c.blank++
		default:
			return b
		}
	}
	return 0
}

// open enters an object or list if one is next.
func (c *cursor) open(bracket byte) bool {
	if c.peek() != bracket {
		return false
	}
	c.i++
	c.fresh = true
	return true
}

// more goes to the next member of the open container, and leaves it behind the last.
func (c *cursor) more(closer byte) bool {
	switch b := c.peek(); {
	case b == closer:
		c.i++
		c.fresh = false
		return false
	case c.fresh:
		c.fresh = false
	case b == ',':
		c.i++
	default:
		c.fail("want a comma or the end of the list or object")
	}
	if c.peek() == closer {
		c.fail("a comma without a value behind it")
	}
	return c.err == nil
}

// key reads the name of a member and its colon, up to its value. A name with escapes is decoded.
func (c *cursor) key() []byte {
	raw := c.str()
	if c.peek() != ':' {
		c.fail("want a colon behind the key")
		return nil
	}
	c.i++
	c.peek()
	if len(raw) < 2 {
		return nil
	}
	name := raw[1 : len(raw)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = unquote(nil, raw)
	}
	return name
}

// str reads a string and returns it with its quotes.
func (c *cursor) str() []byte {
	if c.peek() != '"' {
		c.fail("want a string")
		return nil
	}
	start := c.i
	for i := start + 1; i < len(c.data); {
		if i+8 <= len(c.data) {
			hit := special(binary.LittleEndian.Uint64(c.data[i:]))
			if hit == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(hit) / 8
		}
		switch b := c.data[i]; {
		case b == '"':
			c.i = i + 1
			return c.data[start:c.i]
		case b == '\\':
			i += 2
		case b < ' ':
			c.i = i
			c.fail("control character in a string")
			return nil
		default:
			i++
		}
	}
	c.i = len(c.data)
	c.fail("string without an end")
	return nil
}

// special has the top bit of the lowest byte of w that is a quote, a backslash or a control character;
// it is 0 when there is none, and what it says of the bytes above the lowest is worthless.
func special(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((w-ones*' ')&^w | (quote-ones)&^quote | (slash-ones)&^slash) & tops
}

// skip reads any value.
func (c *cursor) skip() {
	open := c.stack[:0]
	defer func() { c.stack = open }()
	for {
		switch b := c.peek(); b {
		case '"':
			c.str()
		case '{', '[':
			c.i++
			if len(open) >= maxNested {
				c.fail("nested too deep")
			}
			if c.peek() != b+2 { // in ASCII a bracket stands two before its closer
				open = append(open, b+2)
				if b == '{' {
					c.key()
				}
				continue
			}
			c.i++
		default:
			c.word()
		}
		for {
			if c.err != nil || len(open) == 0 {
				return
			}
			b := c.peek()
			if b == open[len(open)-1] {
				c.i++
				open = open[:len(open)-1]
				continue
			}
			if b != ',' {
				c.fail("want a comma or the end of the list or object")
				return
			}
			c.i++
			if open[len(open)-1] == '}' {
				c.key()
			}
			break
		}
	}
}

// word reads a number, true, false or null.
func (c *cursor) word() {
	start := c.i
	for c.i < len(c.data) {
		b := c.data[c.i]
		if (b < '0' || b > '9') && (b < 'a' || b > 'z') && b != '-' && b != '+' && b != '.' && b != 'E' {
			break
		}
		c.i++
	}
	if w := c.data[start:c.i]; len(w) == 0 || !json.Valid(w) {
		c.i = start
		c.fail("want a value")
	}
}

// unquote appends the text of a JSON string, which has its quotes, to dst.
func unquote(dst, raw []byte) ([]byte, bool) {
	s := raw[1 : len(raw)-1]
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			break
		}
		dst = append(dst, s[:n]...)
		b := s[n+1] // there is one: a last backslash would have escaped the quote
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
			var ok bool
			if dst, s, ok = codePoint(dst, s); !ok {
				return dst, false
			}
			continue
		default:
			return dst, false
		}
		dst = append(dst, b)
	}
	return append(dst, s...), true
}

// codePoint appends what stands behind \u, half a pair as the replacement character.
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
