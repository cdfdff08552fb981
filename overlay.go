package tidemark

import "github.com/tidemark-ai/tidemark/internal/json"

// Overlay is one act of the strategies: a set of edits, the unit of undo and of one transaction.
type Overlay struct {
	By     []string  `json:"by"` // strategies that planned it
	Edits  []Edit    `json:"edits,omitempty"`
	Lifts  []EntryID `json:"lifts,omitempty"`  // earlier overlays that this one undoes
	Reason string    `json:"reason,omitempty"` // threshold, overflow, manual, fork, undo
	Before Tokens    `json:"before,omitempty"` // size of the view before
	After  Tokens    `json:"after,omitempty"`  // and after, in the same measure, which may be a provider's
	Own    Tokens    `json:"own,omitempty"`    // and after, as we estimate it
	Model  string    `json:"model,omitempty"`  // in whose measure Before and After are
}

// Edit says how a span of entries, or one block of an entry, now reads. Entries are named by id,
// never by position. From and To are inclusive. With To empty the span has zero width and the
// replacement is inserted before From.
//
// Spans nest or are disjoint. The outermost edit that is not lifted is shown; what it covers
// sleeps, and is back when the outer one is lifted.
type Edit struct {
	From EntryID `json:"from"`
	To   EntryID `json:"to,omitempty"`
	// Block is the 1-based block of entry From that is replaced by Blocks; 0 is the whole span.
	Block int `json:"block,omitempty"`
	// Keep lists entries inside the span that stay visible: whole exchanges only.
	Keep []EntryID `json:"keep,omitempty"`
	// Messages stand at the place of the span; none removes it.
	Messages []Message `json:"messages,omitempty"`
	// Blocks stand at the place of the block; none removes it.
	Blocks []Block `json:"blocks,omitempty"`
	// Data is what the strategy wants to find again when it plans over this edit.
	Data json.RawMessage `json:"data,omitempty"`

	// Summarize asks the session to have a model write the replacement; it is never stored.
	Summarize bool `json:"-"`
}
