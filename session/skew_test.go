package session_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/session"
)

// TestClockJumpsInATurn: a wall clock that jumps while the model answers changes neither what is
// answered nor its order, whether the process lives on or its next life takes the turn up, and nothing
// is put off until a time that has become far away.
func TestClockJumpsInATurn(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tc := range []struct {
		name string
		jump time.Duration
		dies bool // in the middle of the turn
	}{
		{"a year on", year, false},
		{"a year back", -year, false},
		{"a second back", -time.Second, false},
		{"a year on, in another life", year, true},
		{"a year back, in another life", -year, true},
		{"a second back, in another life", -time.Second, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, c := newTimed(t, session.Settings{}, noon)
			h.say("one")
			h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 10)
			r, err := h.Post(t.Context(), say("two"))
			if err != nil {
				t.Fatal(err)
			}
			<-h.model.entered
			c.jump(tc.jump)
			if tc.dies {
				h.stop()
				h.idle()
				if d := h.due(); !d.IsZero() {
					t.Errorf("what is in work waits until %s", d)
				}
			}
			close(h.model.hold)
			if tc.dies {
				h.open()
			}
			h.idle()
			if e, why, ok, err := h.Reply(t.Context(), r.ID); !ok || why != "" || err != nil {
				t.Fatalf("reply %q, %q, %v, %v", e.ID, why, ok, err)
			}
			h.say("three")
			h.wake()
			var asked []string
			for _, s := range h.originals() {
				if text, ok := strings.CutPrefix(s, "user: "); ok {
					asked = append(asked, text)
				}
			}
			if n := len(h.originals()); n != 6 || !slices.Equal(asked, []string{"one", "two", "three"}) {
				t.Errorf("%d messages, of which asked %q", n, asked)
			}
			if d := h.due(); d.After(c.Now().Add(time.Hour)) {
				t.Errorf("due at %s, the clock says %s", d, c.Now())
			}
		})
	}
}
