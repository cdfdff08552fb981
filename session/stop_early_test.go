package session_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// wantQuiet holds that behind a stop nobody is answered, however long they wait, and that the next word is.
func (h *harness) wantQuiet(c *tidemarktest.Courier, want ...string) {
	h.t.Helper()
	h.idle()
	h.rt.(*clock).advance(5 * time.Minute)
	h.wake()
	var got []string
	for _, a := range c.Arrived() {
		line, _, _ := strings.Cut(a.Text, "\n")
		got = append(got, a.To.Peer+" "+line)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		h.t.Errorf("people read %q, want %q", got, want)
	}
	if busy, err := h.Busy(h.t.Context()); busy != "" || err != nil {
		h.t.Errorf("run %q is in work, %v", busy, err)
	}
	if _, waits, err := h.Queue(h.t.Context()); len(waits) > 0 || err != nil {
		h.t.Errorf("there wait %+v, %v", waits, err)
	}
}

// TestStopBeforeItIsTaken: "Stopped." holds for what the run had not taken up yet. The words stay in the log,
// who waits for an answer learns that there is none, and what comes later is answered.
func TestStopBeforeItIsTaken(t *testing.T) {
	both := []session.Input{wrote(ann, "in1", "send the mail"), wrote(bob, "in2", "me too")}
	asked := ordered(bob, "status", "/status")
	for _, row := range []struct {
		name  string
		wrote []session.Input
		by    tidemark.Address
		want  []string
	}{
		{"one", both[:1], ann, []string{"ann Stopped."}},
		{"one, stopped by another", both[:1], bob, []string{"ann Stopped.", "bob Stopped."}},
		{"two people", both, ann, []string{"ann Stopped.", "bob Stopped."}},
		{"a group", []session.Input{wrote(group, "in1", "1"), wrote(group, "in2", "2")}, group, []string{"club Stopped."}},
		{"a question behind it", append(both[:1:1], asked), ann, []string{"ann Stopped.", "bob Model: test"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{}
			h, _ := newPhone(t, c)
			h.idle()
			h.stop()
			b := &before{DB: h.db, sql: "UPDATE inputs SET state = 'taken'"}
			h.db, h.key = b, "agent:main:fake:dm:early"
			h.open()
			sub, err := h.Subscribe()
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			b.mu.Lock()
			b.then = func() {
				for _, in := range append(row.wrote[1:len(row.wrote):len(row.wrote)], ordered(row.by, "stop", "/stop")) {
					if _, err := h.Post(t.Context(), in); err != nil {
						t.Error(err)
					}
				}
			}
			b.mu.Unlock()
			if _, err := h.Post(t.Context(), row.wrote[0]); err != nil {
				t.Fatal(err)
			}
			if got := h.wait(sub, "in1"); got != "error: Stopped." {
				t.Errorf("the turn ended with %q", got)
			}
			h.wantQuiet(c, row.want...)
			if _, failure, ok, err := h.Reply(t.Context(), "in1"); !ok || failure != "Stopped." || err != nil {
				t.Errorf("the turn came to %q, %v, %v", failure, ok, err)
			}
			if got := h.originals(); len(got) == 0 || !strings.HasPrefix(got[0], "user: ") {
				t.Errorf("the log holds %q", got)
			}
			if got := h.finish(wrote(ann, "next", "and now?")); strings.HasPrefix(got, "error") {
				t.Errorf("the next turn: %s", got)
			}
		})
	}
}

// TestStopInReset: a reset comes before the message that is due for it, and a stop meanwhile is of both. The
// reset is made with the next message, and archives what was stopped.
func TestStopInReset(t *testing.T) {
	for _, row := range []struct {
		name string
		dies bool // right behind the stop
		rung bool // by the alarm, before they write
	}{{name: "in one life"}, {name: "and the process dies", dies: true}, {name: "of an alarm", rung: true}, {name: "of an alarm, and the process dies", dies: true, rung: true}} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{}
			h := stoppedInReset(t, c, row.dies, row.rung)
			h.wantQuiet(c, "ann Stopped.", "ann ok 1")
			if _, failure, ok, err := h.Reply(t.Context(), "in1"); !ok || failure != "Stopped." || err != nil {
				t.Errorf("the turn came to %q, %v, %v", failure, ok, err)
			}
			h.post(wrote(ann, "in2", "and now?"))
			h.idle()
			h.wake()
			var lines []string
			for _, k := range h.keys("") {
				if strings.Contains(k, ".jsonl") {
					lines = append(lines, h.archived(k)...)
				}
			}
			if !slices.Equal(lines, []string{"user: yesterday", "assistant: ok 1", "user: send the mail"}) {
				t.Errorf("archived %q in %q", lines, h.keys(""))
			}
			if got := h.current(); len(got) != 2 || got[0] != "user: and now?" {
				t.Errorf("the new conversation: %q", got)
			}
			h.agent.mu.Lock()
			defer h.agent.mu.Unlock()
			if got := h.agent.archives; len(got) != 1 || got[0].Messages != 3 {
				t.Errorf("the agent knows of %+v", got)
			}
		})
	}
}

// stoppedInReset is a conversation where ann wrote while a reset was made, or made it due, and said stop.
func stoppedInReset(t *testing.T, c *tidemarktest.Courier, dies, rung bool) *harness {
	t.Helper()
	h, clock := newPhone(t, c)
	h.idle()
	h.stop()
	h.key, h.set = "agent:main:fake:dm:reset", small
	h.set.Reset = reset.Policy{Mode: reset.Idle, IdleMinutes: 60}
	h.open()
	h.post(wrote(ann, "in0", "yesterday"))
	h.idle()
	clock.advance(2 * time.Hour)
	real := h.db
	h.stop()
	if dies {
		h.db = &doomed{DB: h.db, sql: "UPDATE runs SET error = CASE"}
	}
	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	h.open()
	if rung {
		if err := h.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
	} else if _, err := h.Post(t.Context(), wrote(ann, "in1", "send the mail")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-h.model.entered: // it asks for the memories, behind the archive
	case <-time.After(tidemarktest.Patience):
		t.Fatal("no memories were asked for")
	}
	if rung {
		if _, err := h.Post(t.Context(), wrote(ann, "in1", "send the mail")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Post(t.Context(), ordered(ann, "stop", "/stop")); (err != nil) != dies {
		t.Fatal(err)
	}
	if dies {
		h.stop()
	}
	close(h.model.hold)
	if dies {
		h.db = real
		h.open()
	}
	return h
}

// doomed is a database whose process dies behind a transaction with a statement.
type doomed struct {
	tidemark.DB
	sql  string
	gone atomic.Bool
}

func (d *doomed) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if d.gone.Load() {
		return errKilled
	}
	err := d.DB.Tx(ctx, stmts)
	if err == nil && slices.ContainsFunc(stmts, func(s tidemark.Stmt) bool { return strings.HasPrefix(s.SQL, d.sql) }) {
		d.gone.Store(true)
		return errKilled
	}
	return err
}

func (d *doomed) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if d.gone.Load() {
		return nil, errKilled
	}
	return d.DB.Query(ctx, sql, args...)
}
