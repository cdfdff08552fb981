package history

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/compaction"
)

const (
	freeView   = 1 << 20 // bytes of a view that are nothing to ask for
	admitAgain = 50 * time.Millisecond
	// decodedCopies is how often a large block is in memory while it is read: as it came, as a block, as its text, and as its
	// words.
	decodedCopies = 4
)

// Reserve waits until there is memory for a view of that many bytes. release is nil when none is to be given back.
func (r *Reader) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	if r.Admit == nil || bytes <= freeView {
		return nil, nil
	}
	for {
		release, ok := r.Admit(bytes)
		if ok {
			return release, nil
		}
		if err := r.Runtime.Sleep(ctx, admitAgain); err != nil {
			return nil, err
		}
	}
}

// Words reads a message of an entry without the large blocks that have no words, such as images: those stay references. It waits
// until there is room for the others beside what else is in memory; done gives that back.
func (r *Reader) Words(ctx context.Context, e tidemark.Entry) (m tidemark.Message, done func(), err error) {
	done = func() {}
	if m, err = e.Message(); err != nil {
		return m, done, fmt.Errorf("read entry %s: %w", e.ID, err)
	}
	if !bytes.Contains(e.Payload, []byte(blocks.Field)) {
		return m, done, nil
	}
	var with []int
	size := int64(len(e.Payload))
	for i, b := range m.Content {
		if ref, ok := blocks.Reference(b); ok && b.Type != tidemark.TypeImage {
			with, size = append(with, i), size+decodedCopies*int64(ref.Bytes)
		}
	}
	release, err := r.Reserve(ctx, min(size, r.ViewBytes()))
	if err != nil {
		return m, done, err
	}
	if release != nil {
		done = release
	}
	if m, err = r.Blocks.ReadSome(ctx, m, with); err != nil {
		done()
		return m, func() {}, err
	}
	return m, done, nil
}

// withoutReplaced empties the blocks of a message that are replaced: nobody reads them.
func withoutReplaced(m tidemark.Message, replaced []compaction.Placed) tidemark.Message {
	m = tidemark.Message{Role: m.Role, Content: slices.Clone(m.Content)}
	for _, p := range replaced {
		if p.Block <= len(m.Content) {
			m.Content[p.Block-1] = tidemark.Text("")
		}
	}
	return m
}
