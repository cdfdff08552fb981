package jsonscan

import (
	"bytes"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Span is a run of bytes.
type Span struct{ From, To int }

// Of is the run in what it was found in.
func (s Span) Of(data []byte) []byte { return data[s.From:s.To:s.To] }

// Cursor walks over JSON that stands in memory as a whole. After a failure, which [Cursor.Err] tells, it finds nothing
// more. A copy is a cursor at the same place.
type Cursor struct {
	s     Scanner
	fresh bool // the container that is open has had no member yet
}

// Over returns a cursor at the beginning of data.
func Over(data []byte) Cursor { return Cursor{s: Scanner{data: data}} }

// From returns a cursor at a place in data where at most depth containers may be open at once.
func From(data []byte, at, depth int) Cursor {
	return Cursor{s: Scanner{data: data, i: min(at, len(data)), most: depth}}
}

// Err is why the bytes are not what was wanted, mostly an [*Error]. The first reason stays.
func (c *Cursor) Err() error { return c.s.Err }

// Fail notes why the value that is next is not what was wanted.
func (c *Cursor) Fail(why string) { c.s.Fail(why) }

// Stop ends the walk with an error, in the place of one with which it may have ended.
func (c *Cursor) Stop(err error) { c.s.Err = err }

// At is the place of the next byte.
func (c *Cursor) At() int { return c.s.i }

// Compact is where the cursor would be if there were no white space between values.
func (c *Cursor) Compact() int { return c.s.i - c.s.blank }

// Peek skips white space and returns the next byte, 0 at the end and after a failure.
func (c *Cursor) Peek() byte {
	if c.s.Err != nil {
		return 0
	}
	return c.s.Space()
}

// Open enters an object or a list if one is next.
func (c *Cursor) Open(bracket byte) bool {
	c.fresh = c.Peek() == bracket && c.s.Open()
	return c.fresh
}

// More goes to the next member of the container that is open, and leaves it behind the last.
func (c *Cursor) More() bool {
	if c.s.Err != nil || c.s.open.depth == 0 {
		return false
	}
	closer := c.s.open.closer()
	switch b := c.s.Space(); {
	case b == closer:
		c.s.close()
		c.fresh = false
		return false
	case c.fresh:
		c.fresh = false
		return true
	case b != ',':
		return c.s.Fail(wantComma)
	}
	c.s.i++
	if c.s.Space() == closer {
		return c.s.Fail("a comma without a value behind it")
	}
	return true
}

// Key reads the name of a member and its colon, up to its value.
func (c *Cursor) Key() []byte {
	raw := c.String()
	if c.s.Err != nil || !c.s.colon() {
		return nil
	}
	c.s.Space()
	return Unquoted(raw)
}

// Unquoted is what a string says that is given with its quotes; it shares memory where it can. Of what is no string it
// is nil.
func Unquoted(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	if s := raw[1 : len(raw)-1]; bytes.IndexByte(s, '\\') < 0 {
		return s
	}
	text, ok := json.AppendText(nil, raw)
	if !ok {
		return nil
	}
	return text
}

// String reads a string and returns it with its quotes.
func (c *Cursor) String() []byte {
	if c.Peek() != '"' {
		c.Fail("want a string")
		return nil
	}
	from := c.s.i
	if !c.s.String() {
		return nil
	}
	return c.Since(from)
}

// Text reads a string and decodes it.
func (c *Cursor) Text() string { return string(Unquoted(c.String())) }

// Skip reads any value.
func (c *Cursor) Skip() {
	if c.s.Err == nil {
		c.s.Value()
	}
}

// Value reads any value and returns where it stands.
func (c *Cursor) Value() Span {
	c.Peek()
	from := c.s.i
	c.Skip()
	return Span{from, c.s.i}
}

// Raw reads any value and returns it, nil after a failure.
func (c *Cursor) Raw() []byte {
	v := c.Value()
	if c.s.Err != nil {
		return nil
	}
	return c.Since(v.From)
}

// Since is what was read from a place on.
func (c *Cursor) Since(from int) []byte { return c.s.data[from:c.s.i:c.s.i] }

// End demands that nothing follows.
func (c *Cursor) End() {
	if c.Peek(); c.s.Err == nil && c.s.i < len(c.s.data) {
		c.Fail("something stands behind the end")
	}
}

// Members walks over the members of the object that is next and calls f at the value of each, which f reads. It fails
// where there is no object; what says what should be one.
func (c *Cursor) Members(what string, f func(key []byte)) {
	if !c.Open('{') {
		c.Fail(what + " is no object")
		return
	}
	for c.More() {
		if key := c.Key(); c.s.Err == nil {
			f(key)
		}
	}
}

// Elements walks over the elements of the list that is next and calls f at each, which f reads. It fails where there is
// no list; what says what should be one.
func (c *Cursor) Elements(what string, f func(n int)) {
	if !c.Open('[') {
		c.Fail(what + " is no list")
		return
	}
	for n := 0; c.More(); n++ {
		f(n)
	}
}

// Members calls f with each member of an object: its name, and its value as it stands there. What is no object has
// none.
func Members(obj []byte, f func(key, value []byte)) error {
	c := Over(obj)
	c.Members("the value", func(key []byte) {
		if v := c.Raw(); v != nil {
			f(key, v)
		}
	})
	return c.Err()
}

// Elements calls f with each element of a list, as it stands there. What is no list has none.
func Elements(list []byte, f func(value []byte)) error {
	c := Over(list)
	c.Elements("the value", func(int) {
		if v := c.Raw(); v != nil {
			f(v)
		}
	})
	return c.Err()
}

// Find is the value of a member of an object, nil for none and of what is no object. Of equal names the last
// counts, as it does to decoders.
func Find(obj []byte, name string) (value []byte) {
	err := Members(obj, func(key, v []byte) {
		if string(key) == name {
			value = v
		}
	})
	if err != nil {
		return nil
	}
	return value
}
