package blocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Message decodes an entry and brings back the blocks that stand in the bucket.
func (s *Store) Message(ctx context.Context, e tidemark.Entry) (tidemark.Message, error) {
	m, err := e.Message()
	if err != nil {
		return m, fmt.Errorf("read entry %s: %w", e.ID, err)
	}
	if !bytes.Contains(e.Payload, []byte(Field)) {
		return m, nil
	}
	return s.Read(ctx, m)
}

// Read replaces references, to the bucket and to artifacts, by the blocks they name.
func (s *Store) Read(ctx context.Context, m tidemark.Message) (tidemark.Message, error) {
	all := make([]int, len(m.Content))
	for i := range all {
		all[i] = i
	}
	return s.ReadSome(ctx, m, all)
}

// ReadSome is Read for some of the blocks.
func (s *Store) ReadSome(ctx context.Context, m tidemark.Message, blocks []int) (tidemark.Message, error) {
	sh := s.Shelf()
	if err := sh.Fetch(ctx, RowRefs(m, blocks), nil); err != nil {
		return m, err
	}
	return sh.Read(ctx, m, blocks)
}

// Read is [Store.ReadSome] with the artifacts that were fetched before.
func (h *Shelf) Read(ctx context.Context, m tidemark.Message, blocks []int) (tidemark.Message, error) {
	out, copied := m, false
	for _, i := range blocks {
		ref, ok := Reference(m.Content[i])
		if !ok {
			continue
		}
		read := h.store.block
		if ref.In == inRow {
			read = h.block
		}
		full, err := read(ctx, ref)
		if errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, ErrDamaged) { // the reference stays, see Noted
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

// Noted returns a message as the model reads it, with a note in the place of each block that is a reference still:
// what it names is gone, or is not what was stored, and no provider takes a reference. The error says which.
func (s *Store) Noted(stored, full tidemark.Message, id string) (m tidemark.Message, err error) {
	m = full
	for i, b := range stored.Content {
		ref, ok := Reference(b)
		if !ok || i >= len(full.Content) || !bytes.Equal(b.Raw(), full.Content[i].Raw()) {
			continue
		}
		if err == nil {
			m.Content = slices.Clone(m.Content)
		}
		err = fmt.Errorf("block %d (%s) of %s %w; put %s back into the bucket from a backup, or send it again", i+1, b.Type, id, ErrDamaged, s.Name(ref.SHA256))
		m.Content[i] = Note(b, "["+err.Error()+"]")
	}
	return m, err
}

// Note is a note in the place of a block. A call stays one, and has its result.
func Note(b tidemark.Block, note string) tidemark.Block {
	switch b.Type {
	case tidemark.TypeToolUse:
		return tidemark.ToolUse(b.ID, b.Name, nil)
	case tidemark.TypeToolResult:
		return tidemark.ToolResult(b.ToolUseID, note, b.IsError)
	}
	return tidemark.Text(note)
}

// maxReference bounds a stored block that may be a reference.
const maxReference = 2048

// Reference reads the reference in a stored block.
func Reference(b tidemark.Block) (Ref, bool) {
	raw := b.Raw() // it was read from the log
	if len(raw) > maxReference || !bytes.Contains(raw, []byte(Field)) {
		return Ref{}, false
	}
	var w struct {
		Ref Ref `json:"tidemark_blob"`
	}
	if json.Unmarshal(raw, &w) != nil || !isHash(w.Ref.SHA256) || w.Ref.Bytes < 0 || w.Ref.Bytes > MaxBytes {
		return Ref{}, false
	}
	w.Ref.id = b.ToolUseID
	return w.Ref, true
}

// isHash reports a SHA-256 in lower hex, as names of blocks are.
func isHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// ErrDamaged says that something stored is not what was stored: unlike a storage that is down, reading it
// again gives the same.
var ErrDamaged = errors.New("is not what was stored")

// block reads a block from the bucket and holds it against its hash.
func (s *Store) block(ctx context.Context, ref Ref) (tidemark.Block, error) {
	var b tidemark.Block
	o, body, err := s.Blobs.Get(ctx, s.Name(ref.SHA256))
	if err != nil {
		return b, fmt.Errorf("read block %s: %w", ref.SHA256, err)
	}
	defer body.Close()
	raw := make([]byte, ref.Bytes) // as Reference bounds them; a buffer that grows would take three times as much
	_, err = io.ReadFull(body, raw)
	if short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); err != nil && (!short || o.Size == int64(ref.Bytes)) {
		return b, fmt.Errorf("read block %s: %w: %w", ref.SHA256, err, tidemark.ErrUnavailable) // the connection broke
	}
	if string(tidemark.HashOf(raw)) != ref.SHA256 {
		return b, fmt.Errorf("block %s does not match its hash: %w: %w", ref.SHA256, ErrDamaged, tidemark.ErrUnavailable)
	}
	return b, json.Unmarshal(raw, &b)
}
