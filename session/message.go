package session

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

// wordy is message without the large blocks that have no words, such as images: those stay references. It waits
// until there is room for the others beside what else is in memory; done gives that back.
func (s *Session) wordy(ctx context.Context, e tidemark.Entry) (m tidemark.Message, done func(), err error) {
	done = func() {}
	if m, err = e.Message(); err != nil {
		return m, done, fmt.Errorf("read entry %s: %w", e.ID, err)
	}
	if !bytes.Contains(e.Payload, []byte(blobField)) {
		return m, done, nil
	}
	var with []int
	size := int64(len(e.Payload))
	for i, b := range m.Content {
		if ref, ok := reference(b); ok && b.Type != tidemark.TypeImage {
			with, size = append(with, i), size+decodedCopies*int64(ref.Bytes)
		}
	}
	release, err := s.room(ctx, min(size, s.settings().ViewBytes))
	if err != nil {
		return m, done, err
	}
	if release != nil {
		done = release
	}
	if m, err = s.hydrateSome(ctx, m, with); err != nil {
		done()
		return m, func() {}, err
	}
	return m, done, nil
}

// decodedCopies is how often a large block is in memory while it is read: as it came, as a block, as its text,
// and as its words.
const decodedCopies = 4

// hydrate replaces references, to the bucket and to artifacts, by the blocks they name.
func (s *Session) hydrate(ctx context.Context, m tidemark.Message) (tidemark.Message, error) {
	all := make([]int, len(m.Content))
	for i := range all {
		all[i] = i
	}
	return s.hydrateSome(ctx, m, all)
}

// hydrateSome is hydrate for some of the blocks.
func (s *Session) hydrateSome(ctx context.Context, m tidemark.Message, blocks []int) (tidemark.Message, error) {
	var sh shelf
	if err := sh.fetch(ctx, s, rowRefs(m, blocks), nil); err != nil {
		return m, err
	}
	return s.hydrateFrom(ctx, m, blocks, &sh)
}

// hydrateFrom is hydrateSome with the artifacts that were read before.
func (s *Session) hydrateFrom(ctx context.Context, m tidemark.Message, blocks []int, sh *shelf) (tidemark.Message, error) {
	out, copied := m, false
	for _, i := range blocks {
		ref, ok := reference(m.Content[i])
		if !ok {
			continue
		}
		read := s.block
		if ref.In == inRow {
			read = sh.block
		}
		full, err := read(ctx, ref)
		if errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, errDamaged) { // the reference stays, see noted
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

// lostTries is how often an input is tried that has a block which cannot be read.
const lostTries = 3

// noted returns a message as the model reads it, with a note in the place of each block that is a reference still:
// what it names is gone, or is not what was stored, and no provider takes a reference. The error says which.
func (s *Session) noted(stored, full tidemark.Message, id string) (m tidemark.Message, err error) {
	m = full
	for i, b := range stored.Content {
		ref, ok := reference(b)
		if !ok || i >= len(full.Content) || !bytes.Equal(b.Raw(), full.Content[i].Raw()) {
			continue
		}
		if err == nil {
			m.Content = slices.Clone(m.Content)
		}
		err = fmt.Errorf("block %d (%s) of %s %w; put %s back into the bucket from a backup, or send it again", i+1, b.Type, id, errDamaged, s.artifact(ref.SHA256))
		m.Content[i] = noteFor(b, "["+err.Error()+"]")
	}
	return m, err
}

// noteFor is a note in the place of a block. A call stays one, and has its result.
func noteFor(b tidemark.Block, note string) tidemark.Block {
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

// reference reads the reference in a stored block.
func reference(b tidemark.Block) (blobRef, bool) {
	raw := b.Raw() // it was read from the log
	if len(raw) > maxReference || !bytes.Contains(raw, []byte(blobField)) {
		return blobRef{}, false
	}
	var w struct {
		Ref blobRef `json:"tidemark_blob"`
	}
	if json.Unmarshal(raw, &w) != nil || !isHash(w.Ref.SHA256) || w.Ref.Bytes < 0 || w.Ref.Bytes > MaxMessage {
		return blobRef{}, false
	}
	w.Ref.id = b.ToolUseID
	return w.Ref, true
}

// isHash reports a SHA-256 in lower hex, as names of blocks are.
func isHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// errDamaged says that something stored is not what was stored: unlike a storage that is down, reading it
// again gives the same.
var errDamaged = errors.New("is not what was stored")

// block reads a block from the bucket and holds it against its hash.
func (s *Session) block(ctx context.Context, ref blobRef) (tidemark.Block, error) {
	var b tidemark.Block
	o, body, err := s.Blobs.Get(ctx, s.artifact(ref.SHA256))
	if err != nil {
		return b, fmt.Errorf("read block %s: %w", ref.SHA256, err)
	}
	defer body.Close()
	if ref.Bytes < 0 || ref.Bytes > MaxMessage {
		return b, fmt.Errorf("read block %s: %d bytes: %w", ref.SHA256, ref.Bytes, tidemark.ErrTooLarge)
	}
	raw := make([]byte, ref.Bytes) // a buffer that grows would take three times as much
	n, err := io.ReadFull(body, raw)
	if short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); err != nil && (!short || o.Size == int64(ref.Bytes)) {
		return b, fmt.Errorf("read block %s: %w: %w", ref.SHA256, err, tidemark.ErrUnavailable) // the connection broke
	}
	raw = raw[:n]
	if string(tidemark.HashOf(raw)) != ref.SHA256 {
		return b, fmt.Errorf("block %s does not match its hash: %w: %w", ref.SHA256, errDamaged, tidemark.ErrUnavailable)
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

// amendedFiles bounds the bytes of the files beside which words stand that came later, the newest first: a view counts what
// entries weigh, and these are of overlays.
const amendedFiles = 8 << 20

// amendedWith brings the files of edits back that stand in them as they are stored, as far as there is room for them.
func (s *Session) amendedWith(ctx context.Context, edits []tidemark.Edit, left *int) error {
	for i, e := range edits {
		var with []int
		for n, b := range e.Blocks {
			ref, ok := reference(b)
			if !ok {
				continue
			}
			if ref.Bytes > *left {
				e.Blocks[n] = tidemark.Text(fmt.Sprintf("[%s: %d bytes, too many beside the others; recall with {\"entry\": \"%s#%d\"} shows it]", b.Type, ref.Bytes, e.From, e.Block-1))
				continue
			}
			with, *left = append(with, n), *left-ref.Bytes
		}
		if len(with) == 0 {
			continue
		}
		m, err := s.hydrateSome(ctx, tidemark.Message{Content: e.Blocks}, with)
		if err != nil {
			return err
		}
		edits[i].Blocks = m.Content
	}
	return nil
}
