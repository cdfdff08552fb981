package session_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestSettledIsForgotten: a reset lets go of what was settled a month ago, and of nothing that is on its way.
// Ids of inputs are held, so that what comes twice stays one however late it comes.
func TestSettledIsForgotten(t *testing.T) {
	const day = 24 * time.Hour
	c := &tidemarktest.Courier{Fail: failing(tidemark.SendClosed, 2)}
	h, clock := newPhone(t, c)
	h.post(wrote(ann, "old", "hello"))
	h.idle()
	h.post(wrote(bob, "kept", "closed to me")) // its answer waits for bob
	h.idle()
	if err := h.Say(t.Context(), "pairing/1", ann, "Your code is AB12CD34."); err != nil {
		t.Fatal(err)
	}
	h.idle()
	reset := func(id string) {
		t.Helper()
		h.post(session.Input{ID: id, Kind: session.InputReset})
		h.idle()
	}
	said := func() int64 {
		t.Helper()
		rows, err := h.db.Query(t.Context(), `SELECT (SELECT count(*) FROM inputs WHERE kind = 'say') * 100 + (SELECT count(*) FROM heard WHERE key = ?) FROM heads LIMIT 1`, string(h.key))
		if err != nil {
			t.Fatal(err)
		}
		return rows[0].Int(0)
	}
	clock.advance(29 * day)
	reset("early")
	h.wantLedger("sent: ok 1", "pending closed: ok 2", "sent: Your code is AB12CD34.")
	if got := said(); got != 102 {
		t.Errorf("%d lines and messages are held, want 102", got)
	}
	for _, in := range []session.Input{wrote(ann, "old", "hello"), wrote(bob, "kept", "closed to me")} {
		if r, err := h.Post(t.Context(), in); err != nil || !r.Duplicate {
			t.Errorf("input %s a month later: %+v, %v", in.ID, r, err)
		}
	}
	clock.advance(2 * day)
	reset("late")
	h.wantLedger("pending closed: ok 2")
	if got := said(); got != 0 {
		t.Errorf("%d lines and messages are held, want none", got)
	}
	if r, err := h.Post(t.Context(), wrote(ann, "old", "hello")); err != nil || !r.Duplicate {
		t.Errorf("the same input later still: %+v, %v", r, err)
	}
	h.post(wrote(bob, "back", "I am back"))
	h.idle()
	if got := c.Texts(); !slices.Contains(got[len(got)-2:], "ok 2") {
		t.Errorf("bob read %q", got)
	}
}

// TestClosedBehindTheirBack: a status that comes late says that a window was closed, which the person has
// opened meanwhile by writing.
func TestClosedBehindTheirBack(t *testing.T) {
	for _, row := range []struct {
		name string
		at   time.Duration // of the failure, after the first message; -1: the platform does not say
		want []string
	}{
		{"closed before they wrote", time.Minute, []string{"ok 1", "ok 2", "ok 1"}},
		{"closed after they wrote", time.Hour, []string{"ok 1", "ok 2"}},
		{"closed in the second in which they wrote", 10*time.Minute - 900*time.Millisecond, []string{"ok 1", "ok 2", "ok 1"}},
		{"no time", -1, []string{"ok 1", "ok 2"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{}
			h, clock := newPhone(t, c)
			begun := clock.Now()
			h.post(wrote(ann, "in1", "hello"))
			h.idle()
			clock.advance(10 * time.Minute)
			h.post(wrote(ann, "in2", "are you there?"))
			h.idle()
			closed := tidemark.Delivery{Ref: c.Arrived()[0].Ref, ID: "mid.1", Status: tidemark.StatusFailed, Error: &tidemark.SendError{Class: tidemark.SendClosed, Code: 131047}}
			if row.at >= 0 {
				closed.At = begun.Add(row.at)
			}
			for range 2 {
				if err := h.Delivered(t.Context(), closed); err != nil {
					t.Fatal(err)
				}
			}
			h.idle()
			wantTexts(t, c, row.want...)
		})
	}
}

// TestClosedWhileTheyWrite: who writes while a platform finds their window closed, or tells so, need not
// write twice.
func TestClosedWhileTheyWrite(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		c := &tidemarktest.Courier{Fail: failing(tidemark.SendClosed, 1), Hold: make(chan struct{})}
		h, clock := newPhone(t, c)
		h.post(wrote(ann, "in1", "hello"))
		for c.Tries() < 1 {
			time.Sleep(time.Millisecond)
		}
		clock.advance(time.Second)
		h.post(wrote(ann, "in2", "are you there?"))
		close(c.Hold)
		h.idle()
		wantTexts(t, c, "ok 1", "ok 2")
	})
	t.Run("by a status", func(t *testing.T) {
		for range tidemarktest.Rounds(40) { // in this order or that, and at once
			c := &tidemarktest.Courier{}
			h, clock := newPhone(t, c)
			h.post(wrote(ann, "in1", "hello"))
			h.idle()
			clock.advance(time.Second)
			closed := tidemark.Delivery{Ref: c.Arrived()[0].Ref, ID: "mid.1", Status: tidemark.StatusFailed, At: clock.Now().Add(time.Second),
				Error: &tidemark.SendError{Class: tidemark.SendClosed, Code: 131047}}
			told := make(chan error)
			go func() { told <- h.Delivered(t.Context(), closed) }()
			h.post(wrote(ann, "in2", "are you there?"))
			if err := <-told; err != nil {
				t.Fatal(err)
			}
			h.idle()
			got := c.Texts()
			slices.Sort(got)
			if !slices.Equal(got, []string{"ok 1", "ok 1", "ok 2"}) {
				t.Fatalf("sent %q", got)
			}
		}
	})
}

// TestClosedAgain: what a message answers opens no window for it; and where a platform's clock is behind, so
// that each send is closed before the person wrote, it is not sent again and again.
func TestClosedAgain(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, clock := newPhone(t, c)
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	closedAgain(t, h, c, clock)
	wantTexts(t, c, "ok 1")
	clock.advance(time.Minute)
	h.post(wrote(ann, "in2", "are you there?")) // "ok 1" goes out with it
	h.idle()
	for range 10 {
		closedAgain(t, h, c, clock)
	}
	if n := len(c.Texts()); n > 5 {
		t.Errorf("sent %q", c.Texts())
	}
}

// closedAgain tells that the first message was closed, by a clock that is an hour behind.
func closedAgain(t *testing.T, h *harness, c *tidemarktest.Courier, clock *clock) {
	t.Helper()
	closed := tidemark.Delivery{Ref: c.Arrived()[0].Ref, ID: fmt.Sprintf("mid.%d", len(c.Arrived())), Status: tidemark.StatusFailed,
		At: clock.Now().Add(-time.Hour), Error: &tidemark.SendError{Class: tidemark.SendClosed, Code: 131047}}
	if err := h.Delivered(t.Context(), closed); err != nil {
		t.Fatal(err)
	}
	h.idle()
}

// TestWordless: an answer without text is told of as that.
func TestWordless(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text(" ")}}, nil
	})
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	wantTexts(t, c, "(The answer has no text.)")
}
