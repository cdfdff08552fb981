package compaction

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// TestEpisodesLimits: the budget, at most what the window leaves, with what an act goes down to, and how far a view is over it.
func TestEpisodesLimits(t *testing.T) {
	for _, row := range []struct{ budget, window, reserve, limit, low, prologue tidemark.Tokens }{
		{0, 200_000, 20_000, episodes.DefaultBudget, 0, 0}, {4000, 200_000, 20_000, 4000, 0, 0}, {4000, 5000, 2000, 3000, 0, 0}, {4000, 5000, 1000, 4000, 0, 0},
	} {
		e := &Episodes{Budget: episodes.Budget{Tokens: row.budget}, LowWater: 70}
		b := Budget{Window: row.window, Reserve: row.reserve}
		if e.Limit(b) != row.limit || e.LowMark(b) != row.limit*70/100 || e.Prologue(b) != episodes.PrologueOf(row.limit) {
			t.Errorf("%d in %d: limit %d, down to %d, prologue %d", row.budget, row.window, e.Limit(b), e.LowMark(b), e.Prologue(b))
		}
		if e.Short(View{Size: row.limit}, b) != 0 || e.Short(View{Size: row.limit + 7}, b) != 7 || e.Short(View{}, b) != 0 {
			t.Errorf("%d in %d: short by %d", row.budget, row.window, e.Short(View{Size: row.limit + 7}, b))
		}
	}
	if (&Episodes{}).Name() != "episodes" || !(&Episodes{}).tools().Known() {
		t.Error("the zero value has no name, or no tools")
	}
}

// TestEpisodesReturned: what somebody brought back stays as what is pinned does: an entry of which a block was, and what
// lies within a stretch.
func TestEpisodesReturned(t *testing.T) {
	v := scriptedView("u a! u S a u")
	if got := v.returned(); len(got) != 6 || got[2].Pinned || !got[1].Pinned {
		t.Errorf("of nothing: %+v", got)
	}
	v.Items[3].Seq, v.Items[3].Last = 4, 4
	for _, row := range []struct {
		back     map[tidemark.EntryID][]int
		returned []Span
		want     string
	}{
		{map[tidemark.EntryID][]int{"e3": {2}, "e5": {}}, nil, "1 2"},
		{map[tidemark.EntryID][]int{"e4": {1}}, nil, "1"}, // a span is no entry
		{nil, []Span{{3, 5}}, "1 2 4"},
		{nil, []Span{{1, 1}, {6, 9}}, "0 1 5"},
		{nil, []Span{{7, 9}}, "1"},
	} {
		v.Back, v.Returned = row.back, row.returned
		var pinned []bool
		for _, it := range v.returned() {
			pinned = append(pinned, it.Pinned)
		}
		if marked(pinned) != row.want || v.Items[2].Pinned {
			t.Errorf("%v, %v: %s stay, want %s", row.back, row.returned, marked(pinned), row.want)
		}
	}
}

// TestEpisodeItems: what a ledger is told of an item: which blocks of the entry stand in it, and which lines.
func TestEpisodeItems(t *testing.T) {
	line := Item{Seq: 2, Last: 5, Overlay: "o", Tokens: 9, Message: tidemark.NewText(tidemark.User, "l"), Data: []byte(`{"episodes":{"folded":[1],"lines":[2]}}`)}
	if got := episodeItem(&line, false); got.Line == nil || got.Stays || got.Seq != 2 || got.Last != 5 || got.Tokens != 9 || got.Person {
		t.Errorf("a line is %+v", got)
	}
	other := scripted("S")[0]
	if got := episodeItem(&other, false); got.Line != nil || !got.Stays {
		t.Errorf("a summary is %+v", got)
	}
	said := scripted("u")[0]
	if got := episodeItem(&said, true); !got.Stays || !got.Person || got.Numbers != nil || got.Message != &said.Message {
		t.Errorf("what a person said is %+v", got)
	}
	carved := Item{Seq: 3, Last: 3, Stubs: 3, Overlay: "o", Message: of(tidemark.Assistant, tidemark.Text("line"), tidemark.Text("c"), tidemark.Text("stub"), tidemark.Text("e")),
		Stubbed: []Stubbed{{Block: 1, At: 0, Many: 0, Data: []byte(`{"episodes":{}}`)}, {Block: 2, At: 0, Many: 1, Data: []byte(`{"episodes":{"lines":[4,5]}}`)}, {Block: 4, At: 2, Many: 1, Data: []byte(`{"paging":{}}`)}}}
	if got := episodeItem(&carved, false); fmt.Sprint(got.Numbers, got.Told, got.Stays, got.Person) != "[-1 2 3 4] [4 5] false false" {
		t.Errorf("of a carved item: %v, %v, %v, %v", got.Numbers, got.Told, got.Stays, got.Person)
	}
}

// TestEpisodeEdits: a run becomes a span, with its line or nothing; a block of which several stand goes once.
func TestEpisodeEdits(t *testing.T) {
	items := scripted("u a u a")
	part := func(item, number int) episodes.Part { return episodes.Part{Item: item, Number: number} }
	edits := episodeEdits(items, episodes.Plan{
		Runs:   []episodes.Run{{From: 0, To: 1, Line: episodes.Line{Lines: []int{3}}, Text: "line"}, {From: 2, To: 2}},
		Blocks: []episodes.Removed{{Part: part(3, 1)}, {Part: part(3, 1)}, {Part: part(3, 2), Line: 7, Text: "told"}, {Part: part(0, 2)}},
	})
	var got []string
	for _, e := range edits {
		got = append(got, fmt.Sprintf("%s %s %s %s", told(e), jsonOf(t, e.Messages), jsonOf(t, e.Blocks), e.Data))
		if !IsEpisodes(e) {
			t.Errorf("%s is not of this strategy", told(e))
		}
	}
	want := []string{
		`e1-e2 [{"role":"user","content":"line"}] [] {"episodes":{"lines":[3]}}`, `e3-e3 [] [] {"episodes":{}}`, `e4#2 [] [] {"episodes":{}}`, `e4#3 [] [{"type":"text","text":"told"}] {"episodes":{"lines":[7]}}`, `e1#3 [] [] {"episodes":{}}`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("edits\n%s\nwant\n%s", got, want)
	}
	if IsEpisodes(tidemark.Edit{Data: []byte(`{"paging":{}}`)}) || WholeEpisodes(tidemark.Edit{}) != nil {
		t.Error("an edit of another strategy is of episodes")
	}
	if n := WholeEpisodes(tidemark.Edit{Data: []byte(`{"episodes":{"folded":[1,2],"lines":[5]}}`)}); fmt.Sprint(n) != "[1 2 5]" {
		t.Errorf("it stands for episodes %v", n)
	}
	if s := backByEntry(&episodes.Episode{Entry: "e7"}); s != `recall with {"episode": "e7"}` {
		t.Error(s)
	}
}
