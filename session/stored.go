package session

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// storedOf reads messages of entries as a search does: results of tools that stand beside the entries are had by Whole, which
// reads those of the next messages with them, and blocks in the bucket stay as they are stored.
func (s *Session) storedOf(entries []tidemark.Entry) ([]room.Stored, error) {
	all := make([]int, 0, 16)
	out := make([]room.Stored, len(entries))
	refs := make([][]blobRef, len(entries))
	var sh shelf
	for i, e := range entries {
		refers := bytes.Contains(e.Payload, []byte(blobField))
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
		if refs[i] = rowRefs(m, all); len(refs[i]) == 0 {
			out[i].Far = true
			continue
		}
		out[i].Whole = func(ctx context.Context) (tidemark.Message, error) { return s.withRows(ctx, m, refs[i:], &sh) }
	}
	return out, nil
}

// withRows brings the artifacts of a message back, those of the first of refs, and reads those of the next
// messages with them. Blocks in the bucket stay as stored.
func (s *Session) withRows(ctx context.Context, m tidemark.Message, refs [][]blobRef, sh *shelf) (tidemark.Message, error) {
	err := sh.fetch(ctx, s, refs[0], func(yield func(blobRef) bool) {
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
		if ref, ok := reference(b); ok && ref.In == inRow {
			rows = append(rows, i)
		}
	}
	return s.hydrateFrom(ctx, m, rows, sh)
}
