package tidemark_test

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestOccasionDelivers holds which answers of a schedule are for people.
func TestOccasionDelivers(t *testing.T) {
	quiet := tidemark.Occasion{Quiet: "HEARTBEAT_OK", Said: []string{tidemark.SaidHash("It rains.")}}
	for _, row := range []struct {
		name, text string
		o          tidemark.Occasion
		want       bool
	}{
		{"an answer", "It rains.", tidemark.Occasion{}, true},
		{"nothing", " \n", tidemark.Occasion{}, false},
		{"punctuation", "...", tidemark.Occasion{}, false},
		{"the word, of one that is not quiet", "HEARTBEAT_OK", tidemark.Occasion{}, true},
		{"the word", "HEARTBEAT_OK", quiet, false},
		{"with punctuation", " **HEARTBEAT_OK**!\n", quiet, false},
		{"in small letters", "heartbeat_ok.", quiet, false},
		{"the word and more", "HEARTBEAT_OK. But it snows.", quiet, true},
		{"more and the word", "It snows. HEARTBEAT_OK", quiet, true},
		{"a short one", "Fire!", quiet, true},
		{"said lately", "It rains.\n", quiet, false},
	} {
		if got := row.o.Delivers(row.text); got != row.want {
			t.Errorf("%s: %t", row.name, got)
		}
	}
}
