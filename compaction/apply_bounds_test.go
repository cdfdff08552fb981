package compaction

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestResized: what is left is counted as the provider counts it, where it counts more than we estimate, and in proportion
// where it counts less.
func TestResized(t *testing.T) {
	for _, row := range []struct{ size, fixed, before, after, want tidemark.Tokens }{
		{1100, 100, 500, 250, 600}, // twice as much
		{601, 100, 500, 250, 350},
		{600, 100, 500, 250, 350}, // as much
		{300, 100, 500, 200, 150}, // half as much, the fixed part with it
		{100, 50, 0, 10, 120},     // there was nothing to estimate
		{10, 0, 0, 3, 30},
		{0, 0, 0, 3, 0},
		{900, 100, 400, 0, 100}, // all of it leaves
	} {
		if got := resized(row.size, row.fixed, row.before, row.after); got != row.want {
			t.Errorf("%d of which %d are fixed, %d estimated and now %d: %d, want %d", row.size, row.fixed, row.before, row.after, got, row.want)
		}
	}
	v := scriptedView("u=300 a=200 u=500")
	v.Size, v.Fixed = 2100, 100 // counted twice
	got, err := Preview(v, []tidemark.Edit{{From: "e1", To: "e2"}}, Budget{Window: 8000})
	if err != nil || got.Size != 1100 || got.Fixed != 100 || len(got.Items) != 1 || len(v.Items) != 3 || v.Size != 2100 {
		t.Errorf("%d tokens, %d items, %v; before %d and %d", got.Size, len(got.Items), err, v.Size, len(v.Items))
	}
	if same, err := Preview(v, nil, Budget{}); err != nil || same.Size != 2100 || len(same.Items) != 3 {
		t.Errorf("without an edit: %+v, %v", same, err)
	}
}

// TestPreviewOfSpans: a summary that is yet to be written counts what is allowed for it, a text what it takes; what was
// inserted before an entry stays beside a span over that.
func TestPreviewOfSpans(t *testing.T) {
	note := tidemark.NewText(tidemark.User, "so it was")
	for _, row := range []struct {
		name, items string
		edits       []tidemark.Edit
		want        string // of each item: its first and last entry, its tokens
	}{
		{"a summary", "u a u", []tidemark.Edit{{From: "e1", To: "e2", Summarize: true}}, "e1-e2 1-2 1000 planned, e3-e3 3-3 10 "},
		{"two messages", "u a u", []tidemark.Edit{{From: "e2", To: "e3", Messages: []tidemark.Message{note, note}}}, fmt.Sprintf("e1-e1 1-1 10 , e2-e3 2-3 %[1]d planned, e2-e3 2-3 %[1]d planned", tidemark.Estimate(note))},
		{"nothing", "u a u", []tidemark.Edit{{From: "e2", To: "e2"}}, "e1-e1 1-1 10 , e3-e3 3-3 10 "},
		{"a hole", "u a u", []tidemark.Edit{{From: "e1", To: "e3", Keep: []tidemark.EntryID{"e2"}, Summarize: true}}, "e1-e3 1-3 1000 planned, e2-e2 2-2 10 "},
	} {
		v := scriptedView(row.items)
		got, err := Preview(v, row.edits, Budget{Window: 8000})
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		out := make([]string, len(got.Items))
		for i, it := range got.Items {
			out[i] = fmt.Sprintf("%s-%s %d-%d %d %s", it.From, it.To, it.Seq, it.Last, it.Tokens, it.Overlay)
			if it.Overlay == "planned" && (it.Source != tidemark.FromSystem || row.edits[0].Summarize && it.Message.PlainText() != SummaryMarker) {
				t.Errorf("%s: %+v", row.name, it)
			}
		}
		if s := strings.Join(out, ", "); s != row.want {
			t.Errorf("%s: %s\nwant %s", row.name, s, row.want)
		}
	}
	v := scriptedView("u a u a")
	for name, row := range map[string]struct {
		edits []tidemark.Edit
		want  error
	}{
		"an unknown entry":     {[]tidemark.Edit{{From: "e1", To: "e9"}}, errNoItem},
		"another one":          {[]tidemark.Edit{{From: "e9", To: "e2"}}, errNoItem},
		"ends before it":       {[]tidemark.Edit{{From: "e3", To: "e2"}}, errOverlap},
		"two in one entry":     {[]tidemark.Edit{{From: "e1", To: "e2"}, {From: "e2", To: "e3"}}, errOverlap},
		"one inside the other": {[]tidemark.Edit{{From: "e1", To: "e4"}, {From: "e2", To: "e3"}}, errOverlap},
		"a block too many":     {[]tidemark.Edit{{From: "e1", Block: 2}}, errNoItem},
		"of an unknown entry":  {[]tidemark.Edit{{From: "e9", Block: 1}}, errNoItem},
	} {
		if _, err := Preview(v, row.edits, Budget{Window: 8000}); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
	}
	if got, err := Preview(v, []tidemark.Edit{{From: "e1", To: "e2"}, {From: "e3", To: "e4"}}, Budget{Window: 8000}); err != nil || len(got.Items) != 0 {
		t.Errorf("side by side: %v, %d items", err, len(got.Items))
	}
}

// TestFindStretch: the last stretch that begins at or before a position is found, in whatever order one asks.
func TestFindStretch(t *testing.T) {
	w := stretches{list: []stretch{{seq: 3, last: 4}, {seq: 7, last: 9}, {seq: 12, last: 12, kept: map[tidemark.EntryID]bool{"k": true}}}}
	want := func(seq int64) int {
		n := -1
		for i, s := range w.list {
			if s.seq <= seq {
				n = i
			}
		}
		return n
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		seq := r.Int64N(15)
		if got := w.find(seq); got != want(seq) {
			t.Fatalf("position %d is of stretch %d, want %d", seq, got, want(seq))
		}
	}
	for _, row := range []struct {
		id        tidemark.EntryID
		seq, last int64
		want      bool
	}{{"a", 2, 2, false}, {"a", 3, 3, true}, {"a", 3, 4, true}, {"a", 3, 5, false}, {"a", 5, 5, false}, {"a", 9, 9, true}, {"a", 12, 12, true}, {"k", 12, 12, false}, {"k", 8, 8, true}} {
		if got := w.around(row.id, row.seq, row.last); got != row.want {
			t.Errorf("%s at %d to %d is within one: %v", row.id, row.seq, row.last, got)
		}
	}
}

// TestWithout: of what was planned before, what a later plan replaces is dropped: what its spans hold and do not keep, and
// edits of the same block.
func TestWithout(t *testing.T) {
	block := func(id tidemark.EntryID, n int) tidemark.Edit { return tidemark.Edit{From: id, Block: n} }
	span := func(from, to tidemark.EntryID, keep ...tidemark.EntryID) tidemark.Edit {
		return tidemark.Edit{From: from, To: to, Keep: keep}
	}
	before := []tidemark.Edit{block("e1", 1), block("e2", 1), block("e2", 2), block("e5", 1), span("e3", "e4")}
	for _, row := range []struct {
		later []tidemark.Edit
		want  string
	}{
		{nil, "e1#1 e2#1 e2#2 e5#1 e3-e4"},
		{[]tidemark.Edit{block("e2", 2)}, "e1#1 e2#1 e5#1 e3-e4"},
		{[]tidemark.Edit{span("e2", "e2")}, "e1#1 e5#1 e3-e4"},
		{[]tidemark.Edit{span("e1", "e5")}, ""},
		{[]tidemark.Edit{span("e1", "e4")}, "e5#1"},
		{[]tidemark.Edit{span("e2", "e5", "e5")}, "e1#1 e5#1"},
		{[]tidemark.Edit{span("e1", "e2", "e2")}, "e2#1 e2#2 e5#1 e3-e4"},
		{[]tidemark.Edit{span("e5", "e5"), span("e1", "e1")}, "e2#1 e2#2 e3-e4"},
		{[]tidemark.Edit{span("e3", "e4"), block("e1", 1)}, "e2#1 e2#2 e5#1"},
	} {
		whole := scripted("u a u a u")
		items, err := previewSpans(whole, []tidemark.Edit{{From: "e3", To: "e4", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "s")}}}, Budget{})
		if err != nil {
			t.Fatal(err)
		}
		if got := toldAll(without(append([]tidemark.Edit{}, before...), whole, items, row.later)); got != row.want {
			t.Errorf("beside %s: %s, want %s", toldAll(row.later), got, row.want)
		}
	}
}

// TestPreviewKeepsLead: what was inserted before an entry has its position, and stays where a span over that is planned.
func TestPreviewKeepsLead(t *testing.T) {
	v := scriptedView("P u a u")
	v.Items[0].From, v.Items[0].Seq, v.Items[0].Last = "e2", 2, 2
	got, err := Preview(v, []tidemark.Edit{{From: "e2", To: "e3", Summarize: true}}, Budget{Window: 8000})
	if err != nil || len(got.Items) != 3 || !got.Items[0].Lead() || got.Items[1].Overlay != "planned" || got.Items[2].ID != "e4" {
		t.Errorf("%+v, %v", got.Items, err)
	}
}
