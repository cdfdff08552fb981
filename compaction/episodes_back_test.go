package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
)

// TestEpisodesBroughtBack: what somebody brought back, whole or a block of it, does not leave with the next plan; a call
// and its result stay together.
func TestEpisodesBroughtBack(t *testing.T) {
	var v compaction.View
	add := func(m tidemark.Message) {
		n := len(v.Items) + 1
		id := tidemark.EntryID(fmt.Sprintf("e%03d", n))
		v.Items = append(v.Items, compaction.Item{ID: id, From: id, To: id, Seq: int64(n), Last: int64(n), Message: m, Tokens: tidemark.Estimate(m)})
	}
	add(tidemark.NewText(tidemark.User, "go on"))
	for i := range 12 {
		call := fmt.Sprintf("c%d", i)
		start := tidemark.ToolUse(call+"s", episodes.ToolName, fmt.Appendf(nil, `{"action":"start","name":"work %d","type":"act","dependencies":[]}`, i))
		add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{start, tidemark.ToolUse(call, "bash", []byte(`{"command":"make"}`)),
			tidemark.ToolUse(call+"e", episodes.ToolName, []byte(`{"action":"end"}`))}})
		add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(call+"s", "Started.", false),
			tidemark.ToolResult(call, strings.Repeat("made it. ", 120), false), tidemark.ToolResult(call+"e", "Ended.", false)}})
	}
	add(tidemark.NewText(tidemark.Assistant, "done"))
	v.Size = v.Tokens()
	b := compaction.Budget{Window: 50_000, Reserve: 1000, Keep: 1000}
	gone := func(v compaction.View) (out []tidemark.EntryID) {
		e := &compaction.Episodes{Budget: episodes.Budget{Tokens: 3_000}}
		after, err := compaction.Preview(v, e.Plan(v, b), b)
		if err != nil {
			t.Fatal(err)
		}
		if err := tidemark.Check(after.Messages()); err != nil {
			t.Fatal(err)
		}
		for _, it := range v.Items {
			if !slices.ContainsFunc(after.Items, func(x compaction.Item) bool { return x.ID == it.ID }) {
				out = append(out, it.ID)
			}
		}
		return out
	}
	for _, id := range []tidemark.EntryID{"e002", "e003", "e004", "e005"} {
		if !slices.Contains(gone(v), id) {
			t.Fatalf("%s stays though nobody holds it: %v are gone", id, gone(v))
		}
	}
	held := v
	held.Returned = []compaction.Span{{From: 2, To: 3}}
	held.Back = map[tidemark.EntryID][]int{"e005": {2}} // of a result alone
	left := gone(held)
	for _, id := range []tidemark.EntryID{"e002", "e003", "e004", "e005"} {
		if slices.Contains(left, id) {
			t.Errorf("%s left though it was brought back: %v are gone", id, left)
		}
	}
	if !slices.Contains(left, "e006") {
		t.Errorf("nothing else left: %v", left)
	}
}
