package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// blocks is what a room has of the large blocks of messages.
func (s *Session) blocks() room.Blocks {
	return room.Blocks{MaxBlock: MaxMessage, Export: s.exportBlocks, Keep: s.artifactStmts,
		Import: func(ctx context.Context, sum tidemark.Hash, size int64, body io.Reader) error {
			_, err := s.Blobs.Put(ctx, s.artifact(string(sum)), body, size, tidemark.PutOptions{IfAbsent: true, ContentType: "application/json"})
			if errors.Is(err, tidemark.ErrConflict) { // there already: same hash, same bytes
				return nil
			}
			return err
		},
		Whole: func(ctx context.Context, m tidemark.Message, imported func(tidemark.Hash) bool) (tidemark.Message, error) {
			for _, b := range m.Content {
				if ref, ok := reference(b); ok && (ref.In != "" || !imported(tidemark.Hash(ref.SHA256))) {
					return m, fmt.Errorf("block %s is not in the archive before it: %w", ref.SHA256, tidemark.ErrInvalid)
				}
			}
			return s.hydrate(ctx, m)
		}}
}

// exportBlocks gives those of an entry that stand in the bucket to use, and returns its payload with those in the table.
func (s *Session) exportBlocks(ctx context.Context, e tidemark.Entry, use func(tidemark.Hash, int64, io.Reader) error) ([]byte, error) {
	if e.Kind != tidemark.KindMessage || !bytes.Contains(e.Payload, []byte(blobField)) {
		return e.Payload, nil
	}
	m, err := e.Message()
	if err != nil {
		return nil, err
	}
	var rows []int
	for i, b := range m.Content {
		switch ref, ok := reference(b); {
		case !ok:
		case ref.In == inRow:
			rows = append(rows, i)
		default:
			if err := exportBlock(ctx, s.Blobs, s.artifact(ref.SHA256), ref, use); err != nil {
				return nil, err
			}
		}
	}
	if m, err = s.hydrateSome(ctx, m, rows); err != nil {
		return nil, err
	}
	if len(rowRefs(m, rows)) > 0 {
		return nil, fmt.Errorf("a result of a tool is gone, or damaged: %w", tidemark.ErrUnavailable)
	}
	return m.AppendJSON(nil), nil
}

func exportBlock(ctx context.Context, from tidemark.Blobs, key string, ref blobRef, use func(tidemark.Hash, int64, io.Reader) error) error {
	o, body, err := from.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read block %s: %w", ref.SHA256, err)
	}
	defer body.Close()
	if o.Size != int64(ref.Bytes) {
		return fmt.Errorf("block %s has %d bytes of %d, and %w: %w", ref.SHA256, o.Size, ref.Bytes, errDamaged, tidemark.ErrUnavailable)
	}
	return use(tidemark.Hash(ref.SHA256), o.Size, body)
}
