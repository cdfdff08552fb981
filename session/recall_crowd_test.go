package session_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// TestRecallCrowd: what other conversations of the database say more often and later hides nothing of this one.
func TestRecallCrowd(t *testing.T) {
	for _, n := range []int{100, 200, 700} {
		h := newHarness(t, session.Settings{})
		var log []tidemark.Message
		for i := range 1400 {
			role := []tidemark.Role{tidemark.User, tidemark.Assistant}[i%2]
			log = append(log, tidemark.NewText(role, fmt.Sprintf("line %d about gardening", i)))
		}
		log[10] = tidemark.NewText(tidemark.User, "The quokka invoice is number 4471.")
		h.told(log...)
		other := &harness{t: h.t, db: h.db, blobs: h.blobs, model: &model{}, agent: &fakeAgent{}, rt: h.rt, key: "agent:main:second"}
		other.open()
		log = log[:0]
		for i := range n {
			role := []tidemark.Role{tidemark.User, tidemark.Assistant}[i%2]
			log = append(log, tidemark.NewText(role, fmt.Sprintf("another quokka %d", i)))
		}
		other.told(log...)
		for _, query := range []string{"quokka", "what about the quokka", "gardening quokka"} {
			got, err := h.Recall(t.Context(), search.Wanted{Query: query})
			if err != nil || len(got.Results) == 0 || got.Results[0].Text != "The quokka invoice is number 4471." {
				t.Errorf("%d of another: %q: %+v, %v", n, query, got.Results, err)
			}
		}
	}
}
