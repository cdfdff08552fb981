package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/schedule"
)

// TestPageLimits: a page has as many as are asked for, a hundred where nobody says, and never more than a thousand.
func TestPageLimits(t *testing.T) {
	w := newWorld(t)
	const n = 1105
	for i := range n { // some at the same time
		if err := w.Report(t.Context(), tidemark.SessionInfo{Key: tidemark.Key(fmt.Sprintf("agent:main:local:dm:k%04d", i)), UpdatedAt: noon.Add(time.Duration(i/3) * time.Second)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int]int{0: 100, -1: 100, 1: 1, 7: 7, 100: 100, 1000: 1000, 5000: 1000} {
		page, next, err := w.Sessions(t.Context(), "", limit)
		if err != nil || len(page) != want || next == "" {
			t.Errorf("limit %d: %d sessions, next %q, %v", limit, len(page), next, err)
		}
	}
	seen := map[tidemark.Key]bool{}
	for cursor := ""; ; {
		page, next, err := w.Sessions(t.Context(), cursor, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page {
			if seen[s.Key] {
				t.Errorf("%s twice", s.Key)
			}
			seen[s.Key] = true
		}
		if cursor = next; next == "" {
			break
		}
	}
	if len(seen) != n {
		t.Errorf("%d sessions of %d", len(seen), n)
	}
}

// TestUnreadFiles: a file that is too large costs a search nothing but itself; one that cannot be read costs a prompt, as does a
// node that cannot be.
func TestUnreadFiles(t *testing.T) {
	w := newWorld(t)
	w.remember(scope(t, owners), "x1", "Ann keeps a zebra")
	write(t, w.blobs, "MEMORY.md", strings.Repeat("- a line of nothing\n", 600_000))
	if got := w.search(owners, "zebra"); !strings.Contains(got, "zebra") {
		t.Errorf("beside a large file: %q", got)
	}
	w.blobs.Fail = func(op, key string) error {
		if op == "get" && strings.HasSuffix(key, "SOUL.md") {
			return tidemark.ErrUnavailable
		}
		return nil
	}
	if _, err := w.Prompt(t.Context(), scope(t, owners), noon); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("a prompt without its soul: %v", err)
	}
	if err := w.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO agent_nodes(agent, id, root, told, parent, created, node) VALUES('main', 'snap-9', 'agent:main:main', 1, '', 1, '{')`}}); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Snapshot(t.Context(), "snap-9"); err == nil || !strings.HasPrefix(err.Error(), "read snapshots: ") {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestScheduleEdges: what a schedule may have, at its bounds.
func TestScheduleEdges(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		s  agent.Schedule
		ok bool
	}{
		"a name": {agent.Schedule{Name: long(100)}, true}, "a longer one": {agent.Schedule{Name: long(101)}, false},
		"a model": {agent.Schedule{Model: long(100)}, true}, "a longer model": {agent.Schedule{Model: long(101)}, false},
		"a prompt": {agent.Schedule{Prompt: long(8 << 10)}, true}, "a longer prompt": {agent.Schedule{Prompt: long(8<<10 + 1)}, false},
		"nothing to spend": {agent.Schedule{Budget: -1}, false}, "no rounds": {agent.Schedule{Rounds: -1}, false},
		"a budget with main": {agent.Schedule{Session: "main", Budget: 1}, false}, "rounds with main": {agent.Schedule{Session: "main", Rounds: 1}, false},
		"tools with main": {agent.Schedule{Session: "main", Tools: []string{"*"}}, false}, "a model with main": {agent.Schedule{Session: "main", Model: "m"}, false}, "main": {agent.Schedule{Session: "main"}, true},
	} {
		p := newPlanner(t)
		c.s.Spec = schedule.Spec{Every: "24h"}
		if c.s.Prompt == "" {
			c.s.Prompt = "Look around."
		}
		if _, err := p.AddSchedule(t.Context(), c.s); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLedgerPages: the ledger is each row once, by the page too.
func TestLedgerPages(t *testing.T) {
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Reconcile, c.Model = true, lastWord() })
	const n = 7
	for i := range n + 1 {
		w.remember(scope(t, owners), fmt.Sprint("x", i), fmt.Sprintf("The staging port is 80%02d", i))
		w.consolidate()
	}
	for _, limit := range []int{1, 2, 3, 7, 8} {
		var got []int64
		for cursor := ""; ; {
			page, next, err := w.Ledger(t.Context(), cursor, limit)
			if err != nil || len(page) > limit {
				t.Fatalf("%d rows, %v", len(page), err)
			}
			for _, r := range page {
				got = append(got, r.ID)
			}
			if cursor = next; next == "" {
				break
			}
		}
		if len(got) != n || !slices.IsSortedFunc(got, func(a, b int64) int { return int(b - a) }) {
			t.Errorf("by %d: rows %v", limit, got)
		}
	}
}

// TestDoneIsNoPlan: a schedule that is over is not listed by the tool.
func TestDoneIsNoPlan(t *testing.T) {
	p := newPlanner(t)
	p.add(agent.Schedule{Spec: schedule.Spec{At: "in 5m"}, Prompt: "Once."})
	p.add(agent.Schedule{Spec: schedule.Spec{Every: "24h"}, Prompt: "Daily."})
	p.clock.move(5 * time.Minute)
	p.wake()
	p.end(tidemark.Outcome{Text: "Fine."})
	if text, ok := p.call(scope(t, owners), agent.ToolSchedule, map[string]any{"do": "list"}); !ok || strings.Contains(text, "Once") || !strings.Contains(text, "Daily") {
		t.Error(text)
	}
}

// TestNewestFacts: the digest is made of the newest 20,000 facts, and says how many of them stand in detail files.
func TestNewestFacts(t *testing.T) {
	const most = 20_000
	w := newWorld(t)
	w.configure(func(c *agent.Config) { c.Digest = true })
	w.remember(scope(t, owners), "x", "The buoy is the oldest of all")
	w.consolidate() // makes the tables
	if err := w.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ?)
		INSERT INTO agent_facts(agent, extraction, n, text, fold, sources, path) SELECT agent, extraction, i + 1, 'Boat ' || i, 'boat ' || i, '[]', path FROM agent_facts, c WHERE agent = 'main'`, Args: []any{most - 1}}}); err != nil {
		t.Fatal(err)
	}
	w.remember(scope(t, owners), "y", "The pier is the newest of all")
	c := w.consolidate()
	d, err := w.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	demoted, oldest := 0, strings.Contains(d.Text, "buoy")
	for _, f := range d.Details {
		demoted, oldest = demoted+f.Lines, oldest || strings.Contains(f.Text, "buoy")
	}
	if c.Entries != most || c.Demoted != demoted || d.Shown+demoted != most || d.Shown == 0 || demoted == 0 || oldest {
		t.Errorf("%d entries, %d in details, of %d shown and %d in details; the oldest is there: %v", c.Entries, c.Demoted, d.Shown, demoted, oldest)
	}
}
