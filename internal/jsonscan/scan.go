// Package jsonscan cuts a log into lines and walks over JSON without decoding it, checks its grammar exactly as encoding/json
// does, and says where values begin and end. [Scanner] walks member by member, [Cursor] over a value that readers come
// back to. [Splice] and [Set] put other values in: bytes that nobody changes come out as they came.
package jsonscan

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// MaxDepth is how deep values may nest; encoding/json has the same limit.
const MaxDepth = 10_000

const wantComma = "want a comma or the end of the list or object"

// Scanner walks over one JSON value. Places are absolute: they count from what Reset called the beginning. A method
// that reports false has met broken grammar, and Err says why.
type Scanner struct {
	Err error // why the value is not JSON

	data  []byte
	i     int   // the next byte in data
	base  int64 // where data begins
	blank int   // bytes of white space between values
	open  stack
	most  int // containers that may be open, 0: MaxDepth
}

// stack is the containers that are open. The first 64 take no memory of their own.
type stack struct {
	depth   int
	objects uint64 // bit i: container i is an object
	deep    []byte // closers of those beyond
}

func (o *stack) push(closer byte) {
	bit := uint64(1) << (o.depth & 63)
	switch {
	case o.depth >= 64:
		o.deep = append(o.deep[:o.depth-64], closer)
	case closer == '}':
		o.objects |= bit
	default:
		o.objects &^= bit
	}
	o.depth++
}

// closer ends the container that was opened last.
func (o *stack) closer() byte {
	if o.depth > 64 {
		return o.deep[o.depth-65]
	}
	if o.objects>>(o.depth-1)&1 == 1 {
		return '}'
	}
	return ']'
}

// Error says why bytes are not the JSON that is wanted. It is tidemark.ErrInvalid.
type Error struct {
	At  int64
	Why string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("byte %d: %s: %v", e.At, e.Why, json.ErrInvalid)
}

// Unwrap implements errors.Unwrap.
func (e *Error) Unwrap() error { return json.ErrInvalid }

// Reset begins with a value whose first byte is at base.
func (s *Scanner) Reset(data []byte, base int64) {
	*s = Scanner{data: data, base: base, open: stack{deep: s.open.deep[:0]}}
}

// Pos is the place of the next byte.
func (s *Scanner) Pos() int64 { return s.base + int64(s.i) }

// Depth is how many containers are open.
func (s *Scanner) Depth() int { return s.open.depth }

// Fail notes why the value is not what was wanted, and reports false.
func (s *Scanner) Fail(why string) bool {
	if s.Err == nil {
		s.Err = &Error{s.Pos(), why}
	}
	return false
}

// AtEnd reports whether there is no byte more.
func (s *Scanner) AtEnd() bool { return s.i >= len(s.data) }

// SkipMark steps over a byte order mark that is next.
func (s *Scanner) SkipMark() {
	if len(s.data)-s.i >= 3 && string(s.data[s.i:s.i+3]) == "\xef\xbb\xbf" {
		s.i += 3
	}
}

// peek returns the next byte, 0 at the end: no JSON outside of strings has a NUL.
func (s *Scanner) peek() byte {
	if s.AtEnd() {
		return 0
	}
	return s.data[s.i]
}

// Space steps over white space and returns the byte behind it, 0 at the end.
func (s *Scanner) Space() (c byte) {
	if s.i < len(s.data) {
		c = s.data[s.i]
	}
	if c <= ' ' {
		c = s.skipSpace()
	}
	return c
}

func (s *Scanner) skipSpace() byte {
	for ; s.i < len(s.data); s.i++ {
		if c := s.data[s.i]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.blank++
	}
	return 0
}

// shortEscape holds the bytes that make an escape with the backslash before them alone.
var shortEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// String steps over the string whose quote is next.
func (s *Scanner) String() bool {
	s.i++
	return s.str()
}

// str scans a string behind its quote.
func (s *Scanner) str() bool {
	for {
		i := s.plain(s.i)
		if i == len(s.data) {
			s.i = i
			return s.Fail("string without an end")
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
			s.i--
			return s.Fail("control character in a string")
		}
	}
}

// escape scans what follows a backslash when that is not a short escape.
func (s *Scanner) escape() bool {
	if s.peek() != 'u' {
		return s.Fail("unknown escape")
	}
	s.i++
	for range 4 {
		if !isHex(s.peek()) {
			return s.Fail("want four hexadecimal digits")
		}
		s.i++
	}
	return true
}

func isHex(c byte) bool { return isDigit(c) || c|0x20-'a' < 6 }

func isDigit(c byte) bool { return c-'0' <= 9 }

// plain returns where from i on the first byte stands that ends a string or needs a closer look: a quote,
// a control character, the backslash of an escape that is not short or not complete. Without one it returns the length
// of the data. Most of a log stands in long strings: it looks at 8 bytes at a time, and steps over the short
// escapes itself.
func (s *Scanner) plain(i int) int {
	data := s.data
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

// special has the top bit of the first byte of w that is a quote, a backslash or a control character, and no bit when
// there is none; what it says of the bytes behind the first is worthless.
func special(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	// With bit 1 flipped, control characters stay below 0x20 and the quote, 0x22, becomes 0x20. A byte that is below
	// what is taken from it borrows into its top bit; those that have it are excluded.
	return ((w ^ 2*ones - 0x21*ones) | (w ^ '\\'*ones - ones)) &^ w & tops
}

// Value scans one value, whose first byte is next, spaces aside.
func (s *Scanner) Value() bool {
	base := s.open.depth
	for {
		switch c := s.Space(); c {
		case '"':
			if !s.String() {
				return false
			}
		case '{', '[':
			if !s.Open() {
				return false
			}
			if s.Space() != c+2 {
				if c == '{' && !s.skipKey() {
					return false
				}
				continue
			}
			s.close()
		default:
			if !s.scalar(c) {
				return false
			}
		}
		if more, ok := s.leave(base); !more {
			return ok
		}
	}
}

// leave steps out of the containers that end behind a value, down to the base-th. more says that another value follows.
func (s *Scanner) leave(base int) (more, ok bool) {
	for s.open.depth > base {
		closer := s.open.closer()
		switch s.Space() {
		case ',':
			s.i++
			return true, closer != '}' || s.skipKey()
		case closer:
			s.close()
		default:
			return false, s.Fail(wantComma)
		}
	}
	return false, true
}

// Open enters the object or list whose bracket is next.
func (s *Scanner) Open() bool {
	if s.open.depth == MaxDepth || s.open.depth == s.most && s.most > 0 {
		return s.Fail("nested too deep")
	}
	s.open.push(s.peek() + 2) // in ASCII each bracket stands two before its closer
	s.i++
	return true
}

func (s *Scanner) close() {
	s.open.depth--
	s.i++
}

// skipKey scans a key and its colon.
func (s *Scanner) skipKey() bool {
	if s.Space() != '"' {
		return s.Fail("want a key in quotes")
	}
	return s.String() && s.colon()
}

func (s *Scanner) colon() bool {
	if s.Space() != ':' {
		return s.Fail("want a colon behind the key")
	}
	s.i++
	return true
}

func (s *Scanner) scalar(c byte) bool {
	switch {
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == '-' || isDigit(c):
		return s.number()
	case s.AtEnd():
		return s.Fail("the value is cut off")
	}
	return s.Fail("want a value")
}

func (s *Scanner) literal(word string) bool {
	for i := range len(word) {
		if s.peek() != word[i] {
			return s.Fail("want " + word)
		}
		s.i++
	}
	return true
}

func (s *Scanner) number() bool {
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

func (s *Scanner) digits() bool {
	if !isDigit(s.peek()) {
		return s.Fail("want a digit")
	}
	for isDigit(s.peek()) {
		s.i++
	}
	return true
}
