package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
)

// counted marks the context of the queries that count.
type counted struct{}

// beside is a database beside which something happens before a query.
type beside struct {
	tidemark.DB
	mu   sync.Mutex
	left int // queries until then
	act  func()
}

func (m *beside) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	m.mu.Lock()
	counts := ctx.Value(counted{}) != nil
	if counts {
		m.left--
	}
	now := counts && m.left == 0
	m.mu.Unlock()
	if now {
		m.act()
	}
	return m.DB.Query(ctx, sql, args...)
}

// TestSnapshotBesideTurn: whatever a turn does between two looks at the log, a snapshot never ends between a call and its
// result.
func TestSnapshotBesideTurn(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 2_000_000})
	h.model.set(func(n int, req tidemark.Request) (tidemark.Message, error) {
		last := req.Messages[len(req.Messages)-1]
		if len(last.Results()) == 0 && strings.Contains(last.PlainText(), "look") {
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("c", n), "look", nil)}}, nil
		}
		return tidemark.Message{}, nil
	})
	entered, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h.agent.call = func(b tidemark.Block) tidemark.Block {
		entered <- struct{}{}
		<-release
		return tidemark.ToolResult(b.ID, "seen", false)
	}
	begin := func() {
		go func() { h.say("now look"); ended <- struct{}{} }()
		<-entered
	}
	end := func() { release <- struct{}{}; <-ended }
	h.stop()
	m := &beside{DB: h.db, act: func() {}}
	h.db = m
	h.open()
	h.say("hello")
	const looks = 12 // that a snapshot takes at most until it has its place
	nothing := func() {}
	for name, tc := range map[string]struct{ before, within, after func() }{
		"it comes to a call": {nothing, begin, end},
		"it begins and ends": {nothing, func() { begin(); end() }, nothing},
		"it ends":            {begin, end, nothing},
	} {
		for k, met := 1, true; met && k <= looks; k++ {
			met = false
			tc.before()
			m.mu.Lock()
			m.left, m.act = k, func() { met = true; tc.within() }
			m.mu.Unlock()
			n, err := h.Snapshot(context.WithValue(t.Context(), counted{}, true), snapshots.Options{Name: fmt.Sprint("s", k)})
			if err != nil {
				t.Fatalf("%s at query %d: %v", name, k, err)
			}
			m.mu.Lock()
			m.left = 0
			m.mu.Unlock()
			if !met {
				tc.within()
			}
			tc.after()
			b, _ := h.branch(snapshots.BranchOptions{Snapshot: n.ID})
			var last tidemark.Message
			for e, err := range b.Reader.All(t.Context(), false) {
				if err == nil {
					last, err = e.Message()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if len(last.Calls()) > 0 {
				t.Errorf("%s at query %d: it ends with a call", name, k)
			}
			b.stop()
		}
	}
}

// TestRemoveBesideBranch: a snapshot that is removed while a branch of it is made has no branch, or stays.
func TestRemoveBesideBranch(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 2_000_000})
	h.stop()
	m := &beside{DB: h.db, act: func() {}}
	h.db = m
	h.open()
	h.say("hello")
	const looks = 40 // that a branch takes at most
	met, gone, stayed := true, 0, 0
	for k := 1; met && k <= looks; k++ {
		met = false
		n := h.snap(snapshots.Options{Name: fmt.Sprint("s", k)})
		var removed error
		m.mu.Lock()
		m.left, m.act = k, func() { met = true; _, removed = h.RemoveSnapshot(t.Context(), n.ID) }
		m.mu.Unlock()
		o := snapshots.BranchOptions{Snapshot: n.ID, Trim: k%2 == 0}
		b, err := h.Branch(context.WithValue(t.Context(), counted{}, true), o)
		m.mu.Lock()
		m.left = 0
		m.mu.Unlock()
		_, missing := h.SnapshotNode(t.Context(), n.ID)
		switch {
		case !met:
		case removed == nil:
			gone++
			if !errors.Is(err, tidemark.ErrNotFound) || !errors.Is(missing, tidemark.ErrNotFound) {
				t.Errorf("removed before query %d: branch %s, %v; asked for: %v", k, b.Key, err, missing)
			}
		default:
			stayed++
			if err != nil || missing != nil || !errors.Is(removed, tidemark.ErrConflict) {
				t.Errorf("kept at query %d: %v; branch %v, asked for: %v", k, removed, err, missing)
			}
		}
	}
	if met || gone < 3 {
		t.Errorf("removed %d times, kept %d times, still met %v", gone, stayed, met)
	}
}
