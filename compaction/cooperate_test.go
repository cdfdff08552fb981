package compaction_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/compaction"
)

// talk is a view of turns, each with a call and its result.
func talk(r *rand.Rand, turns int) compaction.View {
	var v compaction.View
	add := func(m tidemark.Message) {
		n := len(v.Items) + 1
		id := tidemark.EntryID(fmt.Sprintf("E%03d", n))
		v.Items = append(v.Items, compaction.Item{ID: id, From: id, To: id, Seq: int64(n), Last: int64(n), Message: m, Tokens: tidemark.Estimate(m)})
	}
	for i := range turns {
		add(tidemark.NewText(tidemark.User, strings.Repeat("asked ", 1+r.IntN(200))))
		for range r.IntN(3) {
			call := fmt.Sprintf("c%d", len(v.Items))
			add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(strings.Repeat("said ", 1+r.IntN(100))),
				tidemark.ToolUse(call, "read_file", fmt.Appendf(nil, `{"path":"f%d.go"}`, i))}})
			add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(call, strings.Repeat("line\n", r.IntN(400)), false)}})
		}
		if i < turns-1 || r.IntN(2) == 0 {
			add(tidemark.NewText(tidemark.Assistant, strings.Repeat("answer ", 1+r.IntN(200))))
		}
	}
	v.Size = v.Tokens()
	return v
}

// TestTidyGivesViews: whatever a model asks for, the edits fit together, the view passes Check, and nothing pinned or
// asked last leaves.
func TestTidyGivesViews(t *testing.T) {
	budget := compaction.Budget{Window: 200_000, Reserve: 1000, Keep: 1000}
	r := rand.New(rand.NewPCG(7, 1))
	var did [5]int
	verbs := []string{cleanup.Drop, cleanup.Summarize, cleanup.Anchor, cleanup.Release, cleanup.Collapse}
	for n := range 3000 {
		v := talk(r, 1+r.IntN(7))
		pinned := r.IntN(len(v.Items))
		v.Items[pinned].Pinned = r.IntN(3) == 0
		var ops []cleanup.Op
		for range 1 + r.IntN(6) {
			h := fmt.Sprintf("E%03d#%d", 1+r.IntN(len(v.Items)+1), r.IntN(3))
			from := 1 + r.IntN(5)
			ops = append(ops, cleanup.Op{Verb: verbs[r.IntN(5)], Handle: h, Paths: []string{h, fmt.Sprintf("f%d.go", r.IntN(7))}, From: from, To: from + r.IntN(4), Text: "so it was"})
		}
		var p compaction.Paging
		got := p.Tidy(v, budget, ops)
		after, err := compaction.Preview(v, got.Edits, budget)
		if err == nil {
			err = tidemark.Check(after.Messages())
		}
		if err != nil {
			t.Fatalf("view %d: %v: %+v", n, err, got)
		}
		if after.Tokens() > v.Tokens()+tidemark.Tokens(len(got.Edits)) { // a stub is shorter in bytes, which a token rounds
			t.Fatalf("view %d grew from %d to %d tokens: %+v", n, v.Tokens(), after.Tokens(), got)
		}
		begins := compaction.Turns(v.Items)
		for _, i := range []int{begins[len(begins)-1], pinned} {
			it := v.Items[i]
			if i == pinned && !it.Pinned {
				continue
			}
			if !slices.ContainsFunc(after.Items, func(a compaction.Item) bool {
				return a.ID == it.ID && string(a.Message.AppendJSON(nil)) == string(it.Message.AppendJSON(nil))
			}) {
				t.Fatalf("view %d: %s left: %+v", n, it.ID, got)
			}
		}
		for i, d := range got.Done {
			if d.Op.Verb != ops[i].Verb {
				t.Fatalf("operation %d is told as %+v", i, d)
			}
			if d.Why == "" {
				did[slices.Index(verbs, d.Op.Verb)]++
			}
		}
		if spans := slices.ContainsFunc(got.Edits, func(e tidemark.Edit) bool { return e.Block == 0 }); spans != (got.Pruned > 0 && got.Last > 0) {
			t.Fatalf("view %d: %+v", n, got)
		}
	}
	t.Logf("done: %v of %v", did, verbs)
	if slices.Min(did[:]) < 100 {
		t.Error("some are hardly ever done")
	}
}

func TestTurns(t *testing.T) {
	v := talk(rand.New(rand.NewPCG(1, 1)), 4)
	begins := compaction.Turns(v.Items)
	if len(begins) != 4 || begins[0] != 0 {
		t.Fatal(begins)
	}
	v.Items[begins[1]].Overlay = "a summary"
	if got := compaction.Turns(v.Items); len(got) != 3 || slices.Contains(got, begins[1]) {
		t.Error(got)
	}
}

// TestReleasePath: by a path all leaves that calls did with it: what is out already, or leaves with its turn, is no failure,
// and of what stays the reason is told.
func TestReleasePath(t *testing.T) {
	budget := compaction.Budget{Window: 200_000, Reserve: 1000, Keep: 1000}
	release := cleanup.Op{Verb: cleanup.Release, Paths: []string{"f.go"}}
	twice := func() compaction.View {
		var v compaction.View
		add := func(m tidemark.Message) {
			id := tidemark.EntryID(fmt.Sprintf("E%03d", len(v.Items)+1))
			v.Items = append(v.Items, compaction.Item{ID: id, From: id, To: id, Seq: int64(len(v.Items) + 1), Last: int64(len(v.Items) + 1), Message: m, Tokens: tidemark.Estimate(m)})
		}
		for _, call := range []string{"c1", "c2"} {
			add(tidemark.NewText(tidemark.User, "look"))
			add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(call, "read_file", []byte(`{"path":"f.go"}`))}})
			add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(call, strings.Repeat("line of "+call+"\n", 400), false)}})
			add(tidemark.NewText(tidemark.Assistant, "so it is"))
		}
		add(tidemark.NewText(tidemark.User, "and now?"))
		v.Size = v.Tokens()
		return v
	}
	var p compaction.Paging
	out, err := compaction.Preview(twice(), p.Tidy(twice(), budget, []cleanup.Op{release}).Edits, budget)
	if err != nil {
		t.Fatal(err)
	}
	pinned := twice()
	pinned.Items[6].Pinned = true
	for name, row := range map[string]struct {
		view  compaction.View
		ops   []cleanup.Op
		edits string // the entry and the block of each
		why   string // of the last operation
	}{
		"both":                    {twice(), []cleanup.Op{release}, "[E003#1 E007#1]", ""},
		"one is pinned":           {pinned, []cleanup.Op{release}, "[E003#1]", "it is pinned"},
		"both are out":            {out, []cleanup.Op{release}, "[]", ""},
		"one leaves with a turn":  {twice(), []cleanup.Op{{Verb: cleanup.Collapse, From: 1, To: 1, Text: "f.go was read"}, release}, "[E001#0 E007#1]", ""},
		"nothing is of that path": {twice(), []cleanup.Op{{Verb: cleanup.Release, Paths: []string{"g.go"}}}, "[]", "nothing of it is in the context"},
	} {
		var p compaction.Paging
		got := p.Tidy(row.view, budget, row.ops)
		edits := []string{}
		for _, e := range got.Edits {
			edits = append(edits, fmt.Sprintf("%s#%d", e.From, e.Block))
		}
		if why := got.Done[len(got.Done)-1].Why; fmt.Sprint(edits) != row.edits || why != row.why {
			t.Errorf("%s: edits %v, want %s; %q, want %q", name, edits, row.edits, why, row.why)
		}
	}
}
