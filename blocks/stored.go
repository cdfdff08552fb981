package blocks

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// Message is what a search reads of one.
type Message struct {
	Message tidemark.Message // large blocks as they are stored
	Far     bool             // it has large blocks, and all of them stand in the bucket
	// Whole returns it with the blocks that stand beside its entry in the database; nil where none do.
	Whole func(ctx context.Context) (tidemark.Message, error)
}

// Stored reads messages of entries as a search does: results of tools that stand beside the entries are had by Whole, which
// reads those of the next messages with them, and blocks in the bucket stay as they are stored.
func (s *Store) Stored(entries []tidemark.Entry) ([]Message, error) {
	var all []int
	out := make([]Message, len(entries))
	refs := make([][]Ref, len(entries))
	sh := s.Shelf()
	for i, e := range entries {
		refers := bytes.Contains(e.Payload, []byte(Field))
		if !refers {
			if m, ok := skim(e.Payload); ok {
				out[i].Message = m
				continue
			}
		}
		m, err := e.Message()
		if err != nil {
			return nil, fmt.Errorf("entry %s: %w", e.ID, err)
		}
		out[i].Message = m
		if !refers {
			continue
		}
		all = all[:0]
		for n := range m.Content {
			all = append(all, n)
		}
		if refs[i] = RowRefs(m, all); len(refs[i]) == 0 {
			out[i].Far = true
			continue
		}
		out[i].Whole = func(ctx context.Context) (tidemark.Message, error) { return withRows(ctx, m, refs[i:], sh) }
	}
	return out, nil
}

// withRows brings the artifacts of a message back, those of the first of refs, and reads those of the next
// messages with them. Blocks in the bucket stay as stored.
func withRows(ctx context.Context, m tidemark.Message, refs [][]Ref, sh *Shelf) (tidemark.Message, error) {
	err := sh.Fetch(ctx, refs[0], func(yield func(Ref) bool) {
		for _, r := range slices.Concat(refs[1:]...) {
			if !yield(r) {
				return
			}
		}
	})
	if err != nil {
		return m, err
	}
	var rows []int
	for i, b := range m.Content {
		if ref, ok := Reference(b); ok && ref.In == inRow {
			rows = append(rows, i)
		}
	}
	return sh.Read(ctx, m, rows)
}
