package trim

import (
	"encoding/binary"
	"math/bits"
)

// maxDepth is how deep values may nest. A line beyond it is copied as it stands.
const maxDepth = 10_000

// scan walks over one JSON value that is given in pieces, and checks its grammar. It is the scanner of package
// transcript made for one purpose: that one lists the fields of every line, this one is asked member by member while
// it goes, so that a line is read once and nothing of it is kept. Places are absolute, those of the log.
type scan struct {
	data  []byte        // the piece at hand
	i     int           // the next byte in data
	base  int64         // where data begins
	more  func() []byte // the piece behind data, empty at the end; nil when there is only one
	stack []byte        // the closers of the containers that are open
	key   []byte        // the last key, when it did not stand in one piece or has escapes

	// What was seen since they were set to zero: bytes that an escape has more than its character has UTF-16 units,
	// and the bits of all other bytes of strings. The characters of a string that is ASCII are known by that.
	escaped int64
	bits    uint64
}

func (s *scan) reset(data []byte, base int64, more func() []byte) {
	s.data, s.i, s.base, s.more, s.stack = data, 0, base, more, s.stack[:0]
}

func (s *scan) pos() int64 { return s.base + int64(s.i) }

// fill goes on to the next piece; false at the end.
func (s *scan) fill() bool {
	if s.more == nil {
		return false
	}
	s.base, s.i = s.base+int64(len(s.data)), 0
	s.data = s.more()
	if len(s.data) == 0 {
		s.more = nil
		return false
	}
	return true
}

// peek returns the next byte, 0 at the end: no JSON outside of strings has a NUL.
func (s *scan) peek() byte {
	if s.i < len(s.data) || s.fill() {
		return s.data[s.i]
	}
	return 0
}

// space skips white space and returns the byte behind it, 0 at the end.
func (s *scan) space() byte {
	if s.i < len(s.data) {
		if c := s.data[s.i]; c > ' ' {
			return c
		}
	}
	for {
		c := s.peek()
		if c > ' ' || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
		s.i++
	}
}

// shortEscape holds the bytes that make an escape with the backslash before them alone.
var shortEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// str scans a string behind its opening quote.
func (s *scan) str() bool {
	for {
		i := s.plain(s.i)
		if i >= len(s.data) {
			s.i = len(s.data)
			if !s.fill() {
				return false
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
			return false // a control character
		}
	}
}

func (s *scan) escape() bool {
	c := s.peek()
	s.i++
	if c != 'u' {
		s.escaped++
		return shortEscape[c]
	}
	s.escaped += 5
	for range 4 {
		if hexDigit(s.peek()) < 0 {
			return false
		}
		s.i++
	}
	return true
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

// plain returns where from i on the first byte stands that ends a string or needs a closer look. Most of a log stands
// in long strings: it looks at 32 bytes at a time, and steps over the usual escapes itself.
func (s *scan) plain(i int) int {
	data, seen, escaped := s.data, s.bits, int64(0)
	for i+8 <= len(data) {
		w := binary.LittleEndian.Uint64(data[i:])
		hit := special(w)
		if i+32 <= len(data) {
			b := data[i : i+32]
			w1, w2, w3 := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
			hit1, hit2, hit3 := special(w1), special(w2), special(w3)
			if hit|hit1|hit2|hit3 == 0 {
				seen |= w | w1 | w2 | w3
				i += 32
				continue
			}
			if hit == 0 {
				seen |= w
				w, hit, i = w1, hit1, i+8
			}
			if hit == 0 {
				seen |= w
				w, hit, i = w2, hit2, i+8
			}
			if hit == 0 {
				seen |= w
				w, hit, i = w3, hit3, i+8
			}
		}
		seen |= w
		if hit == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(hit) / 8
		if data[i] != '\\' || i+1 >= len(data) || !shortEscape[data[i+1]] {
			s.bits, s.escaped = seen, s.escaped+escaped
			return i
		}
		escaped++
		i += 2
	}
	for ; i < len(data); i++ {
		c := data[i]
		seen |= uint64(c)
		switch {
		case c == '\\' && i+1 < len(data) && shortEscape[data[i+1]]:
			escaped++
			i++
		case c < ' ' || c == '"' || c == '\\':
			s.bits, s.escaped = seen, s.escaped+escaped
			return i
		}
	}
	s.bits, s.escaped = seen, s.escaped+escaped
	return len(data)
}

// special has the top bit of the first byte of w that is a quote, a backslash or a control character, and no bit when
// there is none; what it says of the bytes behind the first is worthless.
func special(w uint64) uint64 {
	const ones = 0x0101010101010101
	// With bit 1 flipped, control characters stay below 0x20 and the quote, 0x22, becomes 0x20. A byte that is below
	// what is taken from it borrows into its top bit; those that have it are excluded.
	return ((w ^ 2*ones - 0x21*ones) | (w ^ '\\'*ones - ones)) &^ w & tops
}

// value scans one value, whose first byte is next, spaces aside.
func (s *scan) value() bool {
	base := len(s.stack)
	for {
		switch c := s.space(); {
		case c == '"':
			s.i++
			if !s.str() {
				return false
			}
		case c == '{' || c == '[':
			if !s.open() {
				return false
			}
			if closer := s.stack[len(s.stack)-1]; s.space() != closer {
				if closer == '}' && !s.skipKey() {
					return false
				}
				continue
			}
			s.close()
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
func (s *scan) leave(base int) (more, ok bool) {
	for len(s.stack) > base {
		closer := s.stack[len(s.stack)-1]
		switch s.space() {
		case ',':
			s.i++
			ok := closer == ']' || s.skipKey()
			return ok, ok
		case closer:
			s.close()
		default:
			return false, false
		}
	}
	return false, true
}

// open enters the container whose bracket is next.
func (s *scan) open() bool {
	if len(s.stack) >= maxDepth {
		return false
	}
	s.stack = append(s.stack, s.peek()+2) // in ASCII each bracket stands two before its closer
	s.i++
	return true
}

func (s *scan) close() {
	s.stack = s.stack[:len(s.stack)-1]
	s.i++
}

func (s *scan) skipKey() bool {
	if s.space() != '"' {
		return false
	}
	s.i++
	return s.str() && s.colon()
}

func (s *scan) colon() bool {
	if s.space() != ':' {
		return false
	}
	s.i++
	return true
}

func (s *scan) scalar(c byte) bool {
	switch c {
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *scan) literal(word string) bool {
	for i := range len(word) {
		if s.peek() != word[i] {
			return false
		}
		s.i++
	}
	return true
}

func (s *scan) number() bool {
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

func (s *scan) digits() bool {
	if s.peek()-'0' > 9 {
		return false
	}
	for s.peek()-'0' <= 9 {
		s.i++
	}
	return true
}

// member is one member of an object, or one element of a list.
type member struct {
	name  []byte // without escapes, until the scan goes on; nil for elements
	at    int64  // where it begins: its key, or the element itself
	start int64  // of the value
	kind  byte   // the first byte of the value
	prev  int64  // where the member before ends
	first bool
	ok    bool // false when the grammar is broken
}

// maxKey bounds keys that are compared; longer ones are none that we know.
const maxKey = 256

// next scans up to the value of the next member of the container on top of the stack. It is false when the container
// closed, and when the grammar is broken: then m.ok is false.
func (s *scan) next(m *member) bool {
	closer := s.stack[len(s.stack)-1]
	m.prev = s.pos()
	c := s.space()
	if c == closer {
		s.close()
		m.ok = true
		return false
	}
	m.ok = false
	if !m.first {
		if c != ',' {
			return false
		}
		s.i++
		c = s.space()
	}
	m.first, m.name, m.at = false, nil, s.pos()
	if closer == '}' {
		if c != '"' {
			return false
		}
		s.i++
		if !s.name(m) || !s.colon() {
			return false
		}
		c = s.space()
	}
	m.start, m.kind, m.ok = s.pos(), c, true
	return true
}

// name scans a key behind its quote.
func (s *scan) name(m *member) bool {
	from, escaped := s.i, s.escaped
	if end := s.plain(from); end < len(s.data) && s.data[end] == '"' {
		m.name, s.i = s.data[from:end], end+1
		if s.more != nil { // the next piece may take the place of this one before the name is looked at
			s.key = append(s.key[:0], m.name...)
			m.name = s.key
		}
		for _, c := range m.name {
			if c == '\\' {
				s.key = unescape(nil, m.name)
				m.name = s.key
				break
			}
		}
		return true
	}
	s.escaped = escaped // it is scanned from its beginning
	return s.oddName(m, from)
}

// oddName scans a key that goes on in the next piece, or has an escape of a code point.
func (s *scan) oddName(m *member, from int) bool {
	var raw []byte
	keep := func(b []byte) { raw = append(raw, b[:min(len(b), max(0, 6*maxKey-len(raw)))]...) }
	if more := s.more; more != nil {
		s.more = func() []byte {
			keep(s.data[from:])
			from = 0
			return more()
		}
		defer func() {
			if s.more != nil {
				s.more = more
			}
		}()
	}
	if !s.str() {
		return false
	}
	keep(s.data[from : s.i-1])
	s.key = unescape(s.key[:0], raw)
	m.name = s.key
	return true
}
