package body

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// span is a run of bytes.
type span struct{ from, to int }

func (s span) of(raw []byte) []byte { return raw[s.from:s.to:s.to] }

// cursor walks once over JSON that stands in memory and checks its grammar as encoding/json does; it
// decodes only what it is asked for. (Package transcript has one that reads in pieces, and package paging
// one that counts white space.)
type cursor struct {
	data  []byte
	i     int
	depth int
	fresh bool   // the container that is open has had no member yet
	part  string // what is being read, for errors

	message int // that is being read, from 1; 0 for none

	err error
}

func (c *cursor) fail(why string) {
	if c.err != nil {
		return
	}
	c.err = &ReadError{Part: c.part, Message: c.message - 1, Byte: c.i, Why: why}
}

// ReadError says why a request cannot be read, and where. It is [tidemark.ErrInvalid].
type ReadError struct {
	Part    string // member of the request, "" for none: messages[1], tools
	Message int    // from 0, -1 for none
	Byte    int
	Why     string
}

// Error implements error.
func (e *ReadError) Error() string {
	where := fmt.Sprintf("byte %d", e.Byte)
	if e.Part != "" {
		where = e.Part + ", " + where
	}
	return where + ": " + e.Why + ": " + tidemark.ErrInvalid.Error()
}

// Unwrap implements errors.Unwrap.
func (e *ReadError) Unwrap() error { return tidemark.ErrInvalid }

// peek skips white space and returns the next byte, 0 at the end and after a failure.
func (c *cursor) peek() byte {
	if c.err != nil {
		return 0
	}
	for c.i < len(c.data) {
		b := c.data[c.i]
		if b > ' ' || b != ' ' && b != '\n' && b != '\t' && b != '\r' {
			return b
		}
		c.i++
	}
	return 0
}

// open enters an object or a list if one is next.
func (c *cursor) open(bracket byte) bool {
	if c.peek() != bracket {
		return false
	}
	if c.depth++; c.depth > MaxDepth {
		c.fail("nested too deep")
		return false
	}
	c.i++
	c.fresh = true
	return true
}

// more goes to the next member of the open container, and leaves it behind the last.
func (c *cursor) more(closer byte) bool {
	switch b := c.peek(); {
	case c.err != nil:
		return false
	case b == closer:
		c.i++
		c.depth--
		c.fresh = false
		return false
	case c.fresh:
		c.fresh = false
	case b == ',':
		c.i++
		if c.peek() == closer {
			c.fail("a comma without a value behind it")
		}
	default:
		c.fail("want a comma or the end of the list or object")
	}
	return c.err == nil
}

// key reads the name of a member and its colon, up to its value.
func (c *cursor) key() []byte {
	raw := c.str()
	if c.peek() != ':' {
		c.fail("want a colon behind the key")
		return nil
	}
	c.i++
	c.peek()
	return unquoted(raw)
}

// unquoted is what a string says whose bytes with the quotes are given; it shares memory where it can.
func unquoted(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	if s := raw[1 : len(raw)-1]; bytes.IndexByte(s, '\\') < 0 {
		return s
	}
	text, _, _, ok := json.CutString(raw)
	if !ok && json.Unmarshal(raw, &text) != nil {
		return nil
	}
	return []byte(text)
}

// text reads a string and decodes it.
func (c *cursor) text() string { return string(unquoted(c.str())) }

// str reads a string and returns it with its quotes.
func (c *cursor) str() []byte {
	if c.peek() != '"' {
		c.fail("want a string")
		return nil
	}
	start := c.i
	for i := plain(c.data, start+1); i < len(c.data); i = plain(c.data, i) {
		switch c.data[i] {
		case '"':
			c.i = i + 1
			return c.data[start:c.i:c.i]
		case '\\':
			n := escape(c.data[i+1:])
			if n == 0 {
				c.i = i
				c.fail("unknown escape")
				return nil
			}
			i += 1 + n
		default:
			c.i = i
			c.fail("control character in a string")
			return nil
		}
	}
	c.i = len(c.data)
	c.fail("string without an end")
	return nil
}

// plain is where from i on the first byte of a string stands that needs a closer look: a quote, a control
// character, or the backslash of an escape that is not short. Most bytes of a body stand in long strings.
func plain(data []byte, i int) int {
	for i+8 <= len(data) {
		hit := special(binary.LittleEndian.Uint64(data[i:]))
		if hit == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(hit) / 8
		if data[i] != '\\' || i+1 >= len(data) || !short(data[i+1]) {
			return i
		}
		i += 2
	}
	for ; i < len(data); i++ {
		switch b := data[i]; {
		case b == '\\' && i+1 < len(data) && short(data[i+1]):
			i++
		case b < ' ' || b == '"' || b == '\\':
			return i
		}
	}
	return len(data)
}

// short reports a byte that is an escape together with the backslash before it.
func short(b byte) bool {
	switch b {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	}
	return false
}

// escape is how many bytes behind a backslash belong to it, 0 if they are no escape.
func escape(s []byte) int {
	switch {
	case len(s) > 0 && short(s[0]):
		return 1
	case len(s) >= 5 && s[0] == 'u':
		for _, b := range s[1:5] {
			if (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'f') {
				return 0
			}
		}
		return 5
	}
	return 0
}

// special has the top bit of the lowest byte of w that is a quote, a backslash or a control character, and
// is 0 when there is none; what it says of the bytes above the lowest is worthless.
func special(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((w-ones*' ')&^w | (quote-ones)&^quote | (slash-ones)&^slash) & tops
}

// skip reads any value.
func (c *cursor) skip() {
	switch c.peek() {
	case '"':
		c.str()
	case '{':
		for ok := c.open('{'); ok && c.more('}'); {
			c.key()
			c.skip()
		}
	case '[':
		for ok := c.open('['); ok && c.more(']'); {
			c.skip()
		}
	default:
		c.word()
	}
}

// value reads any value and returns where it stands.
func (c *cursor) value() span {
	c.peek()
	from := c.i
	c.skip()
	return span{from, c.i}
}

// word reads a number, true, false or null.
func (c *cursor) word() []byte {
	if c.err != nil {
		return nil
	}
	start := c.i
	for c.i < len(c.data) {
		b := c.data[c.i]
		if (b < '0' || b > '9') && (b < 'a' || b > 'z') && b != '-' && b != '+' && b != '.' && b != 'E' {
			break
		}
		c.i++
	}
	w := c.data[start:c.i]
	switch string(w) {
	case "true", "false", "null":
		return w
	}
	if len(w) == 0 || !json.Valid(w) {
		c.i = start
		c.fail("want a value")
		return nil
	}
	return w
}

// end demands that nothing follows.
func (c *cursor) end() {
	if c.peek(); c.err == nil && c.i < len(c.data) {
		c.fail("something stands behind the end")
	}
}

// members walks over the members of the object that is next and calls f at the value of each, which f reads.
func (c *cursor) members(what string, f func(key []byte)) {
	if !c.open('{') {
		c.fail(what + " is no object")
		return
	}
	for c.more('}') {
		f(c.key())
	}
}

// elements walks over the elements of the list that is next and calls f at each, which f reads.
func (c *cursor) elements(what string, f func(n int)) {
	if !c.open('[') {
		c.fail(what + " is no list")
		return
	}
	for n := 0; c.more(']'); n++ {
		f(n)
	}
}

// once notes that a key was seen, and fails where it stands twice: readers differ in which one counts.
func (c *cursor) once(seen *uint32, bit uint32, name string) {
	if *seen&bit != 0 {
		c.fail("the key " + name + " stands twice")
	}
	*seen |= bit
}
