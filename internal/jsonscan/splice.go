package jsonscan

import (
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Edit puts other bytes in the place of a run.
type Edit struct {
	Span
	With []byte
}

// Splice appends data with edits to dst. They are in order and do not overlap.
func Splice(dst, data []byte, edits ...Edit) []byte {
	at := 0
	for _, e := range edits {
		dst = append(append(dst, data[at:e.From]...), e.With...)
		at = e.To
	}
	return append(dst, data[at:]...)
}

// Field is a member of an object as it is to be; a nil value means: not there.
type Field struct {
	Key   string
	Value []byte
}

// Set appends obj to dst with some members replaced, removed or added at its end. All other bytes stay as they are,
// and so does what is no object. A member that is set stands once afterwards, in the place of the first; one that is named
// twice, first without a value, moves to the end.
func Set(dst, obj []byte, sets ...Field) []byte {
	var room [4]Edit
	edits := room[:0]
	done := make([]bool, len(sets)) // stands in the output, or is to be absent
	c := Over(obj)
	if !c.Open('{') {
		return append(dst, obj...)
	}
	kept, end := false, 0 // whether a member stands before, and where the one before ends
	for ; c.More(); end = c.At() {
		from := c.At()
		i := place(sets, c.Key())
		v := c.Value()
		switch {
		case i < 0:
			kept = true
		case sets[i].Value != nil && !done[i]:
			edits, kept = append(edits, Edit{v, sets[i].Value}), true
		default:
			gone := Span{from, v.To}
			if kept {
				gone.From = end
			} else if c.Peek() == ',' {
				gone.To = c.At() + 1
			}
			edits = append(edits, Edit{Span: gone})
		}
		if i >= 0 {
			done[i] = true
		}
	}
	if c.Err() != nil {
		return append(dst, obj...)
	}
	var more []byte
	for i, s := range sets {
		if first := place(sets, []byte(s.Key)); s.Value == nil || done[i] || first != i && sets[first].Value != nil {
			continue
		}
		if kept {
			more = append(more, ',')
		}
		more, kept = append(append(json.AppendString(more, s.Key), ':'), s.Value...), true
	}
	if more != nil {
		at := c.At() - 1
		edits = append(edits, Edit{Span{at, at}, more})
	}
	return Splice(dst, obj, edits...)
}

// place is which of the fields has a name, -1 for none.
func place(sets []Field, name []byte) int {
	for i, s := range sets {
		if string(name) == s.Key {
			return i
		}
	}
	return -1
}
