package session_test

import (
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestWaitingInputIsDue: an input is due from the moment it is kept, so that an alarm answers it even if
// the life that took it ended at once, and nothing is due any more when it is answered.
func TestWaitingInputIsDue(t *testing.T) {
	h, c := newTimed(t, session.Settings{}, "2026-11-21T10:00:00Z")
	h.say("first")
	h.idle()
	if at := h.due(); !at.IsZero() {
		t.Fatalf("due at %s with nothing to do", at)
	}

	h.stop() // the host forgets the session between the lookup and the post
	if _, err := h.Post(t.Context(), session.Input{ID: "late", Message: tidemark.NewText(tidemark.User, "second")}); err != nil {
		t.Fatal(err)
	}
	at, err := session.NextDue(t.Context(), h.db)
	if err != nil || at.Before(c.Now()) || at.After(c.Now().Add(2*time.Minute)) {
		t.Fatalf("the next thing is due at %s, %v; want within two minutes", at, err)
	}
	c.set(at)
	h.open()
	h.wake()
	if got := h.current(); len(got) != 4 || got[2] != "user: second" {
		t.Errorf("the log holds %q", got)
	}
	if at, err := session.NextDue(t.Context(), h.db); err != nil || !at.IsZero() {
		t.Errorf("answered, and still due at %s, %v", at, err)
	}
}
