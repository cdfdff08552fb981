// Package blocks stores what is large of a message beside its entry, and brings it back: large blocks in the bucket, under
// their hash, and results of tools over a threshold compressed in the database, each once for a conversation. What the
// entry keeps in their place is a reference. Begin with Store.
package blocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Store has the large blocks of one conversation.
type Store struct {
	Key   tidemark.Key
	DB    tidemark.DB
	Blobs tidemark.Blobs
	// Open makes [Tables] in DB, and There reports whether they are.
	Open  func(ctx context.Context) error
	There func(ctx context.Context) (bool, error)
}

// MaxBytes bounds a block.
const MaxBytes = 24 << 20

// SpillBytes is the size over which a block is stored in the bucket under its hash.
const SpillBytes = 256 << 10

// Field is the field of a stored block whose bytes stand in the bucket, or in the table of artifacts.
const Field = "tidemark_blob"

// Ref says where the bytes of a block stand.
type Ref struct {
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
	Bare   bool   `json:"bare,omitempty"` // it was the whole content, as a string
	In     string `json:"in,omitempty"`   // inRow: the table; empty: the bucket
	Call   int    `json:"call,omitempty"` // where in its bytes the id of the call belongs, which the table leaves out

	id string // of the call
}

// rowBytes is the size over which a message gives up its largest blocks too, so that its row fits
// into every database with room for the rest.
const rowBytes = 1 << 20

// Spill stores large blocks under their hash and returns the message with references instead: those
// that are large by themselves, then the largest until the message fits into a row. The object is
// there before the reference, so a reference never dangles.
// A block that looks like a reference, because somebody sent the field, is stored so, too: whatever has the
// field in the log is ours.
func (s *Store) Spill(ctx context.Context, m tidemark.Message) (tidemark.Message, error) {
	raws := make([][]byte, len(m.Content))
	largest := make([]int, len(m.Content))
	total := 0
	for i, b := range m.Content {
		raws[i], largest[i] = b.AppendJSON(nil), i
		total += len(raws[i])
	}
	slices.SortStableFunc(largest, func(a, b int) int { return len(raws[b]) - len(raws[a]) })
	out, copied := m, false
	for _, i := range largest {
		_, forged := Reference(m.Content[i])
		if !forged && (len(raws[i]) <= SpillBytes && total <= rowBytes || len(raws[i]) <= maxReference) {
			continue
		}
		ref, err := s.store(ctx, m.Content[i], raws[i], m.Bare())
		if err != nil {
			return m, err
		}
		if !copied {
			out, copied = tidemark.Message{Role: m.Role, Content: slices.Clone(m.Content)}, true
		}
		out.Content[i] = ref
		total -= len(raws[i])
	}
	return out, nil
}

// store puts a block into the bucket and returns the reference to it.
func (s *Store) store(ctx context.Context, b tidemark.Block, raw []byte, bare bool) (tidemark.Block, error) {
	if len(raw) > MaxBytes {
		return b, fmt.Errorf("block of %d bytes, at most %d: %w", len(raw), MaxBytes, tidemark.ErrTooLarge)
	}
	sum := string(tidemark.HashOf(raw))
	_, err := s.Blobs.Put(ctx, s.Name(sum), bytes.NewReader(raw), int64(len(raw)), tidemark.PutOptions{IfAbsent: true, ContentType: "application/json"})
	if err != nil && !errors.Is(err, tidemark.ErrConflict) { // there already: same hash, same bytes
		return b, fmt.Errorf("store block of %d bytes: %w", len(raw), err)
	}
	return referTo(b, Ref{SHA256: sum, Bytes: len(raw), Bare: bare})
}

// referTo returns the block that is stored instead of one whose bytes stand elsewhere.
func referTo(b tidemark.Block, to Ref) (tidemark.Block, error) {
	short := map[string]any{"type": b.Type, Field: to}
	switch b.Type {
	case tidemark.TypeToolUse:
		short["id"], short["name"], short["input"] = b.ID, b.Name, struct{}{}
	case tidemark.TypeToolResult:
		short["tool_use_id"], short["is_error"] = b.ToolUseID, b.IsError
	}
	raw, err := json.Marshal(short)
	if err != nil {
		return b, fmt.Errorf("store block: %w", err)
	}
	var ref tidemark.Block
	if err := json.Unmarshal(raw, &ref); err != nil {
		return b, fmt.Errorf("store block: %w", err)
	}
	return ref, nil
}

// Name is the name of a block in the bucket.
func (s *Store) Name(sum string) string {
	return "agents/" + s.Key.Agent() + "/artifacts/" + sum
}

// Large returns the blocks of a stored message that stand in the bucket, and what they weigh.
func Large(m tidemark.Message) (blocks []int, bytes int64) {
	for i, b := range m.Content {
		if ref, ok := Reference(b); ok {
			blocks, bytes = append(blocks, i), bytes+int64(ref.Bytes)
		}
	}
	return blocks, bytes
}
