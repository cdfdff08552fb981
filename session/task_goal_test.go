package session_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// card returns the goals and open loops of a card.
func (h *harness) card() string {
	h.t.Helper()
	c, err := h.Task(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	out := ""
	for _, i := range c.Items {
		if i.Kind == session.Goal || i.Kind == session.Loop {
			out += fmt.Sprintf("%s: %s\n", i.Kind, i.Text)
		}
	}
	return out
}

// TestDerivedGoals: small talk pushes no goal away, and what is still to be done is an open loop.
func TestDerivedGoals(t *testing.T) {
	h := newHarness(t, session.Settings{})
	var log []tidemark.Message
	for _, s := range []string{"My goal is to finish the boathouse by May.", "We still have to order the nails.", "I had pasta for lunch.", "By the way, the weather is nice.",
		"Note 58: the ledger order of the garden is by plant.", "Thanks, that is all for now."} {
		log = append(log, tidemark.NewText(tidemark.User, s), tidemark.NewText(tidemark.Assistant, "Noted."))
	}
	h.told(log...)
	if got, want := h.card(), "goal: My goal is to finish the boathouse by May.\nloop: We still have to order the nails.\n"; got != want {
		t.Errorf("card:\n%swant:\n%s", got, want)
	}
}
