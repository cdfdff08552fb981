package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/room/spool"
	"github.com/tidemark-ai/tidemark/session"
)

// TestSpoolHolds: a session whose room works is not forgotten, and its alarm reaches the room.
func TestSpoolHolds(t *testing.T) {
	h := newAlone(t, session.Settings{})
	r, ok := session.Room[*spool.Room](h.Session)
	if !ok {
		t.Fatal("the session has no room for spools")
	}
	kept, err := r.Keep(t.Context(), strings.NewReader("a log"), 100)
	if err != nil || !h.Working() || h.Idle() {
		t.Fatalf("%v, working %v", err, h.Working())
	}
	h.open() // another life
	h.ring("spool")
	if n := h.count(`SELECT count(*) FROM spool LIMIT 1`); n != 0 || h.Working() {
		t.Errorf("%d rows stay of the life before", n)
	}
	if err := kept.Close(); err != nil || r.Working() {
		t.Error(err)
	}
}
