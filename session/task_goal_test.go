package session_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/transcript"
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

// TestDerivedGoalOfTranscripts reads what two agents worked on from their logs, if TIDEMARK_TRANSCRIPTS names the
// folder with them.
func TestDerivedGoalOfTranscripts(t *testing.T) {
	if os.Getenv("TIDEMARK_TRANSCRIPTS") == "" {
		t.Skip("TIDEMARK_TRANSCRIPTS names no folder")
	}
	want := map[string]string{"258c7280": "Implement spotter-gqc", "4d5611e5": "Work on bead spotter-dov."}
	for name, raw := range transcripts(t) {
		h := newHarness(t, session.Settings{})
		if _, err := h.Import(t.Context(), imported(transcript.Messages(bytes.NewReader(raw), transcript.Options{})), nil); err != nil {
			t.Fatal(err)
		}
		goals := ""
		for line := range strings.Lines(h.card()) {
			if strings.HasPrefix(line, "goal: ") {
				goals += line
			}
		}
		if goals != "goal: "+want[name]+"\n" {
			t.Errorf("%s: %q, want %q", name, goals, want[name])
		}
	}
}
