package compaction

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// cutsPlain is what [Cuts] says, by its definition: nowhere is a call parted from its result, wherever that stands later,
// nor one that nobody answers from the results beside it.
func cutsPlain(items []Item) []bool {
	legal := make([]bool, len(items)+1)
	open, answered := map[string]bool{}, resultIDs(items)
	legal[0] = true
	for i, it := range items {
		for _, b := range it.Message.Content {
			switch {
			case b.Type == tidemark.TypeToolUse && answered[b.ID]:
				open[b.ID] = true
			case b.Type == tidemark.TypeToolResult:
				delete(open, b.ToolUseID)
			}
		}
		beside := len(it.Message.Calls()) > 0 && i+1 < len(items) && len(items[i+1].Message.Results()) > 0
		legal[i+1] = len(open) == 0 && !beside
	}
	return legal
}

// TestCutsPlain compares the cut points of items of all kinds, most of them exchanges, with their definition.
func TestCutsPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	id := func() string { return fmt.Sprint("c", r.IntN(6)) }
	for range 20_000 {
		items := make([]Item, r.IntN(8))
		for i := range items {
			m := &items[i].Message
			for range r.IntN(4) {
				m.Content = append(m.Content, []tidemark.Block{tidemark.Text("x"), tidemark.ToolUse(id(), "read", nil), tidemark.ToolUse(id(), "read", nil),
					tidemark.ToolResult(id(), "x", false)}[r.IntN(4)])
			}
			if i > 0 && r.IntN(2) == 0 {
				m.Content = nil
				for _, c := range items[i-1].Message.Calls() {
					m.Content = append(m.Content, tidemark.ToolResult(c, "x", false))
				}
			}
		}
		if got, want := Cuts(items), cutsPlain(items); !slices.Equal(got, want) {
			t.Fatalf("cut points %v, want %v, of %+v", got, want, items)
		}
	}
}
