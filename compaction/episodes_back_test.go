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

// TestPointerBehindEpisodes: at the limit of the window the pointer takes what people said long ago, though lines of
// evicted episodes stand behind it, and takes these with it; what leaves comes back when it is undone.
func TestPointerBehindEpisodes(t *testing.T) {
	var ms []tidemark.Message
	for i := range 8 {
		c := fmt.Sprintf("c%d", i)
		start := tidemark.ToolUse(c+"s", episodes.ToolName, fmt.Appendf(nil, `{"action":"start","name":"work %d","type":"act","dependencies":[]}`, i))
		ms = append(ms, tidemark.NewText(tidemark.User, fmt.Sprintf("Order %d. ", i)+strings.Repeat("please make it ", 200)),
			tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{start, tidemark.ToolUse(c, "bash", []byte(`{"command":"make"}`)),
				tidemark.ToolUse(c+"e", episodes.ToolName, []byte(`{"action":"end"}`))}},
			tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(c+"s", "Started.", false),
				tidemark.ToolResult(c, strings.Repeat("made it. ", 120), false), tidemark.ToolResult(c+"e", "Ended.", false)}},
			tidemark.NewText(tidemark.Assistant, "done"))
	}
	ms = append(ms, tidemark.NewText(tidemark.User, "and now?"))
	w, v := viewOf(t, ms...)
	list := []compaction.Strategy{&compaction.Episodes{Budget: episodes.Budget{Tokens: 8_000}}, compaction.Pointer{Tail: 2}}
	for _, window := range []tidemark.Tokens{50_000, 6_000} {
		b := compaction.Budget{Window: window, Reserve: 1000, Keep: 1000}.Fit()
		act, err := compaction.Plan(list, v, b, false)
		if err != nil {
			t.Fatalf("window %d: %v", window, err)
		}
		if err := w.act(t, nil, act.Edits); err != nil {
			t.Fatal(err)
		}
		if v, _ = w.view(t); b.Over(v) {
			t.Errorf("window %d: %d tokens stand, by %v:\n%s", window, v.Size, act.By, outline(v.Items))
		}
		if err := tidemark.Check(v.Messages()); err != nil {
			t.Error(err)
		}
	}
	m, ok := compaction.MarkerOf(tidemark.Edit{Data: v.Items[0].Data})
	if n := len(ms) - (len(v.Items) - 1); !ok || m.Count > n || m.Count < n/2 {
		t.Errorf("marker %+v for %d messages:\n%s", m, n, outline(v.Items))
	}
}
