package session_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/session"
)

// asking counts what a database is asked, by statement.
type asking struct {
	tidemark.DB
	mu    sync.Mutex // guards the following
	count map[string]int
}

func (a *asking) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	a.note(sql)
	return a.DB.Query(ctx, sql, args...)
}

func (a *asking) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	for _, s := range stmts {
		a.note(s.SQL)
	}
	return a.DB.Tx(ctx, stmts)
}

// note counts a statement on the log or on what is kept of episodes. What is due and what is reported behind a turn falls
// into it or not.
func (a *asking) note(sql string) {
	if !strings.Contains(sql, "entries") && !strings.Contains(sql, "marked") {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count[sql]++
}

func (a *asking) taken() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.count
	a.count = map[string]int{}
	return out
}

// TestEpisodesCost: a turn below the budget in which nothing is marked asks the database nothing that it would not be
// asked without the strategy; one that marks asks a few things more, however long the log is.
func TestEpisodesCost(t *testing.T) {
	turn := func(old int, list []compaction.Strategy, line string) map[string]int {
		d := newScribe(t, session.Settings{Window: 1_000_000}, 500_000)
		if _, err := d.Import(t.Context(), imports(markedLog(t, 1, old, false)), nil); err != nil {
			t.Fatal(err)
		}
		d.stop()
		a := &asking{DB: d.db, count: map[string]int{}}
		d.db, d.strategies = a, list
		d.open()
		d.work("look 5")
		d.work(`{"action":"end"} | look 5`) // it reads the log
		var least map[string]int
		for range 6 { // what is reported behind a turn may fall into the next
			a.taken()
			d.work(line)
			c := a.taken()
			for sql, n := range c {
				if least != nil {
					c[sql] = min(n, least[sql])
				}
			}
			least = c
		}
		maps.DeleteFunc(least, func(_ string, n int) bool { return n == 0 })
		return least
	}
	with := []compaction.Strategy{&compaction.Episodes{Budget: episodes.Budget{Tokens: 500_000}}, compaction.Summary{}}
	plain, without := turn(4, with, "look 5 | look 5"), turn(4, with[1:], "look 5 | look 5")
	for sql, n := range plain {
		if n > without[sql] {
			t.Errorf("%d times, and %d without: %s", n, without[sql], sql)
		}
	}
	late, marks := turn(60, with, "look 5 | look 5"), turn(60, with, `look 5 | "start"`)
	more := 0
	for sql, n := range marks {
		more += max(n-late[sql], 0)
	}
	if more == 0 || more > 10 {
		t.Errorf("a turn that marks asks %d things more: %v", more, marks)
	}
}
