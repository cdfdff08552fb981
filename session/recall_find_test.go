package session_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// spoken is messages of two that talk.
func spoken(n int, line func(i int) string) []tidemark.Message {
	out := make([]tidemark.Message, n)
	for i := range out {
		out[i] = tidemark.NewText([]tidemark.Role{tidemark.User, tidemark.Assistant}[i%2], line(i))
	}
	return out
}

// TestRecallCommonWords: an old message that has most of a query is found though each of its words stands in many
// that are newer, each of them elsewhere.
func TestRecallCommonWords(t *testing.T) {
	h := newHarness(t, session.Settings{})
	const needle = "the walnut stands in the harbour"
	words := []string{"walnut", "harbour", "lantern", "gravel"}
	h.told(spoken(8000, func(i int) string {
		switch {
		case i == 10:
			return needle
		case i%12 == 0, i%12 == 3, i%12 == 6, i%12 == 9:
			return fmt.Sprintf("line %d of the report says %s", i, words[i%12/3])
		}
		return "something else"
	})...)
	for _, query := range []string{"walnut harbour", "walnut harbour lantern", "where is the walnut in the harbour with gravel and lantern"} {
		got, err := h.Recall(t.Context(), search.Wanted{Query: query})
		if err != nil || !slices.ContainsFunc(got.Results, func(r search.Recollection) bool { return r.Text == needle }) {
			t.Errorf("%q: %d results without it, %v", query, len(got.Results), err)
		}
	}
}

// TestRecallMany: as many results are given as are asked for.
func TestRecallMany(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.told(spoken(1200, func(i int) string { return fmt.Sprintf("walnut line %d about gardening and soil", i) })...)
	for _, query := range []string{"walnut", "walnut gardening", "walnut gardening soil"} {
		for _, k := range []int{1, 60, search.MaxK} {
			got, err := h.Recall(t.Context(), search.Wanted{Query: query, K: k})
			if err != nil || len(got.Results) != k {
				t.Errorf("%q, k %d: %d results, %v", query, k, len(got.Results), err)
			}
		}
	}
}

// TestRecallSkippedNeighbours: a turn that was skipped comes back beside no other, unless all is asked for.
func TestRecallSkippedNeighbours(t *testing.T) {
	h := newHarness(t, overBudget)
	h.told(spoken(1200, func(i int) string { return fmt.Sprintf("line %d", i) })...) // a short one is read whole
	h.model.set(chores)
	h.agent.call = long("zebra", false)
	h.say("please remember: the walnut boat key is PQ-7781")
	h.say("please list three things about the walnut boat")
	h.say("ok, go on")
	h.say("please tell which walnut boat")
	skips := h.skipped(10)
	if len(skips) != 1 {
		t.Fatalf("%d turns are skipped", len(skips))
	}
	for _, all := range []bool{false, true} {
		got, err := h.Recall(t.Context(), search.Wanted{Query: "walnut boat key", K: 20, All: all})
		if err != nil {
			t.Fatal(err)
		}
		there := false
		for _, r := range got.Results {
			there = there || slices.Contains(skips[0], r.ID)
			for _, id := range r.Neighbours {
				there = there || slices.Contains(skips[0], id)
			}
		}
		if there != all {
			t.Errorf("all %v: messages of the skipped turn are there: %v", all, there)
		}
	}
}

// TestRecallTimes: what is found is exactly what was said then, whether a log is
// in the order of its times or not; the rest is counted.
func TestRecallTimes(t *testing.T) {
	const n = 1200
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		at   func(i int) time.Time
	}{
		{"in order", func(i int) time.Time { return day.Add(time.Duration(i) * time.Minute) }},
		{"out of order", func(i int) time.Time { return day.Add(time.Duration(i*7%n) * time.Minute) }},
	} {
		h := newHarness(t, session.Settings{})
		_, err := h.Import(t.Context(), func(yield func(replay.Message, error) bool) {
			for i, m := range spoken(n, func(i int) string { return fmt.Sprintf("walnut %d", i) }) {
				if !yield(replay.Message{At: c.at(i), Message: m}, nil) {
					return
				}
			}
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range [][2]int{{100, 149}, {0, 29}, {1170, 1199}, {5000, 6000}} {
			w := search.Wanted{Query: "walnut", K: search.MaxK, Since: day.Add(time.Duration(r[0]) * time.Minute), Until: day.Add(time.Duration(r[1]) * time.Minute)}
			want := max(0, min(r[1], n-1)-r[0]+1)
			got, err := h.Recall(t.Context(), w)
			if err != nil || len(got.Results) != want {
				t.Errorf("%s, %d: %d results, want %d, %v", c.name, r, len(got.Results), want, err)
			}
			for _, one := range got.Results {
				if one.At.Before(w.Since) || one.At.After(w.Until) {
					t.Errorf("%s, %d: %s", c.name, r, one.At)
				}
			}
			outside := 0
			for _, f := range got.Filtered {
				if f.Reason == "out of range" {
					outside = f.Count
				}
			}
			if outside != 600 { // as many as are counted
				t.Errorf("%s, %d: %d out of range", c.name, r, outside)
			}
		}
	}
}
