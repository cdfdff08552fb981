package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestWaitingInputIsDue: an input is due, and its alarm asked for, from the moment it is kept, so that it
// is answered even if the life that took it had ended, as by new settings between the look-up and the
// post; and nothing is due any more when it is answered.
func TestWaitingInputIsDue(t *testing.T) {
	for _, row := range []struct {
		name   string
		in     session.Input
		resets int
		log    int // messages of the log behind it
	}{
		{"message", session.Input{ID: "late", Message: tidemark.NewText(tidemark.User, "second")}, 0, 4},
		{"compact", session.Input{ID: "late", Kind: session.InputCompact}, 0, 2},
		{"reset", session.Input{ID: "late", Kind: session.InputReset}, 1, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, c := newTimedAlone(t, session.Settings{}, "2026-11-21T10:00:00Z")
			var alarm time.Time
			h.alarm = func(_ context.Context, at time.Time) error {
				if alarm.IsZero() || at.Before(alarm) {
					alarm = at
				}
				return nil
			}
			h.stop()
			h.open()
			h.say("first")
			h.idle()
			if at := h.due(); !at.IsZero() {
				t.Fatalf("due at %s with nothing to do", at)
			}

			alarm = time.Time{}
			h.stop()
			for range 2 { // the client sends it again
				if _, err := h.Post(t.Context(), row.in); err != nil {
					t.Fatal(err)
				}
			}
			if alarm.Before(c.Now()) || alarm.After(c.Now().Add(2*time.Minute)) {
				t.Fatalf("the alarm was asked for at %s, want within two minutes", alarm)
			}
			c.set(alarm)
			h.open()
			h.wake()
			if got := h.current(); len(got) != row.log || h.info().Resets != row.resets {
				t.Errorf("%d resets, the log holds %q", h.info().Resets, got)
			}
			if r, err := h.Post(t.Context(), row.in); err != nil || r.State != "done" {
				t.Errorf("the input is %q, %v", r.State, err)
			}
			if at, err := session.NextDue(t.Context(), h.db); err != nil || !at.IsZero() {
				t.Errorf("answered, and still due at %s, %v", at, err)
			}
		})
	}
}
