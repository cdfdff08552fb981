package session_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// TestReportEvery: with it the directory is told of a busy session once in that time, and of its last
// word behind the last turn by the alarm.
func TestReportEvery(t *testing.T) {
	for _, row := range []struct {
		name  string
		every time.Duration
		want  int64 // after five turns within a minute, and after the wake
		woken int64
	}{
		{"after every turn", 0, 5, 5},
		{"once a minute", time.Minute, 1, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, c := newTimedAlone(t, session.Settings{ReportEvery: row.every}, "2026-11-21T10:00:00Z")
			var told atomic.Int64
			h.agent.told = func() { told.Add(1) }
			begin := c.Now()
			for range 5 {
				h.say("hello")
				h.idle()
				c.advance(time.Second)
			}
			if got := told.Load(); got != row.want {
				t.Errorf("told %d times, want %d", got, row.want)
			}
			if row.every > 0 {
				if at := h.due(); at.Before(begin.Add(row.every)) || at.After(begin.Add(row.every+5*time.Second)) {
					t.Fatalf("due at %s, want a minute after the first report at %s", at, begin)
				}
				c.set(h.due())
				h.wake()
			}
			if got := told.Load(); got != row.woken {
				t.Errorf("after the wake told %d times, want %d", got, row.woken)
			}
			if at := h.due(); !at.IsZero() {
				t.Errorf("still due at %s", at)
			}
		})
	}
}

// TestAgentLeftAlone: an agent that cannot be reached is asked once, and told all of it a minute later; an
// item that it refuses holds nothing up.
func TestAgentLeftAlone(t *testing.T) {
	for _, row := range []struct {
		name  string
		err   error
		asked int   // of three extractions
		told  int64 // whether the directory was told
		left  []string
	}{
		{"cannot be reached", tidemark.ErrUnavailable, 1, 0, []string{"facts:0", "facts:1", "facts:2"}},
		{"does not answer", tidemark.ErrTimeout, 1, 0, []string{"facts:0", "facts:1", "facts:2"}},
		{"refuses one", fmt.Errorf("no: %w", tidemark.ErrInvalid), 3, 1, []string{"facts:0"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, c := newTimedAlone(t, session.Settings{}, noon)
			h.say("hello")
			h.idle()
			stmts := []tidemark.Stmt{{SQL: `INSERT INTO due(key, kind, at, data) VALUES(?, 'outbox', 0, '')`, Args: []any{string(h.key)}}}
			for i := range 3 {
				stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO outbox(id, key, kind, payload, at) VALUES(?, ?, 'facts', ?, ?)`,
					Args: []any{fmt.Sprint("facts:", i), string(h.key), fmt.Sprintf(`{"id":"x%d","facts":[{"text":"fact %d"}]}`, i, i), i}})
			}
			if err := h.db.Tx(t.Context(), stmts); err != nil {
				t.Fatal(err)
			}
			asked, told := 0, atomic.Int64{}
			h.agent.told = func() { told.Add(1) }
			h.agent.remember = func(x tidemark.Extraction) error {
				if asked++; x.ID == "x0" {
					return row.err
				}
				return nil
			}
			h.wake()
			if asked != row.asked || told.Load() != row.told {
				t.Errorf("asked %d times, directory %d, want %d and %d", asked, told.Load(), row.asked, row.told)
			}
			if got := h.outbox(); !slices.Equal(got, row.left) {
				t.Errorf("left %q, want %q", got, row.left)
			}
			if wait := h.due().Sub(c.Now()); wait < 30*time.Second || wait > 2*time.Minute {
				t.Errorf("tried again after %s", wait)
			}
			h.agent.remember = nil
			c.set(h.due())
			h.wake()
			if got := h.agent.remembered(); !h.due().IsZero() || len(h.outbox()) != 0 || len(got) != 3 {
				t.Errorf("when the agent is back: due at %s, left %q, facts %q", h.due(), h.outbox(), got)
			}
		})
	}
}

// TestPutOffIsNoFault: a report that waits for its time is nothing to warn of.
func TestPutOffIsNoFault(t *testing.T) {
	h, c := newTimedAlone(t, session.Settings{ReportEvery: time.Minute}, noon)
	h.idle()
	h.stop()
	var log bytes.Buffer
	h.logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h.open()
	for range 2 {
		h.say("hello")
		h.idle()
		c.advance(time.Second)
	}
	if h.due().IsZero() {
		t.Error("no report waits")
	}
	h.stop()
	h.idle()
	if log.Len() > 0 {
		t.Errorf("the log warns: %s", log.String())
	}
}

// outbox lists what the agent was not told.
func (h *harness) outbox() []string {
	h.t.Helper()
	rows, err := h.db.Query(h.t.Context(), `SELECT id FROM outbox ORDER BY id LIMIT 100`)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		out = append(out, r.Text(0))
	}
	return out
}

// TestReportOfAnEndedLife: a life that ends right behind a run, as by new settings, leaves the report due.
func TestReportOfAnEndedLife(t *testing.T) {
	for _, row := range []struct {
		name string
		in   session.Input
		fail bool // the model's call
	}{
		{"message", session.Input{Message: tidemark.NewText(tidemark.User, "hello")}, false},
		{"message that failed", session.Input{Message: tidemark.NewText(tidemark.User, "hello")}, true},
		{"compact", session.Input{Kind: session.InputCompact}, false},
		{"reset", session.Input{Kind: session.InputReset}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, c := newTimedAlone(t, session.Settings{}, noon)
			h.say("one")
			h.idle()
			h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
				if row.fail {
					return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassAuth}
				}
				return tidemark.Message{}, nil
			})
			h.agent.told = func() { h.stop() }
			if _, err := h.Post(t.Context(), row.in); err != nil {
				t.Fatal(err)
			}
			h.idle()
			at, err := session.NextDue(t.Context(), h.db)
			if err != nil || at.IsZero() || at.After(c.Now().Add(2*time.Minute)) {
				t.Fatalf("the report is due at %s, %v", at, err)
			}
			told := 0
			h.agent.told = func() { told++ }
			c.set(at)
			h.open()
			h.wake()
			if told == 0 || !h.due().IsZero() {
				t.Errorf("told %d times, due at %s", told, h.due())
			}
		})
	}
}

// TestToldOfACompaction: while the agent is told what a compaction within a turn found, that is due again in case this life ends.
func TestToldOfACompaction(t *testing.T) {
	h := newHarness(t, small)
	var facts, early atomic.Int64
	h.agent.remember = func(tidemark.Extraction) error {
		facts.Add(1)
		if h.count(`SELECT count(*) FROM due WHERE key = ? AND kind = 'outbox' LIMIT 1`, string(h.key)) == 0 {
			early.Add(1)
		}
		return nil
	}
	for i := 0; facts.Load() == 0 && i < 40; i++ {
		h.say(filler(i))
	}
	if len(h.events("compaction")) == 0 || facts.Load() == 0 || early.Load() != 0 {
		t.Errorf("%d compactions, %d times told, %d of them without being due again", len(h.events("compaction")), facts.Load(), early.Load())
	}
}
