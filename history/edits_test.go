package history

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
)

// TestScaleOfACompaction: the measure in which the newest compaction that holds was told is that of a provider, unless it is
// too far from what we estimate.
func TestScaleOfACompaction(t *testing.T) {
	r := newRig(t)
	told := func(after, own tidemark.Tokens) tidemark.Overlay {
		return tidemark.Overlay{After: after, Own: own, Model: fmt.Sprint("model ", after)}
	}
	lifts := tidemark.Overlay{Lifts: []tidemark.EntryID{"o2"}}
	for _, row := range []struct {
		name               string
		list               []tidemark.Overlay
		counted, estimated tidemark.Tokens
		model              string
	}{
		{"none", nil, 0, 0, ""},
		{"a quarter", []tidemark.Overlay{told(25, 100)}, 0, 0, ""},
		{"more than a quarter", []tidemark.Overlay{told(26, 100)}, 26, 100, "model 26"},
		{"less than four times", []tidemark.Overlay{told(399, 100)}, 399, 100, "model 399"},
		{"four times", []tidemark.Overlay{told(400, 100)}, 0, 0, ""},
		{"without an estimate", []tidemark.Overlay{told(10, 0)}, 0, 0, ""},
		{"the newest", []tidemark.Overlay{told(50, 100), told(60, 100), told(900, 100), {}}, 60, 100, "model 60"},
		{"one that is lifted", []tidemark.Overlay{told(50, 100), told(60, 100), lifts}, 50, 100, "model 50"},
	} {
		var marks []host.Mark
		for i, o := range row.list {
			marks = append(marks, host.Mark{ID: tidemark.EntryID(fmt.Sprint("o", i+1)), Seq: int64(10 + i), Overlay: o})
		}
		newest := int64(0)
		if n := len(marks); n > 0 {
			newest = marks[n-1].Seq
		}
		if got, err := r.Edits(t.Context(), marks); err != nil || got.Counted != row.counted || got.Estimated != row.estimated || got.Model != row.model || got.Newest != newest {
			t.Errorf("%s: %d for %d of %q, newest %d, %v", row.name, got.Counted, got.Estimated, got.Model, got.Newest, err)
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
	r := newRig(t)
	log, aunt := r.log, r.opened("agent:main:aunt", host.Info{ID: "aunt"})
	var e []tidemark.Entry
	for i := range 8 {
		e = append(e, r.person(fmt.Sprint("message ", i)))
	}
	episode := []string{(&compaction.Episodes{}).Name()}
	span := func(from, to int) tidemark.Edit { return tidemark.Edit{From: e[from].ID, To: e[to].ID} }
	var ids []tidemark.EntryID
	lift := func(step int) tidemark.Overlay { return tidemark.Overlay{Lifts: []tidemark.EntryID{ids[step]}} }
	var got Edits
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
		o := r.acts(tidemark.KindOverlay, step())
		ids = append(ids, o.ID)
		r.db.marks = 0
		var err error
		if got, err = r.Standing(t.Context(), log); err != nil || got.Newest != o.Seq || got.log != log {
			t.Fatalf("step %d: %+v, %v", i, got, err)
		}
		want := 1
		if len(o.Payload) > 0 && strings.Contains(string(o.Payload), `"lifts"`) {
			want = i + 2 // all of them, once it is known
		}
		if n := r.db.marks; n != want {
			t.Errorf("step %d: %d overlays were read, want %d", i, n, want)
		}
		kept := r.laid.Swap(nil)
		all, err := r.Standing(t.Context(), log)
		if err != nil || !reflect.DeepEqual(got, all) {
			t.Errorf("step %d: kept %+v\nof all %+v, %v", i, got, all, err)
		}
		r.laid.Store(kept)
	}
	if want := (map[tidemark.EntryID][]int{e[0].ID: {1}, e[7].ID: {1}}); !reflect.DeepEqual(got.Back, want) {
		t.Errorf("brought back %v, want %v", got.Back, want)
	}
	if want := []compaction.Span{{From: e[1].Seq, To: e[2].Seq}}; !reflect.DeepEqual(got.Again, want) {
		t.Errorf("stretches that are back %v, want %v", got.Again, want)
	}
	if got.Counted != 60 || got.Estimated != 100 || got.Model != "n" || len(got.Placed) != 3 {
		t.Errorf("%d for %d of %q, %d placed", got.Counted, got.Estimated, got.Model, len(got.Placed))
	}
	other, err := r.Standing(t.Context(), aunt.log)
	if err != nil || other.Newest != 0 || other.Placed != nil || other.Back != nil {
		t.Errorf("of another log %+v, %v", other, err)
	}
	if again, err := r.Standing(t.Context(), log); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("and again %+v, %v", again, err)
	}
	r.db.text = "kind = 'overlay'"
	if _, err := r.Standing(t.Context(), log); err == nil {
		t.Error("it is read from nowhere")
	}
}

// TestEvictedWhen: an entry left the view with the first overlay that took it away, unless it was kept, or something was only
// put before it.
func TestEvictedWhen(t *testing.T) {
	r := newRig(t)
	r.opened("agent:main:aunt", host.Info{ID: "aunt"}).person("of the aunt")
	var e []tidemark.Entry
	for i := range 6 {
		e = append(e, r.person(fmt.Sprint("message ", i)))
	}
	for _, edit := range []tidemark.Edit{{From: e[1].ID, To: e[2].ID}, {From: e[0].ID, To: e[4].ID, Keep: []tidemark.EntryID{e[3].ID}}, {From: e[5].ID}} {
		r.now = r.now.Add(time.Minute)
		r.acts(tidemark.KindOverlay, tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{edit}})
	}
	for i, want := range []int64{2, 1, 1, 0, 2, 0} { // minutes behind noon; 0: it is there
		at, err := r.EvictedAt(t.Context(), e[i].ID)
		if got := at.UnixMilli() - noon; err != nil || want == 0 && !at.IsZero() || want > 0 && got != want*60_000 {
			t.Errorf("message %d left at %s, %v", i, at, err)
		}
	}
	if at, err := r.EvictedAt(t.Context(), "unknown"); !at.IsZero() || err != nil {
		t.Errorf("what is not there left at %s, %v", at, err)
	}
	for _, refused := range []string{"current", "SELECT id, seq", "kind = 'overlay'", "seq IN"} {
		r.db.text = refused
		if at, err := r.EvictedAt(t.Context(), e[1].ID); !at.IsZero() || !errors.Is(err, errFaulty) {
			t.Errorf("without %q it left at %s, %v", refused, at, err)
		}
	}
}

// TestEditsAt: at a position of the past hold the overlays and lifts that stand up to it, and names are resolved of all that an
// edit has.
func TestEditsAt(t *testing.T) {
	r := newRig(t)
	one := r.person("one")                                                                                                       // 1
	first := r.acts(tidemark.KindOverlay, tidemark.Overlay{By: []string{"x"}, Edits: []tidemark.Edit{{From: one.ID, Block: 1}}}) // 2
	r.acts(tidemark.KindOverlay, tidemark.Overlay{Lifts: []tidemark.EntryID{first.ID}})                                          // 3
	for _, c := range []struct {
		until, newest int64
		placed        int
	}{{1, 0, 0}, {2, 2, 1}, {3, 3, 0}, {9, 3, 0}} {
		e, err := r.EditsAt(t.Context(), "main", c.until)
		if err != nil || len(e.Placed) != c.placed || e.Until != c.until || e.Newest != c.newest {
			t.Errorf("at %d: %+v, %v", c.until, e, err)
		}
	}
	got := editIDs(tidemark.Overlay{Edits: []tidemark.Edit{{From: "a", To: "b", Keep: []tidemark.EntryID{"c", "d"}}, {From: "e", Block: 1}}})
	if !slices.Equal(got, []tidemark.EntryID{"a", "b", "c", "d", "e"}) {
		t.Errorf("an overlay names %q", got)
	}
	placed, err := r.Places(t.Context(), []tidemark.Edit{{From: one.ID, To: one.ID}})
	if err != nil || len(placed) != 1 || placed[0].From != 1 || placed[0].To != 1 {
		t.Errorf("planned %+v, %v", placed, err)
	}
}
