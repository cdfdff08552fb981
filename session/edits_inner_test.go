package session

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
)

// TestScaleOfACompaction: the measure in which the newest compaction that holds was told is that of a provider, unless it is
// too far from what we estimate.
func TestScaleOfACompaction(t *testing.T) {
	r := newRig(t, Settings{})
	told := func(after, own tidemark.Tokens) tidemark.Overlay {
		return tidemark.Overlay{After: after, Own: own, Model: fmt.Sprint("model ", after)}
	}
	lifts := tidemark.Overlay{Lifts: []tidemark.EntryID{"o2"}}
	for _, row := range []struct {
		name  string
		list  []tidemark.Overlay
		scale scale
		model string
	}{
		{"none", nil, scale{}, ""},
		{"a quarter", []tidemark.Overlay{told(25, 100)}, scale{}, ""},
		{"more than a quarter", []tidemark.Overlay{told(26, 100)}, scale{counted: 26, estimated: 100}, "model 26"},
		{"less than four times", []tidemark.Overlay{told(399, 100)}, scale{counted: 399, estimated: 100}, "model 399"},
		{"four times", []tidemark.Overlay{told(400, 100)}, scale{}, ""},
		{"without an estimate", []tidemark.Overlay{told(10, 0)}, scale{}, ""},
		{"the newest", []tidemark.Overlay{told(50, 100), told(60, 100), told(900, 100), {}}, scale{counted: 60, estimated: 100}, "model 60"},
		{"one that is lifted", []tidemark.Overlay{told(50, 100), told(60, 100), lifts}, scale{counted: 50, estimated: 100}, "model 50"},
	} {
		var marks []host.Mark
		for i, o := range row.list {
			marks = append(marks, host.Mark{ID: tidemark.EntryID(fmt.Sprint("o", i+1)), Seq: int64(10 + i), Overlay: o})
		}
		newest := int64(0)
		if n := len(marks); n > 0 {
			newest = marks[n-1].Seq
		}
		if got, err := r.editsOf(t.Context(), marks); err != nil || got.scale != row.scale || got.model != row.model || got.newest != newest {
			t.Errorf("%s: %+v of %q, newest %d, %v", row.name, got.scale, got.model, got.newest, err)
		}
	}
}

// TestBackBlocks: the blocks that somebody brought back are those of overlays that are lifted, each once.
func TestBackBlocks(t *testing.T) {
	block := func(id tidemark.EntryID, n int) tidemark.Edit { return tidemark.Edit{From: id, Block: n} }
	rows := []compaction.Row{
		{ID: "o1", Overlay: tidemark.Overlay{Edits: []tidemark.Edit{block("a", 1), block("a", 2), block("b", 1)}}},
		{ID: "o2", Overlay: tidemark.Overlay{Edits: []tidemark.Edit{block("a", 1), {From: "c", To: "c"}}}},
		{ID: "o3", Overlay: tidemark.Overlay{Edits: []tidemark.Edit{block("d", 1)}}},
	}
	if got := backOf(rows); got != nil {
		t.Errorf("of none: %v", got)
	}
	rows = append(rows, compaction.Row{ID: "o4", Overlay: tidemark.Overlay{Lifts: []tidemark.EntryID{"o1", "o2"}}})
	if got, want := backOf(rows), (map[tidemark.EntryID][]int{"a": {1, 2}, "b": {1}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestKeptEdits: what a life keeps of the overlays that it read is, step by step, what it would read anew of all of them, and
// what was brought back stays known through what leaves later.
func TestKeptEdits(t *testing.T) {
	r := newRig(t, Settings{})
	log, aunt := r.current(), r.opened("agent:main:aunt", Settings{})
	theirs, err := aunt.head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var e []tidemark.Entry
	for i := range 8 {
		e = append(e, r.person(fmt.Sprint("message ", i)))
	}
	episode := []string{(&compaction.Episodes{}).Name()}
	span := func(from, to int) tidemark.Edit { return tidemark.Edit{From: e[from].ID, To: e[to].ID} }
	var ids []tidemark.EntryID
	lift := func(step int) tidemark.Overlay { return tidemark.Overlay{Lifts: []tidemark.EntryID{ids[step]}} }
	var got edits
	steps := []func() tidemark.Overlay{
		func() tidemark.Overlay {
			return tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{{From: e[0].ID, Block: 1}}}
		},
		func() tidemark.Overlay {
			return tidemark.Overlay{By: episode, Edits: []tidemark.Edit{span(1, 2), {From: e[7].ID}, {From: e[7].ID, Block: 1}}, After: 50, Own: 100, Model: "m"}
		},
		func() tidemark.Overlay { return lift(1) },
		func() tidemark.Overlay { return lift(0) },
		func() tidemark.Overlay {
			return tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{span(3, 4)}, After: 60, Own: 100, Model: "n"}
		},
		func() tidemark.Overlay {
			return tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{{From: e[5].ID, Block: 1}}}
		},
		func() tidemark.Overlay {
			return tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{span(3, 6)}}
		},
		func() tidemark.Overlay { return lift(6) },
		func() tidemark.Overlay { return tidemark.Overlay{By: episode, Edits: []tidemark.Edit{span(6, 6)}} },
	}
	for i, step := range steps {
		o := r.overlaid(step())
		ids = append(ids, o.ID)
		r.faulty.read()
		if got, err = r.standingEdits(t.Context(), log); err != nil || got.newest != o.Seq || got.log != log {
			t.Fatalf("step %d: %+v, %v", i, got, err)
		}
		want := 1
		if len(o.Payload) > 0 && strings.Contains(string(o.Payload), `"lifts"`) {
			want = i + 2 // all of them, once it is known
		}
		if n := r.faulty.read(); n != want {
			t.Errorf("step %d: %d overlays were read, want %d", i, n, want)
		}
		kept := r.laid.Swap(nil)
		all, err := r.standingEdits(t.Context(), log)
		if err != nil || !reflect.DeepEqual(got, all) {
			t.Errorf("step %d: kept %+v\nof all %+v, %v", i, got, all, err)
		}
		r.laid.Store(kept)
	}
	if want := (map[tidemark.EntryID][]int{e[0].ID: {1}, e[7].ID: {1}}); !reflect.DeepEqual(got.back, want) {
		t.Errorf("brought back %v, want %v", got.back, want)
	}
	if want := []compaction.Span{{From: e[1].Seq, To: e[2].Seq}}; !reflect.DeepEqual(got.again, want) {
		t.Errorf("stretches that are back %v, want %v", got.again, want)
	}
	if got.scale != (scale{counted: 60, estimated: 100}) || got.model != "n" || len(got.placed) != 3 {
		t.Errorf("%+v of %q, %d placed", got.scale, got.model, len(got.placed))
	}
	other, err := r.standingEdits(t.Context(), theirs.Log)
	if err != nil || other.newest != 0 || other.placed != nil || other.back != nil {
		t.Errorf("of another log %+v, %v", other, err)
	}
	if again, err := r.standingEdits(t.Context(), log); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("and again %+v, %v", again, err)
	}
	r.faulty.refuses("kind = 'overlay'")
	if _, err := r.standingEdits(t.Context(), log); err == nil {
		t.Error("it is read from nowhere")
	}
}
