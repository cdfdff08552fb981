package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestQueue: what waits behind a run is listed in order with the beginning of its words, what the run has
// taken up is not, and nothing is left when all is done.
func TestQueue(t *testing.T) {
	h := newHarness(t, session.Settings{})
	hold := make(chan struct{})
	h.model.hold, h.model.entered = hold, make(chan struct{}, 10)
	first := session.Input{ID: "first", Message: tidemark.NewText(tidemark.User, "taken up")}
	if _, err := h.Post(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	long := strings.Repeat("é", 400)
	for _, in := range []session.Input{
		{ID: "second", Message: tidemark.NewText(tidemark.User, " waits ")},
		{ID: "third", Kind: session.InputCompact, Text: "keep names"},
		{ID: "fourth", Message: tidemark.NewText(tidemark.User, "x"+long)},
	} {
		if _, err := h.Post(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	run, got, err := h.Queue(t.Context())
	if err != nil || run == "" || len(got) != 3 {
		t.Fatalf("run %q, %+v, %v", run, got, err)
	}
	cut := "x" + strings.Repeat("é", 249) + "…"
	for i, want := range []session.Waiting{{ID: "second", Kind: session.InputMessage, Text: "waits"}, {ID: "third", Kind: session.InputCompact, Text: "keep names"}, {ID: "fourth", Kind: session.InputMessage, Text: cut}} {
		at := got[i].At
		if want.At = at; got[i] != want || at.IsZero() {
			t.Errorf("%d: %+v, want %+v", i, got[i], want)
		}
	}
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	close(hold)
	h.wait(sub, "fourth")
	if run, got, err := h.Queue(t.Context()); err != nil || run != "" || len(got) != 0 {
		t.Errorf("at the end: run %q, %+v, %v", run, got, err)
	}
}
