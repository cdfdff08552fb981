package compaction

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// PreviewTokens bounds the preview in a pointer.
const PreviewTokens = previewTokens

// PreviewOf is preview for tests, which reads more than a pointer does.
func PreviewOf(text string, most tidemark.Tokens) string { return preview(text, most, 8<<10) }

// Drafted returns what a plan counts for each item with the pointers that it makes, and the items with them.
func Drafted(p Pointer, v View, b Budget) (counted []tidemark.Tokens, sum tidemark.Tokens, written []Item, err error) {
	d := newDraft(v)
	p.blocks(d, b, p.tail(v, b, Cuts(v.Items)), make([]bool, len(v.Items)), make([]bool, len(v.Items)), nil)
	written, err = previewBlocks(v.Items, d.edits(nil))
	return d.tokens, d.sum, written, err
}

// Out returns how many pages are out by what paging decided.
func (p *Paging) Out(v View, b Budget) int { return len(p.paged(v, b).pager.Stubs()) }

// LineOf is what of episodes an edit stands for, nil for one of another strategy.
func LineOf(e tidemark.Edit) *episodes.Line { return episodes.LineOf(e.Data) }

// Fork returns the edits that hold in a branch which shares a log up to and including position
// head: those whose targets all lie in the shared prefix, and of these the outermost. The others
// stay behind, so what was sent of the prefix stays byte-equal: a stub on m3 that was written at
// m10 holds after a rewind to m8.
func Fork(placed []Placed, head int64) []Placed {
	return Lay(slices.DeleteFunc(slices.Clone(placed), func(p Placed) bool { return p.To > head })).Shown
}
