package session_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// held opens a conversation whose model is being called for ann's message, over a database.
func held(t *testing.T, c *tidemarktest.Courier, db func(tidemark.DB) tidemark.DB) *harness {
	t.Helper()
	h, _ := newPhone(t, c)
	h.idle()
	h.stop()
	h.db, h.key = db(h.db), "agent:main:fake:dm:held"
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	h.open()
	if _, err := h.Post(t.Context(), wrote(ann, "in1", "hello")); err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	return h
}

// wantStopped holds what a person was told against what became of the turn.
func (h *harness) wantStopped(c *tidemarktest.Courier) {
	h.t.Helper()
	h.idle()
	if _, failure, ok, err := h.Reply(h.t.Context(), "in1"); !ok || failure != "Stopped." || err != nil {
		h.t.Errorf("the turn came to %q, %v, %v", failure, ok, err)
	}
	if busy, err := h.Busy(h.t.Context()); busy != "" || err != nil {
		h.t.Errorf("run %q is in work, %v", busy, err)
	}
	wantTexts(h.t, c, "Stopped.")
}

// TestStopOutlivesKill: "Stopped." is true also when the process dies right behind saying so.
func TestStopOutlivesKill(t *testing.T) {
	c := &tidemarktest.Courier{}
	var real tidemark.DB
	m := &mortal{left: 1 << 30, dead: make(chan struct{})}
	h := held(t, c, func(db tidemark.DB) tidemark.DB {
		real, m.DB = db, db
		return m
	})
	calls := h.model.count()
	m.mu.Lock()
	m.left, m.after, m.counts = 1, true, marksStop
	m.mu.Unlock()
	if _, err := h.Post(t.Context(), ordered(ann, "stop", "/stop")); err == nil {
		t.Fatal("the process did not die")
	}
	h.stop()
	close(h.model.hold)
	h.db = real
	h.open()
	h.wantStopped(c)
	if r, err := h.Post(t.Context(), ordered(ann, "stop", "/stop")); err != nil || !r.Duplicate {
		t.Errorf("the same again: %+v, %v", r, err)
	}
	h.wantStopped(c)
	if got := h.model.count(); got != calls {
		t.Errorf("the model was called %d times more", got-calls)
	}
	if got := h.finish(wrote(ann, "in2", "and now?")); strings.HasPrefix(got, "error") {
		t.Errorf("the next turn: %s", got)
	}
}

// marksStop reports a write that says of a run that it is stopped: others of the session may come before it.
func marksStop(stmts []tidemark.Stmt) bool {
	return slices.ContainsFunc(stmts, func(s tidemark.Stmt) bool { return strings.Contains(s.SQL, "SET error = CASE error") })
}

// TestStopOfCommand: a command that was being carried out is not carried out by the next life.
func TestStopOfCommand(t *testing.T) {
	c := &tidemarktest.Courier{}
	var real tidemark.DB
	m := &mortal{left: 1 << 30, dead: make(chan struct{})}
	h, _ := newPhone(t, c)
	for i := range 9 {
		h.finish(session.Input{ID: string(rune('a' + i)), Message: tidemark.NewText(tidemark.User, filler(i))})
	}
	h.idle()
	h.stop()
	real, m.DB = h.db, h.db
	h.db = m
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	h.open()
	if _, err := h.Post(t.Context(), ordered(ann, "compact", "/compact")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-h.model.entered:
	case <-time.After(tidemarktest.Patience):
		t.Fatal("no summary was asked for")
	}
	m.mu.Lock()
	m.left, m.after, m.counts = 1, true, marksStop
	m.mu.Unlock()
	if _, err := h.Post(t.Context(), ordered(ann, "stop", "/stop")); err == nil {
		t.Fatal("the process did not die")
	}
	h.stop()
	close(h.model.hold)
	h.db = real
	h.open()
	h.idle()
	wantTexts(t, c, "Stopped.")
	if got := h.events("compaction"); len(got) > 0 {
		t.Errorf("compacted all the same: %q", got)
	}
	if busy, err := h.Busy(t.Context()); busy != "" || err != nil {
		t.Errorf("run %q is in work, %v", busy, err)
	}
}

// between lets something happen behind the transaction that marks a run as stopped.
type between struct {
	tidemark.DB
	then  func()
	reply chan error // of the transaction that commits a reply
}

func (b *between) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	err := b.DB.Tx(ctx, stmts)
	begins := func(sql string) bool {
		return slices.ContainsFunc(stmts, func(s tidemark.Stmt) bool { return strings.HasPrefix(s.SQL, sql) })
	}
	switch {
	case begins("UPDATE runs SET error = CASE"):
		b.then()
	case begins("UPDATE runs SET reply"):
		b.reply <- err
	}
	return err
}

// TestStopBesideReply: a reply that comes at the moment of a stop is not sent behind "Stopped.".
func TestStopBesideReply(t *testing.T) {
	c := &tidemarktest.Courier{}
	b := &between{reply: make(chan error, 1)}
	var h *harness
	b.then = func() {
		close(h.model.hold)
		if err := <-b.reply; err == nil {
			t.Error("the reply was committed behind the stop")
		}
	}
	h = held(t, c, func(db tidemark.DB) tidemark.DB {
		b.DB = db
		return b
	})
	if _, err := h.Post(t.Context(), ordered(ann, "stop", "/stop")); err != nil {
		t.Fatal(err)
	}
	h.wantStopped(c)
}
