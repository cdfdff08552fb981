package session_test

import (
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/session"
)

// TestIdleCountsPeople: what a schedule or a heartbeat has done in a conversation does not prolong the pause of its
// people; what a person said does. A neighbour to whom a person spoke meanwhile stays as it is.
func TestIdleCountsPeople(t *testing.T) {
	set := session.Settings{Reset: reset.Policy{Mode: reset.Idle, IdleMinutes: 60}}
	h, c := newTimed(t, set, noon)
	beside := &harness{t: h.t, db: h.db, blobs: h.blobs, model: &model{}, agent: &fakeAgent{}, rt: h.rt, set: set, key: "agent:main:second"}
	beside.open()
	beat := func(id string) session.Input {
		return session.Input{ID: id, Message: tidemark.NewText(tidemark.User, "heartbeat"), Origin: tidemark.Origin{From: tidemark.FromSystem, Owner: true, Occasion: &tidemark.Occasion{Schedule: "s1"}}}
	}
	h.say("hello")
	beside.say("hello")
	for _, id := range []string{"b1", "b2", "b3"} {
		c.advance(25 * time.Minute)
		beside.say("still here")
		if before := h.resets(); id != "b3" && before > 0 {
			t.Fatalf("%s: reset after %d minutes", id, 50)
		}
		h.post(beat(id))
	}
	if h.resets() != 1 {
		t.Errorf("after 75 minutes without a person: %d resets", h.resets())
	}
	if n := beside.resets(); n != 0 {
		t.Errorf("the neighbour: %d resets", n)
	}
	c.advance(30 * time.Minute)
	h.say("back")
	c.advance(40 * time.Minute)
	h.say("and again")
	if h.resets() != 1 {
		t.Errorf("a person prolongs it: %d resets", h.resets())
	}
}

func (h *harness) resets() int {
	h.t.Helper()
	i, err := h.Info(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return i.Resets
}
