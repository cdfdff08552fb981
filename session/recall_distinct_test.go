package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// TestRecallDistinct: a text that was said often takes one place, the others are told as similar; what fits into no
// budget is told with the fix.
func TestRecallDistinct(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var log []tidemark.Message
	for range 12 {
		log = append(log, tidemark.NewText(tidemark.User, "Have the flashing of the roof looked at first."), tidemark.NewText(tidemark.Assistant, "Noted."))
	}
	h.told(append(log, tidemark.NewText(tidemark.User, "The flashing was made by Oswald in 1974, and nobody has looked at it since."))...)
	got, err := h.Recall(t.Context(), search.Wanted{Query: "flashing looked", K: 3})
	if err != nil || len(got.Results) != 2 || !strings.Contains(got.Results[0].Text+got.Results[1].Text, "Oswald") {
		t.Errorf("%+v, %v", got.Results, err)
	}
	similar := 0
	for _, f := range got.Filtered {
		if f.Reason == "similar" {
			similar = f.Count
		}
	}
	if similar != 2 && similar != 1 {
		t.Errorf("%+v", got.Filtered)
	}
	if got, err = h.Recall(t.Context(), search.Wanted{Query: "flashing looked", Budget: 2}); err != nil || len(got.Results) != 0 || !strings.Contains(got.Hint, "raise it") {
		t.Errorf("%d results, hint %q, %v", len(got.Results), got.Hint, err)
	}
}
