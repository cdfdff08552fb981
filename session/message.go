package session

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// wordy is message without the large blocks that have no words, such as images: those stay references. It waits
// until there is room for the others beside what else is in memory; done gives that back.
func (s *Session) wordy(ctx context.Context, e tidemark.Entry) (m tidemark.Message, done func(), err error) {
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
	release, err := s.room(ctx, min(size, s.settings().ViewBytes))
	if err != nil {
		return m, done, err
	}
	if release != nil {
		done = release
	}
	if m, err = s.blocks.ReadSome(ctx, m, with); err != nil {
		done()
		return m, func() {}, err
	}
	return m, done, nil
}

// decodedCopies is how often a large block is in memory while it is read: as it came, as a block, as its text,
// and as its words.
const decodedCopies = 4

// lostTries is how often an input is tried that has a block which cannot be read.
const lostTries = 3

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
			ref, ok := blocks.Reference(b)
			if !ok {
				continue
			}
			if ref.Bytes > *left {
				e.Blocks[n] = tidemark.Text(fmt.Sprintf("[%s: %d bytes, too many beside the others; recall with {\"entry\": \"%s#%d\"} shows it]", b.Type, ref.Bytes, e.From, e.Block-1))
				continue
			}
			with, *left = append(with, n), *left-ref.Bytes
		}
		m, err := s.blocks.ReadSome(ctx, tidemark.Message{Content: e.Blocks}, with)
		if err != nil {
			return err
		}
		edits[i].Blocks = m.Content
	}
	return nil
}
