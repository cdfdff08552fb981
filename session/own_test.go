package session_test

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// TestOwnResults: what the conversation's own tools answer is labelled as what it is, and only what they bring back as
// recalled; none of it is found, neither by its words nor beside what is.
func TestOwnResults(t *testing.T) {
	d := newScribe(t, session.Settings{Window: 200_000}, 80_000)
	d.work("expl granite", "look 40", "end Quartz lies under it.", "recall granite", "act build: granite | look 20", "end | recall granite")
	want := []struct {
		from string
		own  bool
	}{{tidemark.FromTool, true}, {tidemark.FromTool, false}, {tidemark.FromTool, true}, {tidemark.FromRecall, false}, {tidemark.FromTool, false}, {tidemark.FromRecall, false}}
	n := 0
	own := map[tidemark.EntryID]bool{}
	for e, err := range d.Reader.All(t.Context(), true) {
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Results()) == 0 {
			continue
		}
		if n == len(want) || e.Origin.From != want[n].from || e.Origin.Own != want[n].own {
			t.Fatalf("result %d is of %+v, want %+v", n, e.Origin, want)
		}
		own[e.ID] = e.Origin.Own || e.Origin.From == tidemark.FromRecall
		n++
	}
	v, err := d.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n != len(want) || v.Items[2].Source != tidemark.FromTool {
		t.Errorf("%d results, the first is shown as %s", n, v.Items[2].Source)
	}
	found := 0
	for _, query := range []string{"granite", "Started exploration", "Quartz", "tide"} {
		list, err := d.Search(t.Context(), query, 100)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Recall(t.Context(), search.Wanted{Query: query, K: 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if found++; own[f.Entry] {
				t.Errorf("%s finds %+v", query, f)
			}
		}
		for _, r := range got.Results {
			if found++; own[r.ID] {
				t.Errorf("recall of %s has %+v", query, r)
			}
		}
	}
	if found == 0 {
		t.Error("nothing is found at all")
	}
}
