package session_test

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// TestRecallEcho: what a person said comes before what the assistant repeats of it, however often and however late; in a
// neighbour of the same database where the assistant said it first, it stays first.
func TestRecallEcho(t *testing.T) {
	const said = "The oven comes from Lahti and costs 4,200 euros."
	h := newHarness(t, session.Settings{})
	beside := &harness{t: h.t, db: h.db, blobs: h.blobs, model: &model{}, agent: &fakeAgent{}, rt: h.rt, key: "agent:main:second"}
	beside.open()
	beside.told(tidemark.NewText(tidemark.User, "What does an oven cost in Lahti?"), tidemark.NewText(tidemark.Assistant, said), tidemark.NewText(tidemark.User, "Fine."))
	log := []tidemark.Message{tidemark.NewText(tidemark.User, said), tidemark.NewText(tidemark.Assistant, "Noted.")}
	for range 3 {
		log = append(log, tidemark.NewText(tidemark.User, "Go on, please, with the list."), tidemark.NewText(tidemark.Assistant, "Oven, Lahti, euros: “"+said+"” The oven of Lahti costs that."))
	}
	h.told(log...)
	for _, query := range []string{"oven Lahti", "What does the oven from Lahti cost?", "oven of Lahti, euros"} {
		got, err := h.Recall(t.Context(), search.Wanted{Query: query})
		if err != nil || len(got.Results) < 2 || got.Results[0].Text != said || got.Results[0].Role != tidemark.User {
			t.Errorf("%s: %.300v, %v", query, got.Results, err)
		}
		got, err = beside.Recall(t.Context(), search.Wanted{Query: query})
		if err != nil || len(got.Results) == 0 || got.Results[0].Text != said {
			t.Errorf("the neighbour, %s: %.300v, %v", query, got.Results, err)
		}
	}
}
