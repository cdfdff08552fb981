package session_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestQueuedNotice: an input behind a run in work is told of once; what begins a run, a duplicate and a
// stop are not.
func TestQueuedNotice(t *testing.T) {
	h, _ := newTimed(t, small, noon)
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	post := func(in session.Input) {
		t.Helper()
		if _, err := h.Post(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	said := func(id string) session.Input {
		return session.Input{ID: id, Message: tidemark.NewText(tidemark.User, id)}
	}
	post(said("first"))
	<-h.model.entered
	for _, in := range []session.Input{said("second"), said("second"), {ID: "help", Kind: session.InputAsk, Text: "help"}, said("third"), {ID: "stop", Kind: session.InputAsk, Text: "stop"}} {
		post(in)
	}
	var queued []string
	for n, ok := sub.Next(); ok; n, ok = sub.Next() {
		if n.Type == session.NoticeQueued {
			queued = append(queued, n.Inputs...)
		}
	}
	if want := []string{"second", "help", "third"}; !slices.Equal(queued, want) {
		t.Errorf("told of %q, want %q", queued, want)
	}
	close(h.model.hold)
	h.idle()
}

// TestQueuedBehindItself: an input that another one's post has a run begin with waits for nothing, though that run works
// before its sender is answered.
func TestQueuedBehindItself(t *testing.T) {
	h, _ := newTimed(t, small, noon)
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	h.stop()
	h.db = &overtaken{DB: h.db, then: func(ctx context.Context) error {
		_, err := h.Post(ctx, session.Input{ID: "second", Message: tidemark.NewText(tidemark.User, "second")})
		<-h.model.entered
		return err
	}}
	h.open()
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if _, err := h.Post(t.Context(), session.Input{ID: "first", Message: tidemark.NewText(tidemark.User, "first")}); err != nil {
		t.Fatal(err)
	}
	for n, ok := sub.Next(); ok; n, ok = sub.Next() {
		// The second one may: what follows the opening may have begun the run before it was posted.
		if n.Type == session.NoticeQueued && slices.Contains(n.Inputs, "first") {
			t.Errorf("told that %q waits", n.Inputs)
		}
	}
	close(h.model.hold)
	h.idle()
}
