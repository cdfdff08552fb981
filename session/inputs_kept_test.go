package session_test

import (
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestInputIDsAreHeld: platforms post for up to a week what was not acknowledged. The id of an input is known
// for longer, in every session of a database, whatever was reset, compacted and opened anew in between.
func TestInputIDsAreHeld(t *testing.T) {
	h, clock := newTimed(t, small, noon)
	keys := []tidemark.Key{"agent:main:main", "agent:main:local:dm:one", "agent:main:local:dm:two"}
	in := session.Input{ID: "wamid.1", Message: tidemark.NewText(tidemark.User, "hello")}
	each := func(do func()) {
		t.Helper()
		for _, k := range keys {
			h.stop()
			h.key = k
			h.open()
			do()
			h.idle()
		}
	}
	each(func() { h.post(in) })
	for day := range 9 {
		clock.advance(24 * time.Hour)
		each(func() {
			if r, err := h.Post(t.Context(), in); err != nil || !r.Duplicate || r.State != "done" {
				t.Errorf("%s after %d days: %+v, %v", h.key, day+1, r, err)
			}
			h.post(session.Input{Kind: session.InputReset})
		})
	}
	if got := h.model.count(); got < len(keys) {
		t.Errorf("the model was called %d times", got)
	}
}
