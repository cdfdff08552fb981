package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// TestRecallChain: an answer that only another message leads to comes first and is sure; of a gate that nobody spoke of
// nothing is.
func TestRecallChain(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var log []tidemark.Message
	for i := range 60 {
		if i == 7 {
			log = append(log, tidemark.NewText(tidemark.User, "The walnut gate is in the care of MIRA-12 since last spring."), tidemark.NewText(tidemark.Assistant, "Noted."))
		}
		log = append(log, tidemark.NewText(tidemark.User, fmt.Sprintf("Turn %d: does keeper %c care for a gate today?", i, 'a'+rune(i%26))), tidemark.NewText(tidemark.Assistant, "He does."))
		if i == 40 {
			log = append(log, tidemark.NewText(tidemark.User, "MIRA-12 carries the code 5f3a99c1."), tidemark.NewText(tidemark.Assistant, "Noted."))
		}
	}
	h.told(log...)
	for gate, want := range map[string]bool{"walnut": true, "acorn": false} {
		for _, budget := range []tidemark.Tokens{0, 2000} {
			got, err := h.Recall(t.Context(), search.Wanted{Query: "which code does the one carry who cares for the " + gate + " gate", Budget: budget})
			if err != nil || len(got.Results) == 0 {
				t.Fatal(err, len(got.Results))
			}
			if sure := got.Verdict == recall.Confident && strings.Contains(got.Results[0].Text, "5f3a99c1"); sure != want || got.Reformulated == "" {
				t.Errorf("%s gate within %d: %s, second %q, first %q", gate, budget, got.Verdict, got.Reformulated, got.Results[0].Text)
			}
		}
	}
}
