package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/session"
)

// TestResetByAlarm: the alarm resets at its time and not before, once, and never an empty session.
func TestResetByAlarm(t *testing.T) {
	h, c := newTimed(t, session.Settings{Reset: reset.Policy{Mode: reset.Both, AtHour: 4, IdleMinutes: 20 * 60}}, noon)
	h.idle()
	if d := h.due(); !d.IsZero() {
		t.Errorf("an empty session is due at %s", d)
	}
	h.say("one")
	h.idle()
	jitter := reset.Jitter("agent:main:main")
	alarm := moment(t, "2026-03-11T04:00:00Z").Add(jitter)
	if d := h.due(); !d.Equal(alarm) {
		t.Fatalf("due at %s, want %s", d.UTC(), alarm)
	}
	c.set(alarm.Add(-time.Second))
	h.wake()
	if i := h.info(); i.Resets != 0 {
		t.Fatal("reset before its alarm")
	}
	c.set(alarm)
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- h.Wake(t.Context()) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	h.idle()
	if i := h.info(); i.Resets != 1 || i.Messages != 0 {
		t.Fatalf("after the alarm: %+v", i)
	}
	if got := h.events("reset"); len(got) != 1 || !strings.Contains(got[0], "daily reset at 04:00 UTC") {
		t.Errorf("events %q", got)
	}
	c.advance(100 * 24 * time.Hour)
	h.wake()
	if i := h.info(); i.Resets != 1 {
		t.Error("an empty session was reset")
	}
	if got := h.say("two"); !strings.HasPrefix(got, "ok") || h.info().Resets != 1 {
		t.Errorf("%q, %d resets: nothing is to be reset before the first message", got, h.info().Resets)
	}
}

// TestIdleAtOnce: with a pause of no minutes a session ends as soon as nothing waits, by the alarm as by
// the next input, and a reset that fails is not tried without end.
func TestIdleAtOnce(t *testing.T) {
	h, c := newTimed(t, session.Settings{Reset: reset.Policy{Mode: reset.Idle}}, noon)
	h.say("one")
	h.idle()
	if wait := h.due().Sub(c.Now()); wait > time.Second {
		t.Fatalf("the alarm comes %s behind the pause", wait)
	}
	c.advance(time.Second)
	h.wake()
	if i := h.info(); i.Resets != 1 || i.Messages != 0 || !h.due().IsZero() {
		t.Fatalf("after the alarm: %+v, due at %s", i, h.due())
	}
	h.say("two")
	h.idle()
	c.advance(time.Second)
	h.say("three")
	h.idle()
	if i := h.info(); i.Resets != 2 || i.Messages != 2 {
		t.Fatalf("after the next input: %+v", i)
	}
	h.blobs.Fail = func(op, _ string) error {
		if op == "put" {
			return tidemark.ErrUnavailable
		}
		return nil
	}
	c.advance(time.Second)
	h.wake()
	if wait := h.due().Sub(c.Now()); wait < time.Minute || wait > time.Hour {
		t.Errorf("tried again after %s, want a pause of minutes", wait)
	}
}

// TestStaleAlarm: activity after the alarm was set puts the reset off, and the alarm works again
// the next time.
func TestStaleAlarm(t *testing.T) {
	h, c := newTimed(t, session.Settings{TurnTimeout: 24 * time.Hour, Reset: reset.Policy{Mode: reset.Idle, IdleMinutes: 60}}, noon)
	h.say("one")
	h.idle()
	first := h.due()
	c.advance(50 * time.Minute)
	h.say("two")
	h.idle()
	c.set(first)
	h.wake()
	if i := h.info(); i.Resets != 0 || i.Messages != 4 {
		t.Fatalf("%+v", i)
	}
	// Now the alarm comes while a turn is in work: when it is its turn, nothing is due any more.
	hold := make(chan struct{})
	h.model.mu.Lock()
	h.model.hold, h.model.entered = hold, make(chan struct{}, 100)
	h.model.mu.Unlock()
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	r, err := h.Post(t.Context(), session.Input{Message: tidemark.NewText(tidemark.User, "three")})
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	c.advance(3 * time.Hour) // a long answer
	if err := h.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(hold)
	h.wait(sub, r.ID)
	h.idle()
	if i := h.info(); i.Resets != 0 || i.Messages != 6 {
		t.Fatalf("reset right behind an answer: %+v", i)
	}
	c.set(h.due())
	h.wake()
	if i := h.info(); i.Resets != 1 || i.Messages != 0 {
		t.Errorf("the next alarm did not reset: %+v", i)
	}
}

// TestAlarmWithoutBucket: an alarm whose archive fails is tried again, not at once and not never.
func TestAlarmWithoutBucket(t *testing.T) {
	h, c := newTimed(t, session.Settings{Reset: reset.Policy{Mode: reset.Idle, IdleMinutes: 60}}, noon)
	h.say("one")
	h.idle()
	h.blobs.Fail = func(op, _ string) error {
		if op == "put" {
			return tidemark.ErrUnavailable
		}
		return nil
	}
	c.set(h.due())
	for range 3 {
		h.wake()
		if i := h.info(); i.Resets != 0 || i.Messages != 2 {
			t.Fatalf("%+v", i)
		}
		d := h.due()
		if wait := d.Sub(c.Now()); wait < time.Minute || wait > time.Hour {
			t.Fatalf("tried again after %s, want a pause of minutes", wait)
		}
		c.set(d)
	}
	h.blobs.Fail = nil
	h.wake()
	if i := h.info(); i.Resets != 1 {
		t.Errorf("when the bucket is back: %+v", i)
	}
}

// TestPromptOfTheDay: a session over midnight keeps its id and gets the new day's prompt.
func TestPromptOfTheDay(t *testing.T) {
	zone := time.FixedZone("", 14*3600)
	h, c := newTimed(t, session.Settings{Zone: zone}, "2026-03-10T09:59:00Z") // 23:59 there
	h.say("late")
	id := h.info().ID
	c.advance(2 * time.Minute)
	h.say("early")
	if h.info().ID != id {
		t.Error("a new day is no new session")
	}
	h.model.mu.Lock()
	notes := []string{h.model.calls[0].Note, h.model.calls[1].Note}
	h.model.mu.Unlock()
	if !strings.Contains(notes[0], "2026-03-10 23:59") || !strings.Contains(notes[1], "2026-03-11 00:01") {
		t.Errorf("notes %q", notes)
	}
}

// TestClockMovedBack: what was put off until a time that has become far away is not put off for
// ever, and the order of the log does not depend on the clock.
func TestClockMovedBack(t *testing.T) {
	h, c := newTimed(t, small, noon)
	h.say("one")
	c.advance(-365 * 24 * time.Hour)
	h.say("two")
	c.advance(-24 * time.Hour)
	h.say("three")
	var got []string
	for _, s := range h.originals() {
		if strings.HasPrefix(s, "user") {
			got = append(got, s)
		}
	}
	if !slices.Equal(got, []string{"user: one", "user: two", "user: three"}) {
		t.Errorf("order %q", got)
	}
	h.sent()
	if _, err := h.Search(t.Context(), "two", 5); err != nil && !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
}

// TestWakeSetsAlarm: a wake that finds nothing to do asks for the next one, at what is due first of its own and not of another
// session in the same database.
func TestWakeSetsAlarm(t *testing.T) {
	h, c := newTimedAlone(t, session.Settings{}, noon)
	h.idle()
	h.stop()
	var asked []time.Time
	h.alarm = func(_ context.Context, at time.Time) error {
		asked = append(asked, at)
		return nil
	}
	h.open()
	h.idle()
	next := c.Now().Add(time.Hour)
	var stmts []tidemark.Stmt
	for i, key := range []tidemark.Key{"agent:main:local:dm:other", h.key, h.key} {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, '')`,
			Args: []any{string(key), fmt.Sprint("extract:", i), next.Add(time.Duration(i-1) * time.Minute).UnixMilli()}})
	}
	if err := h.db.Tx(t.Context(), stmts); err != nil {
		t.Fatal(err)
	}
	asked = nil
	h.wake()
	h.idle()
	if len(asked) == 0 || !asked[len(asked)-1].Equal(next) {
		t.Errorf("asked to be woken at %s, want %s", asked, next)
	}
}
