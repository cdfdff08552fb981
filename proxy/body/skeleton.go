package body

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// Scan reads a request. What it cannot read is tidemark.ErrInvalid, and a body that is too big
// tidemark.ErrTooLarge: such a body is to be passed on as it is.
func Scan(d Dialect, raw []byte) (*Request, error) {
	return nil, fmt.Errorf("scan the request: not built yet: %w", tidemark.ErrInvalid)
}

// Apply writes the request with a change. The zero Change gives the very bytes that came. A change that
// does not fit the request is tidemark.ErrInvalid.
func (r *Request) Apply(c Change) ([]byte, error) { return r.raw, nil }

// Blocks is the number of blocks of the message; a string is one.
func (i Item) Blocks() int { return 0 }

// Block is the JSON of block n, from 0; a string is given as a text block. It is nil if there is none.
func (i Item) Block(n int) []byte { return nil }

// First is the text by which a conversation is known that has no other name: the role of the first item, a
// line break, and the texts of its text blocks without system reminders and the white space around them,
// joined by line breaks; texts that are empty then do not count.
func (r *Request) First() string { return "" }

// Markers counts the cache markers in a request, a message, a block or a definition.
func Markers(raw []byte) int { return 0 }
