package tidemark_test

import (
	"strings"
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

// TestAudience: people read every word, and of the run of a schedule its last ones, where those are for them.
func TestAudience(t *testing.T) {
	from := []tidemark.Origin{{Peer: "ann"}, {Peer: "bob", Occasion: &tidemark.Occasion{}}, {Peer: "cid", Occasion: &tidemark.Occasion{Quiet: "OK"}}}
	for _, tc := range []struct {
		answer string
		last   bool
		want   string
	}{
		{"Let me look.", false, "ann"},
		{"It is off.", true, "ann bob cid"},
		{"OK.", true, "ann bob"},
		{"", true, "ann"},
	} {
		var got []string
		for _, o := range tidemark.Audience(from, tc.answer, tc.last) {
			if got = append(got, o.Peer); o.Occasion != nil {
				t.Errorf("%q: %s is still reached by a schedule", tc.answer, o.Peer)
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%q, last %t: %q, want %q", tc.answer, tc.last, s, tc.want)
		}
	}
}
