package session_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// mortal is a database whose process dies at its n-th write, just before or just after it.
type mortal struct {
	tidemark.DB
	mu     sync.Mutex
	left   int  // writes until death
	after  bool // the write that kills is done
	dead   chan struct{}
	writes int
	counts func([]tidemark.Stmt) bool // which writes are counted; nil: all
}

var errKilled = fmt.Errorf("killed: %w", tidemark.ErrDead)

func (m *mortal) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	m.mu.Lock()
	if m.left > 0 && m.counts != nil && !m.counts(stmts) {
		m.mu.Unlock()
		return m.DB.Tx(ctx, stmts)
	}
	m.writes++
	m.left--
	left := m.left
	m.mu.Unlock()
	switch {
	case left < 0:
		return errKilled
	case left == 0:
		defer close(m.dead)
		if m.after {
			if err := m.DB.Tx(ctx, stmts); err != nil {
				return err
			}
		}
		return errKilled
	}
	return m.DB.Tx(ctx, stmts)
}

func (m *mortal) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	m.mu.Lock()
	gone := m.left <= 0
	m.mu.Unlock()
	if gone {
		return nil, errKilled
	}
	return m.DB.Query(ctx, sql, args...)
}

// scenario is a conversation with tools, a compaction, a command and a reset.
func scenario() []session.Input {
	var in []session.Input
	for i := range 9 {
		in = append(in, session.Input{ID: fmt.Sprint("in", i), Message: tidemark.NewText(tidemark.User, filler(i))})
	}
	in = append(in, session.Input{ID: "compact", Kind: session.InputCompact},
		session.Input{ID: "reset", Kind: session.InputReset, Text: "manual"},
		session.Input{ID: "last", Message: tidemark.NewText(tidemark.User, "after the reset")})
	return in
}

// scenarioModel calls tools now and then, with ids of its own.
func scenarioModel(n int, req tidemark.Request) (tidemark.Message, error) {
	last := req.Messages[len(req.Messages)-1]
	if asksSummary(req) || len(last.Results()) > 0 || !strings.Contains(last.PlainText(), "message 2") && !strings.Contains(last.PlainText(), "message 6") {
		return tidemark.Message{}, nil
	}
	return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("a", n), "look", nil), tidemark.ToolUse(fmt.Sprint("b", n), "send", nil)}}, nil
}

// killStep is how far apart the writes are that a process is killed at: each in `make fault`, each second natively,
// each sixth under js/wasm, where one takes ten times as long, and few of them with -short.
func killStep(short int) int {
	switch {
	case testing.Short():
		return short
	case runtime.GOOS == "js":
		return 6
	case os.Getenv("FAULT_KILLS") != "":
		return 1
	}
	return 4
}

// TestKillAtEveryWrite kills the process before and after each write of the scenario, begins a new
// life on the same database, plays the inputs again as a client would, and holds what must be
// true: each input is in the log exactly once and in order, no run is left active, calls have
// results, archives hold what left the view, the reset is whole.
func TestKillAtEveryWrite(t *testing.T) {
	h := newHarness(t, small)
	counter := &mortal{DB: h.db, left: 1 << 30, dead: make(chan struct{})}
	h.stop()
	h.db = counter
	h.key = "agent:main:local:dm:count"
	h.model.set(scenarioModel)
	h.open()
	for _, in := range scenario() {
		h.post(in)
	}
	total := counter.writes
	if total < 60 {
		t.Fatalf("the scenario makes only %d writes", total)
	}
	step := killStep(7)
	for n := 1; n <= total; n += step {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after=%v", n, after), func(t *testing.T) {
				t.Parallel()
				killAt(t, n, after)
			})
		}
	}
}

func killAt(t *testing.T, n int, after bool) {
	h := newHarness(t, small)
	real := h.db
	h.stop()
	h.key = tidemark.Key(fmt.Sprintf("agent:main:local:dm:kill%d", n))
	h.model.set(scenarioModel)
	doomed := &mortal{DB: real, left: n, after: after, dead: make(chan struct{})}
	h.db = doomed
	acknowledged := h.playUntilDeath(doomed)
	h.stop()
	h.db = real
	h.open() // the next life, which resumes by itself
	for _, in := range scenario() {
		if got := h.finish(in); strings.HasPrefix(got, "error") {
			t.Fatalf("input %s in the next life: %s", in.ID, got)
		}
	}
	h.checkWhole(acknowledged)
}

// playUntilDeath posts the scenario until the database dies; it returns the ids that were
// acknowledged.
func (h *harness) playUntilDeath(m *mortal) []string {
	life, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.t.Cleanup(stop)
	s, err := session.Open(life, session.Config{Rooms: finding, Key: h.key, DB: m, Blobs: h.blobs, Provider: h.model, Agent: h.agent, Runtime: h.rt,
		Settings: session.Settings{Model: "test", Window: small.Window, Reserve: small.Reserve, Keep: small.Keep}})
	if err != nil {
		return nil // killed while it opened
	}
	var acknowledged []string
	for _, in := range scenario() {
		sub, err := s.Subscribe()
		if err != nil {
			h.t.Fatal(err)
		}
		r, err := s.Post(h.t.Context(), in)
		if err != nil {
			sub.Close()
			break
		}
		acknowledged = append(acknowledged, in.ID)
		ended := false
		for !ended {
			select {
			case <-sub.Ready:
				for n, ok := sub.Next(); ok && !ended; n, ok = sub.Next() {
					ended = (n.Type == session.NoticeDone || n.Type == session.NoticeError) && slices.Contains(n.Inputs, r.ID)
				}
			case <-m.dead:
				ended = true
			}
		}
		sub.Close()
	}
	return acknowledged
}

// finish posts an input again, or waits for its turn if it is in work.
func (h *harness) finish(in session.Input) string {
	h.t.Helper()
	sub, err := h.Subscribe()
	if err != nil {
		h.t.Fatal(err)
	}
	defer sub.Close()
	r, err := h.Post(h.t.Context(), in)
	if err != nil {
		h.t.Fatal(err)
	}
	if r.State == "done" {
		return ""
	}
	return h.wait(sub, r.ID)
}

func (h *harness) checkWhole(acknowledged []string) {
	h.t.Helper()
	if busy, err := h.Busy(h.t.Context()); busy != "" || err != nil {
		h.t.Errorf("run %s is active, %v", busy, err)
	}
	var inputs []string
	logs := map[string][]tidemark.Message{}
	var order []string
	for e, err := range h.Reader.All(h.t.Context(), true) {
		if err != nil {
			h.t.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Origin.Input != "" {
			inputs = append(inputs, e.Origin.Input)
		}
		if logs[e.Log] == nil {
			order = append(order, e.Log)
		}
		logs[e.Log] = append(logs[e.Log], m)
	}
	var want []string
	for _, in := range scenario() {
		if in.Kind == "" {
			want = append(want, in.ID)
		}
	}
	if !slices.Equal(inputs, want) {
		h.t.Errorf("inputs in the log %q, want %q (acknowledged %q)", inputs, want, acknowledged)
	}
	if len(order) != 2 {
		h.t.Fatalf("%d sessions, want 2: the reset is not whole", len(order))
	}
	if all, err := h.Reader.Logs(h.t.Context()); err != nil || len(all) != 2 {
		h.t.Errorf("%d sessions with empty ones, want 2, %v: the reset was done again", len(all), err)
	}
	h.checkArchives(order[0], logs[order[0]])
	h.sent()
	if n := len(h.events("reset")); n != 1 {
		h.t.Errorf("%d reset events", n)
	}
}

// checkArchives holds that the whole file of the old session is its history, and its parts the
// beginning of it, each message once.
func (h *harness) checkArchives(old string, history []tidemark.Message) {
	h.t.Helper()
	var want, parts []string
	for _, m := range history {
		want = append(want, string(m.Role)+": "+m.PlainText())
	}
	whole := 0
	for _, key := range h.keys("agents/main/sessions/" + old) {
		if strings.Contains(key, "-part") {
			parts = append(parts, h.archived(key)...)
			continue
		}
		whole++
		if got := h.archived(key); !slices.Equal(got, want) {
			h.t.Errorf("%s holds %d messages, the history %d", key, len(got), len(want))
		}
	}
	if whole != 1 {
		h.t.Errorf("%d whole archives of %s", whole, old)
	}
	if len(parts) == 0 || !slices.Equal(parts, want[:len(parts)]) {
		h.t.Errorf("parts hold %d messages, which are not the first of the history", len(parts))
	}
}
