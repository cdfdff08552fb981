package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
)

// An overlay by which a person corrected or took back what they wrote says so.
const (
	AmendBy      = "person"
	ReasonEdit   = "edit"
	ReasonRevoke = "revoke"
)

// Amends reports such an overlay.
func Amends(o tidemark.Overlay) bool {
	return slices.Contains(o.By, AmendBy) && (o.Reason == ReasonEdit || o.Reason == ReasonRevoke)
}

// amendedFiles bounds the bytes of the files beside which words stand that came later, the newest first: a view counts what
// entries weigh, and these are of overlays.
const amendedFiles = 8 << 20

// amendedWith brings the files of edits back that stand in them as they are stored, as far as there is room for them.
func (r *Reader) amendedWith(ctx context.Context, edits []tidemark.Edit, left *int) error {
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
		m, err := r.Blocks.ReadSome(ctx, tidemark.Message{Content: e.Blocks}, with)
		if err != nil {
			return err
		}
		edits[i].Blocks = m.Content
	}
	return nil
}
