package search

import (
	"testing"

	"github.com/tidemark-ai/tidemark/room"
)

// TestEndedIsOfItsRun: the end of a run does not end the waiting of the next, which may have begun.
func TestEndedIsOfItsRun(t *testing.T) {
	s, next := &Skips{ports: ports{Self: room.Self{Made: &room.Made{}}}}, "next"
	s.held.Store(&next)
	if s.Ended(t.Context(), "before"); !s.holding() {
		t.Error("the next run does not wait any more")
	}
	if s.Ended(t.Context(), next); s.holding() {
		t.Error("it waits behind its end")
	}
}
