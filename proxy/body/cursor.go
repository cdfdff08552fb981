package body

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// span is a run of bytes.
type span = jsonscan.Span

// cursor walks once over JSON that stands in memory and decodes only what it is asked for.
type cursor struct{ jsonscan.Cursor }

// over returns a cursor at the beginning of data.
func over(data []byte) cursor { return cursor{jsonscan.From(data, 0, MaxDepth)} }

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

// once notes that a key was seen, and fails where it stands twice: readers differ in which one counts.
func (c *cursor) once(seen *uint32, bit uint32, name string) {
	if *seen&bit != 0 {
		c.Fail("the key " + name + " stands twice")
	}
	*seen |= bit
}

// words reads a string and decodes it; of another value it is "".
func (c *cursor) words() string {
	if c.Peek() != '"' {
		c.Skip()
		return ""
	}
	return c.Text()
}

// find is the value of a member of an object, nil for none.
func find(raw []byte, name string) []byte { return jsonscan.Find(raw, name) }

// setMember is an object with another value of a member, which is added at its end if it has none.
func setMember(raw []byte, name string, value []byte) []byte {
	return jsonscan.Set(make([]byte, 0, len(raw)+len(name)+len(value)+8), raw, jsonscan.Field{Key: name, Value: value})
}

// dropMember is an object without a member.
func dropMember(raw []byte, name string) []byte { return setMember(raw, name, nil) }
