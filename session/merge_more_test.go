package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
)

// aside is a database beside which something happens once: behind a query, or before a transaction.
type aside struct {
	tidemark.DB
	mu    sync.Mutex // guards the following
	query string     // a part of its SQL
	tx    string     // a part of the SQL of one of its statements
	act   func()
}

// met takes what is to be done, once.
func (a *aside) met(is func() bool) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.act == nil || !is() {
		return func() {}
	}
	act := a.act
	a.act = nil
	return act
}

func (a *aside) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	rows, err := a.DB.Query(ctx, sql, args...)
	a.met(func() bool { return a.query != "" && strings.Contains(sql, a.query) })()
	return rows, err
}

func (a *aside) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	a.met(func() bool {
		for _, s := range stmts {
			if a.tx != "" && strings.Contains(s.SQL, a.tx) {
				return true
			}
		}
		return false
	})()
	return a.DB.Tx(ctx, stmts)
}

// set has something happen.
func (a *aside) set(query, tx string, act func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.query, a.tx, a.act = query, tx, act
}

// watched is a session of such a database, with a branch of it that has said something.
func watched(t *testing.T) (h, branch *harness, db *aside) {
	t.Helper()
	h = newAlone(t, session.Settings{})
	h.stop()
	db = &aside{DB: h.db}
	h.db = db
	h.open()
	h.say("what shall we do?")
	branch, _ = h.branch(snapshots.BranchOptions{Of: snapshots.Options{Name: "plan"}, Name: "way"})
	branch.say("try it")
	return h, branch, db
}

// merge merges a branch, which must work.
func (h *harness) merge(from *harness) snapshots.Merged {
	h.t.Helper()
	m, err := h.Merge(h.t.Context(), snapshots.MergeOptions{From: from.key})
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

const readsOutcome, readsMerges, writesMerge = `FROM heads h WHERE h.key = ?`, `SELECT entry FROM merges`, `INSERT INTO merges`

// TestMergeWhileBranchGoesOn: the words of a note are those of the place that it is written down for.
func TestMergeWhileBranchGoesOn(t *testing.T) {
	h, b, db := watched(t)
	later := ""
	db.set(readsOutcome, "", func() { later = b.say("and more") })
	first := h.merge(b)
	if later == "" || first.Again || strings.Contains(first.Text, later) {
		t.Errorf("the words are not of the place: %+v, said later %q", first, later)
	}
	if m := h.merge(b); m.Again || m.Entry == first.Entry || !strings.Contains(m.Text, later) {
		t.Errorf("what was said since: %+v", m)
	}
	if m := h.merge(b); !m.Again || !strings.Contains(m.Text, later) {
		t.Errorf("once more: %+v", m)
	}
}

// TestMergeOfUnfinished: what a model says before a call is no outcome, neither while it works nor when it said no more.
func TestMergeOfUnfinished(t *testing.T) {
	h, b, _ := watched(t)
	whole := h.merge(b)
	b.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		if last := req.Messages[len(req.Messages)-1]; len(last.Results()) > 0 {
			return tidemark.Message{}, failure(tidemark.ClassBadRequest)
		}
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("let me see"), tidemark.ToolUse(fmt.Sprint("c", n), "look", nil)}}, nil
	})
	entered, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b.agent.call = func(c tidemark.Block) tidemark.Block {
		close(entered)
		<-release
		return tidemark.ToolResult(c.ID, "seen", false)
	}
	go func() { defer close(ended); b.say("go on") }()
	<-entered
	_, busy := h.Merge(t.Context(), snapshots.MergeOptions{From: b.key})
	noted, err := h.Merge(t.Context(), snapshots.MergeOptions{From: b.key, Note: "own words"})
	close(release)
	<-ended
	if !errors.Is(busy, tidemark.ErrBusy) {
		t.Errorf("while the branch works: %v", busy)
	}
	if err != nil || !strings.Contains(noted.Text, "own words") {
		t.Errorf("a note while the branch works: %+v, %v", noted, err)
	}
	if m := h.merge(b); !m.Again || m.Entry != whole.Entry {
		t.Errorf("the last whole reply is merged already: %+v", m)
	}
}

// TestMergeIntoWork: no note is written into a turn.
func TestMergeIntoWork(t *testing.T) {
	h, b, _ := watched(t)
	entered, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h.model.set(func(int, tidemark.Request) (tidemark.Message, error) {
		close(entered)
		<-release
		return tidemark.NewText(tidemark.Assistant, "done"), nil
	})
	go func() { defer close(ended); h.say("work") }()
	<-entered
	_, err := h.Merge(t.Context(), snapshots.MergeOptions{From: b.key})
	close(release)
	<-ended
	if !errors.Is(err, tidemark.ErrBusy) || strings.Contains(h.shows(), "Outcome of branch") {
		t.Errorf("a note came into a turn: %v", err)
	}
}

// TestMergeBehindMessage: a note is not written where a message came since its place was read, nor noted as written.
func TestMergeBehindMessage(t *testing.T) {
	h, b, db := watched(t)
	db.set("", writesMerge, func() { h.say("meanwhile") })
	if _, err := h.Merge(t.Context(), snapshots.MergeOptions{From: b.key}); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("a message came between: %v", err)
	}
	if n := h.count(`SELECT count(*) FROM merges LIMIT 1`); n != 0 {
		t.Errorf("%d outcomes count as merged", n)
	}
	if m := h.merge(b); m.Again {
		t.Errorf("the next: %+v", m)
	}
}

// TestMergeTwiceAtOnce: of two that merge the same at once, the second finds the note of the first.
func TestMergeTwiceAtOnce(t *testing.T) {
	h, b, db := watched(t)
	var first snapshots.Merged
	db.set(readsMerges, "", func() { first = h.merge(b) })
	second := h.merge(b)
	if first.Entry == "" || !second.Again || second.Entry != first.Entry {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if n := strings.Count(h.shows(), "Outcome of branch"); n != 1 {
		t.Errorf("%d notes", n)
	}
}

// TestTrimmedBranchOfThePast: a trimmed branch of a snapshot is of what was shown there, whatever the source hid since.
func TestTrimmedBranchOfThePast(t *testing.T) {
	d := worked(t)
	n := d.snap(snapshots.Options{Name: "before"})
	at, _ := d.branch(snapshots.BranchOptions{Snapshot: n.ID, Name: "at once", Trim: true})
	want, shown := at.shows(), d.shows()
	d.stop()
	d.strategies = []compaction.Strategy{compaction.Pointer{Tail: 1}}
	d.open()
	d.post(session.Input{Kind: session.InputCompact})
	if d.shows() == shown {
		t.Fatal("nothing was compacted: the test shows nothing")
	}
	since, _ := d.branch(snapshots.BranchOptions{Snapshot: n.ID, Name: "since", Trim: true})
	if got := since.shows(); got != want {
		t.Errorf("a branch that is made later shows %d bytes, one that was made at once %d", len(got), len(want))
	}
}
