package episodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// TestList: an episode is open, gone, cut, of the prologue or whole, in that order, and no more of it stands than it brought.
func TestList(t *testing.T) {
	of := func(n int, kind episodes.Type) episodes.Episode {
		return episodes.Episode{N: n, Type: kind, Tokens: 100, Entry: "first", Last: "last", Calls: 3, Name: "name", Description: "so it is", Dependencies: []string{"a"}, Read: []string{"b"}, Changed: []string{"c"}}
	}
	for _, c := range []struct {
		name                 string
		kind                 episodes.Type
		open, gone, early    bool
		cut, prologue        bool
		want                 State
		stands, wantStanding tidemark.Tokens
	}{
		{"open", episodes.Action, true, true, true, true, true, Open, 50, 50},
		{"unmarked work that goes on", episodes.Unmarked, true, false, false, false, false, Whole, 50, 50},
		{"gone", episodes.Exploration, false, true, true, true, true, Gone, 0, 0},
		{"cut", episodes.Exploration, false, false, true, true, true, Partial, 40, 40},
		{"before the first", episodes.Unmarked, false, false, true, false, true, Prologue, 100, 100},
		{"too much before the first", episodes.Unmarked, false, false, true, false, false, Whole, 101, 100},
		{"whole", episodes.Action, false, false, false, false, true, Whole, 99, 99},
	} {
		x := of(4, c.kind)
		x.Open, x.Early = c.open, c.early
		got := List([]episodes.State{{Episode: &x, Tokens: c.stands, Gone: c.gone}}, map[int]bool{4: c.cut, 5: true}, c.prologue)
		want := Told{N: 4, Name: "name", Type: c.kind, Dependencies: []string{"a"}, Description: "so it is", Read: []string{"b"}, Changed: []string{"c"}, Calls: 3, Tokens: 100, Standing: c.wantStanding, State: c.want, From: "first", To: "last"}
		if len(got) != 1 || fmt.Sprintf("%+v", got[0]) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %+v\nwant %+v", c.name, got, want)
		}
	}
}

// line is an edit that episodes left with.
func line(from, to int64, block int, numbers ...int) compaction.Replacement {
	return compaction.Replacement{Placed: compaction.Placed{From: from, To: to, Block: block}, Edit: tidemark.Edit{Data: episodes.Line{Lines: numbers}.Data()}}
}

// threeOf is a log with three episodes, each of a reply and its results, the second of two.
func threeOf(t *testing.T) *desk {
	t.Helper()
	d := deskOf(t, hosttest.DB(t), "log")
	d.does("act one", "look a.go", "end")   // 1, 2
	d.does("act two", "look b.go")          // 3, 4
	d.does("look c.go", "end")              // 5, 6
	d.does("act three", "look d.go", "end") // 7, 8
	return d
}

// TestCut: something was taken out of the episodes that an edit of theirs reaches.
func TestCut(t *testing.T) {
	d := threeOf(t)
	d.does("look e.go", "act five", "end") // 9: unmarked work, and behind it an episode
	other := compaction.Replacement{Placed: compaction.Placed{From: 1, To: 8}}
	for _, c := range []struct {
		name  string
		shown []compaction.Replacement
		want  []int
	}{
		{"nothing", nil, nil},
		{"an edit of another strategy", []compaction.Replacement{other}, nil},
		{"the first", []compaction.Replacement{line(1, 2, 0)}, []int{1}},
		{"up to the second", []compaction.Replacement{line(1, 3, 0)}, []int{1, 2}},
		{"up to before it", []compaction.Replacement{line(2, 2, 0)}, nil},
		{"the end of the second", []compaction.Replacement{line(5, 6, 0)}, []int{2}},
		{"from the second to the third", []compaction.Replacement{line(5, 7, 0)}, []int{2, 3}},
		{"all", []compaction.Replacement{line(1, 8, 0)}, []int{1, 2, 3}},
		{"a block of the first", []compaction.Replacement{line(1, 1, 1)}, []int{1}},
		{"a block of the third", []compaction.Replacement{line(7, 7, 3)}, []int{3}},
		{"a block of none", []compaction.Replacement{line(7, 7, 4)}, nil},
		{"the first block of two episodes", []compaction.Replacement{line(9, 9, 1)}, []int{4}},
		{"the second", []compaction.Replacement{line(9, 9, 2)}, []int{5}},
		{"blocks of two, and an edit of another strategy between", []compaction.Replacement{line(1, 1, 2), other, line(5, 5, 1)}, []int{1, 2}},
	} {
		if err := d.withGraph(t.Context(), d.log, func(g *episodes.Graph) error {
			if got := slices.Sorted(maps.Keys(cut(room.Seen{Shown: c.shown}, g))); !slices.Equal(got, c.want) {
				t.Errorf("%s: %d, want %d", c.name, got, c.want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDividedView: how a view stands to the budget: the episode that is open, those that left whole, and those that left in
// part, each once.
func TestDividedView(t *testing.T) {
	d := threeOf(t)
	long := strings.Repeat("very ", 18) + "long"
	d.does("expl " + long)
	if d.names() == "" {
		t.Fatal("there are no episodes")
	}
	v := room.Seen{Log: d.log, View: compaction.View{Size: 10_250}, Shown: []compaction.Replacement{line(1, 3, 0, 1), line(7, 7, 2)}}
	want := room.Divided{Budget: 10_000, LowWater: 7_500, Size: 10_250, Short: 250, Open: strings.Repeat("very ", 12)[:59] + "…", Gone: 1, Partial: 2}
	for range 2 { // the graph is given back
		if got := d.Divided(t.Context(), v); got == nil || *got != want || d.kept.Load() == nil {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if got := d.Divided(t.Context(), room.Seen{Log: "unknown", View: compaction.View{Size: 5}}); got == nil || *got != (room.Divided{Budget: 10_000, LowWater: 7_500, Size: 5}) || len(d.warned) != 1 {
		t.Errorf("of a log that is not there: %+v, warned of %q", got, d.warned)
	}
	d.by = nil
	if got := d.Divided(t.Context(), v); got != nil {
		t.Errorf("without the strategy: %+v", got)
	}
}

// TestOverviewOfALog: what people are told of the episodes of a log, with the budget where the strategy is in force, and why
// nothing leaves where it is not met.
func TestOverviewOfALog(t *testing.T) {
	d := threeOf(t)
	d.does("expl four")
	got, err := d.Overview(t.Context())
	var list []string
	for _, x := range got.Episodes {
		list = append(list, fmt.Sprintf("%d %s %s %v %v", x.N, x.Name, x.State, !x.Began.IsZero(), !x.Ended.IsZero()))
	}
	if want := []string{"1 one whole true true", "2 two whole true true", "3 three whole true true", "4 four open true false"}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%q, %v, want %q", list, err, want)
	}
	if got.Session != "log" || !got.Enabled || got.Budget != 10_000 || got.LowWater != 7_500 || got.Short != 0 || got.Held != "" || got.Active != "four" || got.Size == 0 {
		t.Errorf("%+v", got)
	}
	small := d.Budget()
	small.Window = small.Reserve + got.Size - 5
	d.Budget = func() compaction.Budget { return small }
	d.says(tidemark.NewText(tidemark.User, strings.Repeat("on ", 2000)))
	held, err := d.Overview(t.Context())
	if err != nil || held.Budget != got.Size-5 || held.Short != held.Size-held.Budget || held.Short <= 0 || held.Held != "" { // those that ended may leave
		t.Errorf("over the budget: %+v, %v", held, err)
	}
	full := deskOf(t, hosttest.DB(t), "log")
	full.says(tidemark.NewText(tidemark.User, strings.Repeat("on ", 20_000)))
	if got, err := full.Overview(t.Context()); err != nil || got.Short != got.Size-10_000 || got.Short <= 0 || got.Held != "what stands was said by people, is pinned, or is not finished" {
		t.Errorf("of what nobody may take: %+v, %v", got, err)
	}
	d.by = nil
	plain, err := d.Overview(t.Context())
	if err != nil || plain.Enabled || plain.Budget != 0 || plain.LowWater != 0 || plain.Short != 0 || plain.Held != "" || plain.Active != "four" || len(plain.Episodes) != 4 || plain.Size != held.Size {
		t.Errorf("without the strategy: %+v, %v", plain, err)
	}
}
