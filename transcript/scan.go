package transcript

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/tidemark-ai/tidemark"
)

const (
	// maxDepth is how deep values may nest; encoding/json has the same limit.
	maxDepth = 10000
	// MaxFields bounds the fields listed for one object, so that a line of nothing but keys does not
	// fill the memory. Fields that this package knows by name are listed beyond it.
	MaxFields = 1024
	// maxKey bounds the names that are kept across the pieces of a long line.
	maxKey = 256
)

// scanner walks over one JSON value that is given in pieces. It checks the grammar exactly as
// encoding/json does and decodes nothing.
type scanner struct {
	data  []byte        // the piece at hand
	i     int           // the next byte in data
	base  int64         // where data begins
	next  func() []byte // the piece behind data, empty at the end; nil when there is only one
	stack []byte        // the closers of the containers that are open
	key   []byte        // a name that stands in two pieces
	err   error         // why the value is not JSON
}

func (s *scanner) reset(data []byte, base int64, next func() []byte) {
	*s = scanner{data: data, base: base, next: next, stack: s.stack[:0], key: s.key[:0]}
}

func (s *scanner) pos() int64 { return s.base + int64(s.i) }

// fill goes on to the next piece; false at the end.
func (s *scanner) fill() bool {
	if s.next == nil {
		return false
	}
	s.base, s.i = s.base+int64(len(s.data)), 0
	s.data = s.next()
	if len(s.data) == 0 {
		s.next = nil
		return false
	}
	return true
}

func (s *scanner) fail(why string) bool {
	if s.err == nil {
		s.err = fmt.Errorf("byte %d: %s: %w", s.pos(), why, tidemark.ErrInvalid)
	}
	return false
}

// peek returns the next byte, 0 at the end: no JSON outside of strings has a NUL.
func (s *scanner) peek() byte {
	if s.i < len(s.data) || s.fill() {
		return s.data[s.i]
	}
	return 0
}

// space skips white space and returns the byte behind it, 0 at the end.
func (s *scanner) space() (c byte) {
	if s.i < len(s.data) {
		c = s.data[s.i]
	}
	if c <= ' ' {
		c = s.skipSpace()
	}
	return c
}

func (s *scanner) skipSpace() byte {
	for {
		for s.i < len(s.data) {
			if c := s.data[s.i]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				return c
			}
			s.i++
		}
		if !s.fill() {
			return 0
		}
	}
}

func (s *scanner) atEnd() bool { return s.i >= len(s.data) && !s.fill() }

// str scans a string behind its opening quote.
func (s *scanner) str() bool {
	for {
		i := body(s.data, s.i)
		if i >= len(s.data) {
			s.i = len(s.data)
			if !s.fill() {
				return s.fail("string without an end")
			}
			continue
		}
		s.i = i + 1
		switch s.data[i] {
		case '"':
			return true
		case '\\':
			if !s.escape() {
				return false
			}
		default:
			return s.fail("control character in a string")
		}
	}
}

// shortEscape holds the bytes that make an escape with the backslash before them alone.
var shortEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// escape scans what follows a backslash when that is not a short escape in the same piece.
func (s *scanner) escape() bool {
	c := s.peek()
	if shortEscape[c] {
		s.i++
		return true
	}
	if c != 'u' {
		return s.fail("unknown escape")
	}
	s.i++
	for range 4 {
		c := s.peek() | 0x20
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') || s.peek() < '0' {
			return s.fail("want four hexadecimal digits")
		}
		s.i++
	}
	return true
}

// body returns where from i on the first byte of data stands that ends a string or needs a closer
// look: a quote, a control character, the backslash of an escape that is not short or not complete.
// Without one it returns the length of data. Most bytes of a log stand in long strings, so it looks
// at eight at a time and steps over the short escapes itself.
func body(data []byte, i int) int {
	for i+8 <= len(data) {
		hit := special(binary.LittleEndian.Uint64(data[i:]))
		if hit == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(hit) / 8
		if data[i] != '\\' || i+1 >= len(data) || !shortEscape[data[i+1]] {
			return i
		}
		i += 2
	}
	for ; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\\' && i+1 < len(data) && shortEscape[data[i+1]]:
			i++
		case c < ' ' || c == '"' || c == '\\':
			return i
		}
	}
	return len(data)
}

// special has the top bit of the first byte of w that is a quote, a backslash or a control character,
// and no bit when there is none; what it says of the bytes behind the first is worthless.
func special(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	// With bit 1 flipped, control characters stay below 0x20 and the quote, 0x22, becomes 0x20. A byte
	// that is below what is taken from it borrows into its top bit; those that have it are excluded.
	return ((w ^ 2*ones - 0x21*ones) | (w ^ '\\'*ones - ones)) &^ w & tops
}

// value scans one value, whose first byte is next, spaces aside.
func (s *scanner) value() bool {
	base := len(s.stack)
	for {
		switch c := s.space(); {
		case c == '"':
			s.i++
			if !s.str() {
				return false
			}
		case c == '{' || c == '[':
			closer := c + 2 // in ASCII each bracket stands two before its closer
			if !s.push(closer) {
				return false
			}
			if s.space() != closer {
				if closer == '}' && !s.skipKey() {
					return false
				}
				continue
			}
			s.pop()
		case !s.scalar(c):
			return false
		}
		more, ok := s.leave(base)
		if !more {
			return ok
		}
	}
}

// leave closes containers down to base, or goes on to the next value of one.
func (s *scanner) leave(base int) (more, ok bool) {
	for len(s.stack) > base {
		closer := s.stack[len(s.stack)-1]
		switch s.space() {
		case ',':
			s.i++
			ok := closer == ']' || s.skipKey()
			return ok, ok
		case closer:
			s.pop()
		default:
			return false, s.fail("want a comma or the end of the list or object")
		}
	}
	return false, true
}

func (s *scanner) push(closer byte) bool {
	if len(s.stack) >= maxDepth {
		return s.fail("nested too deep")
	}
	s.stack = append(s.stack, closer)
	s.i++
	return true
}

func (s *scanner) pop() {
	s.stack = s.stack[:len(s.stack)-1]
	s.i++
}

func (s *scanner) skipKey() bool {
	if s.space() != '"' {
		return s.fail("want a key in quotes")
	}
	s.i++
	if end := body(s.data, s.i); end+1 < len(s.data) && s.data[end] == '"' && s.data[end+1] == ':' {
		s.i = end + 2
		return true
	}
	return s.str() && s.colon()
}

func (s *scanner) colon() bool {
	if s.space() != ':' {
		return s.fail("want a colon behind the key")
	}
	s.i++
	return true
}

func (s *scanner) scalar(c byte) bool {
	switch {
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == '-' || isDigit(c):
		return s.number()
	case s.atEnd():
		return s.fail("the value is cut off")
	}
	return s.fail("want a value")
}

func (s *scanner) literal(word string) bool {
	for i := range len(word) {
		if s.peek() != word[i] {
			return s.fail("want " + word)
		}
		s.i++
	}
	return true
}

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	if !isDigit(s.peek()) {
		return s.fail("want a digit")
	}
	for isDigit(s.peek()) {
		s.i++
	}
	return true
}

func isDigit(c byte) bool { return c-'0' <= 9 }
