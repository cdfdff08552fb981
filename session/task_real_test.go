//go:build !js

package session_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/transcript"
)

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
