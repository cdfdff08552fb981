package session_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
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
		got, err := h.Recall(t.Context(), session.Wanted{Query: query})
		if err != nil || !slices.ContainsFunc(got.Results, func(r session.Recollection) bool { return r.Text == needle }) {
			t.Errorf("%q: %d results without it, %v", query, len(got.Results), err)
		}
	}
}

// TestRecallMany: as many results are given as are asked for.
func TestRecallMany(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.told(spoken(1200, func(i int) string { return fmt.Sprintf("walnut line %d about gardening and soil", i) })...)
	for _, query := range []string{"walnut", "walnut gardening", "walnut gardening soil"} {
		for _, k := range []int{1, 60, session.MaxK} {
			got, err := h.Recall(t.Context(), session.Wanted{Query: query, K: k})
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
	skips, err := h.Skips(t.Context(), 10)
	if err != nil || len(skips) != 1 {
		t.Fatalf("%d turns are skipped: %v", len(skips), err)
	}
	for _, all := range []bool{false, true} {
		got, err := h.Recall(t.Context(), session.Wanted{Query: "walnut boat key", K: 20, All: all})
		if err != nil {
			t.Fatal(err)
		}
		there := false
		for _, r := range got.Results {
			there = there || slices.Contains(skips[0].Entries, r.ID)
			for _, id := range r.Neighbours {
				there = there || slices.Contains(skips[0].Entries, id)
			}
		}
		if there != all {
			t.Errorf("all %v: messages of the skipped turn are there: %v", all, there)
		}
	}
}
