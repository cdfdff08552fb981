package agent

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/memory"
)

// newTicking is an agent with a clock that a test sets.
func newTicking(t *testing.T, name string, db tidemark.DB, now *time.Time) *Agent {
	t.Helper()
	a, err := New(Config{Name: name, DB: db, Blobs: hosttest.Blobs(t), Runtime: ticking{hosttest.Runtime(t), now}, FlushEvery: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestNewFills: what a configuration leaves open is filled in, and what it says stays, however small.
func TestNewFills(t *testing.T) {
	for _, n := range []int{-1, 0, 1} {
		a, err := New(Config{DB: hosttest.DB(t), Blobs: hosttest.Blobs(t), Runtime: hosttest.Runtime(t), MaxRunning: n, FlushEvery: time.Duration(n), Budget: tidemark.Tokens(n)})
		if err != nil {
			t.Fatal(err)
		}
		running, every, budget := 1, time.Duration(1), tidemark.Tokens(1)
		if n <= 0 {
			running, every, budget = DefaultRunning, DefaultFlush, memory.DefaultBudget
		}
		if c := a.cfg; c.MaxRunning != running || c.FlushEvery != every || c.Budget != budget || c.Name != "main" || c.Zone != time.UTC || c.Sharing != memory.SharePeer || c.Logger == nil {
			t.Errorf("%d: %+v", n, c)
		}
	}
}

// TestClaims: an object is written once in so many seconds, whoever asks; a plan that lies further ahead than any pause is of a clock
// that was set back. What another file, or another agent, does keeps none.
func TestClaims(t *testing.T) {
	start := time.UnixMilli(1 << 41)
	now, db := start, hosttest.DB(t)
	a, other := newTicking(t, "main", db, &now), newTicking(t, "other", db, &now)
	for _, row := range []struct {
		of    *Agent
		path  string
		after time.Duration
		ok    bool
	}{
		{a, "p", 0, true}, {a, "p", 0, false}, {a, "q", 0, true}, {other, "p", 0, true},
		{a, "p", 1999 * time.Millisecond, false}, {a, "p", 2 * time.Second, true}, // now the next is at 4 s
		{other, "p", 2 * time.Second, true},
		{a, "p", 4*time.Second - clockSlack, false}, {a, "p", 4*time.Second - clockSlack - time.Millisecond, true},
	} {
		now = start.Add(row.after)
		if err := row.of.claim(t.Context(), row.path); (err == nil) != row.ok || err != nil && !errors.Is(err, tidemark.ErrConflict) {
			t.Errorf("%s of %s after %v: %v", row.path, row.of.cfg.Name, row.after, err)
		}
	}
}

// TestSettles: each failure of a file puts its next write off for twice as long, at most five minutes; what was written ends that. Others
// are not concerned.
func TestSettles(t *testing.T) {
	now, db := time.UnixMilli(1<<41), hosttest.DB(t)
	a, other := newTicking(t, "main", db, &now), newTicking(t, "other", db, &now)
	for _, c := range []struct {
		of   *Agent
		path string
	}{{a, "p"}, {a, "q"}, {other, "p"}} {
		if err := c.of.claim(t.Context(), c.path); err != nil {
			t.Fatal(err)
		}
	}
	told := func() (out string) {
		rows, err := db.Query(t.Context(), `SELECT agent, path, next, fails FROM agent_writes ORDER BY agent, path LIMIT 9`)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			out += fmt.Sprint(r.Text(0), " ", r.Text(1), " ", time.UnixMilli(r.Int(2)).Sub(now), " ", r.Int(3), "\n")
		}
		return out
	}
	const beside = "main q 2s 0\nother p 2s 0\n"
	for i, pause := range []string{"2s", "4s", "8s", "16s", "32s", "1m4s", "2m8s", "4m16s", "5m0s", "5m0s", "5m0s", "5m0s"} {
		if err := a.settle(t.Context(), "p", errors.New("down")); err != nil {
			t.Fatal(err)
		}
		if got, want := told(), fmt.Sprint("main p ", pause, " ", i+1, "\n", beside); got != want {
			t.Errorf("failure %d:\n%swant\n%s", i+1, got, want)
		}
	}
	if err := a.settle(t.Context(), "p", nil); err != nil {
		t.Fatal(err)
	}
	if got, want := told(), "main p 5m0s 0\n"+beside; got != want {
		t.Errorf("when it was written:\n%swant\n%s", got, want)
	}
}

// TestNextWrite: an agent wants to be woken for the earliest write that is allowed: now where nothing keeps it, or where the plan is of
// another clock; not at all where nothing waits. What waits for another agent is not its own.
func TestNextWrite(t *testing.T) {
	const day, peers = "memory/2026-11-21.md", "memory/peers/x/2026-11-21.md"
	for _, row := range []struct {
		name string
		sql  []string // with ? for a time, in ms from now
		at   []time.Duration
		want time.Duration // -1 for never
	}{
		{"nothing", nil, nil, -1},
		{"what is written", []string{`INSERT INTO agent_sections(agent, path, id, at, body, done) VALUES('main', '` + day + `', 'x', 1, '{}', 1)`}, nil, -1},
		{"another agent's", []string{`INSERT INTO agent_sections(agent, path, id, at, body) VALUES('other', '` + day + `', 'x', 1, '{}')`, `INSERT INTO agent_archives(agent, key, at, info) VALUES('other', 'k', 1, '{}')`}, nil, -1},
		{"a file", []string{`INSERT INTO agent_sections(agent, path, id, at, body) VALUES('main', '` + day + `', 'x', 1, '{}')`}, nil, 0},
		{"a file that rests", []string{`INSERT INTO agent_sections(agent, path, id, at, body) VALUES('main', '` + day + `', 'x', 1, '{}')`,
			`INSERT INTO agent_writes(agent, path, next) VALUES('main', 'sweep', 1), ('main', 'memory/2026-11-20.md', 1)`,
			`INSERT INTO agent_writes(agent, path, next) VALUES('main', '` + day + `', ?)`, `INSERT INTO agent_writes(agent, path, next) VALUES('other', '` + day + `', 1)`}, []time.Duration{5 * time.Second}, 5 * time.Second},
		{"one whose rest is over", []string{`INSERT INTO agent_sections(agent, path, id, at, body) VALUES('main', '` + day + `', 'x', 1, '{}')`,
			`INSERT INTO agent_writes(agent, path, next) VALUES('main', '` + day + `', ?)`}, []time.Duration{-time.Millisecond}, 0},
		{"one that rests as long as any", []string{`INSERT INTO agent_sections(agent, path, id, at, body) VALUES('main', '` + day + `', 'x', 1, '{}')`,
			`INSERT INTO agent_writes(agent, path, next) VALUES('main', '` + day + `', ?)`}, []time.Duration{clockSlack}, clockSlack},
		{"one that rests longer than any", []string{`INSERT INTO agent_sections(agent, path, id, at, body) VALUES('main', '` + day + `', 'x', 1, '{}')`,
			`INSERT INTO agent_writes(agent, path, next) VALUES('main', '` + day + `', ?)`}, []time.Duration{clockSlack + time.Millisecond}, 0},
		{"the earlier of two", []string{`INSERT INTO agent_sections(agent, path, id, at, body) VALUES('main', '` + day + `', 'x', 1, '{}'), ('main', '` + peers + `', 'x', 1, '{}')`,
			`INSERT INTO agent_writes(agent, path, next) VALUES('main', '` + day + `', ?)`, `INSERT INTO agent_writes(agent, path, next) VALUES('main', '` + peers + `', ?)`}, []time.Duration{9 * time.Second, 7 * time.Second}, 7 * time.Second},
		{"an archive", []string{`INSERT INTO agent_archives(agent, key, at, info) VALUES('main', 'k', 1, '{}')`, `INSERT INTO agent_writes(agent, path, next) VALUES('main', 'index', ?)`}, []time.Duration{3 * time.Second}, 3 * time.Second},
		{"an archive that is indexed", []string{`INSERT INTO agent_archives(agent, key, at, info, indexed) VALUES('main', 'k', 1, '{}', 1)`}, nil, -1},
	} {
		now := time.UnixMilli(1 << 41)
		a := newTicking(t, "main", hosttest.DB(t), &now)
		for _, sql := range row.sql {
			stmt := tidemark.Stmt{SQL: sql}
			for _, c := range sql {
				if c == '?' {
					stmt.Args, row.at = append(stmt.Args, now.Add(row.at[0]).UnixMilli()), row.at[1:]
				}
			}
			if err := a.cfg.DB.Tx(t.Context(), []tidemark.Stmt{stmt}); err != nil {
				t.Fatal(err)
			}
		}
		if at := a.next(t.Context()); at.IsZero() != (row.want < 0) || row.want >= 0 && !at.Equal(now.Add(row.want)) {
			t.Errorf("%s: in %v, want %v", row.name, at.Sub(now), row.want)
		}
	}
}
