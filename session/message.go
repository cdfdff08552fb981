package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// message decodes an entry and brings back the blocks that stand in the bucket.
func (s *Session) message(ctx context.Context, e tidemark.Entry) (tidemark.Message, error) {
	m, err := e.Message()
	if err != nil {
		return m, fmt.Errorf("read entry %s: %w", e.ID, err)
	}
	if !bytes.Contains(e.Payload, []byte(blobField)) {
		return m, nil
	}
	return s.hydrate(ctx, m)
}

// hydrate replaces references by the blocks they name. A block that only looks like a reference,
// because someone sent the field, stays as it is.
func (s *Session) hydrate(ctx context.Context, m tidemark.Message) (tidemark.Message, error) {
	all := make([]int, len(m.Content))
	for i := range all {
		all[i] = i
	}
	return s.hydrateSome(ctx, m, all)
}

// hydrateSome is hydrate for some of the blocks.
func (s *Session) hydrateSome(ctx context.Context, m tidemark.Message, blocks []int) (tidemark.Message, error) {
	out, copied := m, false
	for _, i := range blocks {
		ref, ok := reference(m.Content[i])
		if !ok {
			continue
		}
		full, err := s.block(ctx, ref)
		if errors.Is(err, tidemark.ErrNotFound) {
			continue
		}
		if err != nil {
			return m, err
		}
		if ref.Bare && len(m.Content) == 1 {
			return tidemark.NewText(m.Role, full.Text), nil
		}
		if !copied {
			out = tidemark.Message{Role: m.Role, Content: append([]tidemark.Block(nil), m.Content...)}
			copied = true
		}
		out.Content[i] = full
	}
	return out, nil
}

// maxReference bounds a stored block that may be a reference.
const maxReference = 2048

// reference reads the reference in a stored block.
func reference(b tidemark.Block) (blobRef, bool) {
	raw := b.AppendJSON(nil)
	if len(raw) > maxReference || !bytes.Contains(raw, []byte(blobField)) {
		return blobRef{}, false
	}
	var w struct {
		Ref blobRef `json:"tidemark_blob"`
	}
	if json.Unmarshal(raw, &w) != nil || len(w.Ref.SHA256) != 64 {
		return blobRef{}, false
	}
	return w.Ref, true
}

// block reads a block from the bucket and holds it against its hash.
func (s *Session) block(ctx context.Context, ref blobRef) (tidemark.Block, error) {
	var b tidemark.Block
	_, body, err := s.Blobs.Get(ctx, s.artifact(ref.SHA256))
	if err != nil {
		return b, fmt.Errorf("read block %s: %w", ref.SHA256, err)
	}
	defer body.Close()
	if ref.Bytes < 0 || ref.Bytes > MaxMessage {
		return b, fmt.Errorf("read block %s: %d bytes: %w", ref.SHA256, ref.Bytes, tidemark.ErrTooLarge)
	}
	raw := make([]byte, ref.Bytes) // a buffer that grows would take three times as much
	n, err := io.ReadFull(body, raw)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return b, fmt.Errorf("read block %s: %w", ref.SHA256, err)
	}
	raw = raw[:n]
	if string(tidemark.HashOf(raw)) != ref.SHA256 {
		return b, fmt.Errorf("block %s does not match its hash: %w", ref.SHA256, tidemark.ErrUnavailable)
	}
	return b, json.Unmarshal(raw, &b)
}

// jsonText decodes a JSON string.
func jsonText(raw []byte, s *string) error {
	if err := json.Unmarshal(raw, s); err != nil {
		return fmt.Errorf("read command: %w", err)
	}
	return nil
}
