package blocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
)

// Export gives the blocks of an entry that stand in the bucket to use, and returns its payload with those that stand in the
// database; tidemark.ErrUnavailable for one that is gone, or damaged.
func (s *Store) Export(ctx context.Context, e tidemark.Entry, use func(sum tidemark.Hash, size int64, body io.Reader) error) ([]byte, error) {
	if e.Kind != tidemark.KindMessage || !bytes.Contains(e.Payload, []byte(Field)) {
		return e.Payload, nil
	}
	m, err := e.Message()
	if err != nil {
		return nil, err
	}
	var rows []int
	for i, b := range m.Content {
		switch ref, ok := Reference(b); {
		case !ok:
		case ref.In == inRow:
			rows = append(rows, i)
		default:
			if err := s.exportBlock(ctx, ref, use); err != nil {
				return nil, err
			}
		}
	}
	if m, err = s.ReadSome(ctx, m, rows); err != nil {
		return nil, err
	}
	if len(RowRefs(m, rows)) > 0 {
		return nil, fmt.Errorf("a result of a tool is gone, or damaged: %w", tidemark.ErrUnavailable)
	}
	return m.AppendJSON(nil), nil
}

func (s *Store) exportBlock(ctx context.Context, ref Ref, use func(tidemark.Hash, int64, io.Reader) error) error {
	o, body, err := s.Blobs.Get(ctx, s.Name(ref.SHA256))
	if err != nil {
		return fmt.Errorf("read block %s: %w", ref.SHA256, err)
	}
	defer body.Close()
	if o.Size != int64(ref.Bytes) {
		return fmt.Errorf("block %s has %d bytes of %d, and %w: %w", ref.SHA256, o.Size, ref.Bytes, ErrDamaged, tidemark.ErrUnavailable)
	}
	return use(tidemark.Hash(ref.SHA256), o.Size, body)
}

// Import puts a block into the bucket.
func (s *Store) Import(ctx context.Context, sum tidemark.Hash, size int64, body io.Reader) error {
	_, err := s.Blobs.Put(ctx, s.Name(string(sum)), body, size, tidemark.PutOptions{IfAbsent: true, ContentType: "application/json"})
	if errors.Is(err, tidemark.ErrConflict) { // there already: same hash, same bytes
		return nil
	}
	return err
}

// Imported is [Store.Read] of a message of an exported payload; tidemark.ErrInvalid where it refers to a block that was not
// imported.
func (s *Store) Imported(ctx context.Context, m tidemark.Message, imported func(sum tidemark.Hash) bool) (tidemark.Message, error) {
	for _, b := range m.Content {
		if ref, ok := Reference(b); ok && (ref.In != "" || !imported(tidemark.Hash(ref.SHA256))) {
			return m, fmt.Errorf("block %s is not in the archive before it: %w", ref.SHA256, tidemark.ErrInvalid)
		}
	}
	return s.Read(ctx, m)
}
