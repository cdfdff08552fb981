package blocks

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/gz"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// DefaultChars is the size over which a result of a tool is an artifact.
const DefaultChars = 1024

// Tables hold the results of tools over a threshold, compressed, each once for a conversation and its
// branches: the entry keeps the reference. Rows are 2 KB on average, of which an index of its own would
// leave a page each to overflow: with a number as key and the hash beside it they take 8 % less.
var Tables = []string{
	`CREATE TABLE artifacts(
		n INTEGER PRIMARY KEY, key TEXT NOT NULL, sha TEXT NOT NULL, size INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE(key, sha))`,
}

// inRow marks a reference whose bytes stand in the table of artifacts, and not in the bucket.
const inRow = "row"

// minSaved is what the row of an artifact and the reference to it take by themselves: one that saves less
// stays where it is.
const minSaved = 512

// InRow reports whether the bytes stand in the database.
func (r Ref) InRow() bool { return r.In == inRow }

// artifact is a block as the table has it.
type artifact struct {
	size int
	gzip []byte
}

// Compress takes the large results of tools out of a message: it returns the message with references, and
// the statements that store the blocks, for the transaction that stores the entry.
func (s *Store) Compress(ctx context.Context, m tidemark.Message, most int) (tidemark.Message, []tidemark.Stmt, error) {
	if most < 0 {
		return m, nil, nil
	}
	out, stmts := m, []tidemark.Stmt(nil)
	for i, b := range m.Content {
		if b.Type != tidemark.TypeToolResult {
			continue
		}
		raw := b.AppendJSON(nil)
		if len(raw) <= most || len(raw) > SpillBytes || tidemark.UTF16Len(raw) <= most {
			continue
		}
		kept, call := withoutCall(raw, b.ToolUseID)
		packed, err := gz.Zip(kept)
		if err != nil {
			return m, nil, fmt.Errorf("store result of %s: %w", b.ToolUseID, err)
		}
		if len(packed)+minSaved > len(raw) {
			continue
		}
		if err := s.Open(ctx); err != nil {
			return m, nil, err
		}
		sum := string(tidemark.HashOf(kept))
		ref, err := referTo(b, Ref{SHA256: sum, Bytes: len(raw), In: inRow, Call: call})
		if err != nil {
			return m, nil, err
		}
		if stmts == nil {
			out = tidemark.Message{Role: m.Role, Content: slices.Clone(m.Content)}
		}
		out.Content[i] = ref
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO artifacts(key, sha, size, bytes) VALUES(?, ?, ?, ?) ON CONFLICT(key, sha) DO NOTHING`,
			Args: []any{string(s.Key.Root()), sum, len(kept), packed}})
	}
	return out, stmts, nil
}

// withoutCall takes the id of the call out of a block, so that equal results of two calls are one artifact, and
// returns where it stood; 0 for not at all.
func withoutCall(raw []byte, id string) (kept []byte, at int) {
	field := json.AppendString([]byte(`"tool_use_id":`), id)
	at = bytes.Index(raw, field)
	if at < 0 {
		return raw, 0
	}
	end := at + len(field)
	at += len(`"tool_use_id":`)
	return append(slices.Clip(raw[:at]), raw[end:]...), at
}

// withCall puts the id of the call back.
func withCall(kept []byte, id string, at int) []byte {
	if at <= 0 || at > len(kept) {
		return kept
	}
	raw := json.AppendString(slices.Clip(kept[:at]), id)
	return append(raw, kept[at:]...)
}

// Bounds of one query for artifacts.
const (
	artifactPage      = 64
	artifactPageBytes = 1 << 20 // expanded
)

// artifactsOf reads artifacts by their references, compressed; what is not there is left out. A reference that
// somebody made up names none but of this conversation.
func (s *Store) artifactsOf(ctx context.Context, refs []Ref) (map[string]artifact, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	if there, err := s.There(ctx); err != nil || !there {
		return nil, err
	}
	out := make(map[string]artifact, len(refs))
	for len(refs) > 0 {
		n, size := 0, 0
		for n < min(len(refs), artifactPage) && (n == 0 || size+refs[n].Bytes <= artifactPageBytes) {
			size += refs[n].Bytes
			n++
		}
		args := []any{string(s.Key.Root())}
		for _, r := range refs[:n] {
			args = append(args, r.SHA256)
		}
		refs = refs[n:]
		rows, err := s.DB.Query(ctx, `SELECT sha, size, bytes FROM artifacts WHERE key = ? AND sha IN (?`+strings.Repeat(", ?", n-1)+`) LIMIT ?`, append(args, n)...)
		if err != nil {
			return nil, fmt.Errorf("read artifacts: %w", err)
		}
		for _, r := range rows {
			out[r.Text(0)] = artifact{int(r.Int(1)), r.Bytes(2)}
		}
	}
	return out, nil
}

// Shelf gives the blocks that references in some messages name, and reads those of several messages at once.
type Shelf struct {
	store *Store
	zip   gzip.Reader
	held  map[string]artifact
}

// Shelf returns an empty one.
func (s *Store) Shelf() *Shelf { return &Shelf{store: s} }

// Fetch sees to it that the artifacts of the first message are there, and those of the next ones as far as
// one page holds them.
func (h *Shelf) Fetch(ctx context.Context, first []Ref, next func(yield func(Ref) bool)) error {
	if !slices.ContainsFunc(first, func(r Ref) bool { _, ok := h.held[r.SHA256]; return !ok }) {
		return nil
	}
	refs, size := slices.Clip(first), 0
	for _, r := range first {
		size += r.Bytes
	}
	if next != nil {
		next(func(r Ref) bool {
			if size += r.Bytes; size > artifactPageBytes || len(refs) >= artifactPage {
				return false
			}
			refs = append(refs, r)
			return true
		})
	}
	var err error
	h.held, err = h.store.artifactsOf(ctx, refs)
	return err
}

// block expands an artifact; one that is not there is ErrNotFound.
func (h *Shelf) block(_ context.Context, ref Ref) (tidemark.Block, error) {
	a, ok := h.held[ref.SHA256]
	if !ok {
		return tidemark.Block{}, fmt.Errorf("artifact %s: %w", ref.SHA256, tidemark.ErrNotFound)
	}
	raw, err := gz.Unzip(&h.zip, a.gzip, a.size)
	if err != nil {
		return tidemark.Block{}, fmt.Errorf("artifact %s: %w: %w", ref.SHA256, ErrDamaged, err)
	}
	if raw = withCall(raw, ref.id, ref.Call); len(raw) != ref.Bytes {
		return tidemark.Block{}, fmt.Errorf("artifact %s for a result of %d bytes: %w", ref.SHA256, ref.Bytes, tidemark.ErrNotFound)
	}
	// As the only block of a message: those are decoded in one pass.
	var m tidemark.Message
	whole := make([]byte, 0, len(raw)+32)
	whole = append(append(append(whole, `{"role":"user","content":[`...), raw...), `]}`...)
	if err := json.Unmarshal(whole, &m); err != nil || len(m.Content) != 1 {
		return tidemark.Block{}, fmt.Errorf("artifact %s is no block: %w: %w", ref.SHA256, ErrDamaged, tidemark.ErrUnavailable)
	}
	return m.Content[0], nil
}

// RowRefs returns the references of some blocks of a message to artifacts.
func RowRefs(m tidemark.Message, blocks []int) []Ref {
	var out []Ref
	for _, i := range blocks {
		if ref, ok := Reference(m.Content[i]); ok && ref.In == inRow {
			out = append(out, ref)
		}
	}
	return out
}
