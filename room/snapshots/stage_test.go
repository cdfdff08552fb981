package snapshots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// left puts the first entries of an archive into a store as an import left them that broke off, and more behind them.
func (r *rig) left(log string, of tidemark.Key, lines []carriedEntry, more int) {
	r.Helper()
	r.tx(r.log.CreateStmt(host.Info{ID: log, Key: tidemark.Key(stagingPrefix + string(of)), Created: noon}))
	var all []tidemark.Entry
	for _, c := range lines {
		all = append(all, tidemark.Entry{ID: c.ID, Kind: c.Kind, At: time.UnixMilli(c.At), Origin: c.Origin, Call: c.Call, Chain: c.Chain, Payload: c.Payload})
	}
	for range more {
		all = append(all, tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(noon)), Kind: tidemark.KindEvent, At: noon, Payload: []byte(`{"type":"x"}`)})
	}
	for part := range slices.Chunk(all, 400) {
		stmts, err := r.log.AppendStmts(log, part...)
		if err != nil {
			r.Fatal(err)
		}
		r.tx(stmts...)
	}
	r.exec(`INSERT INTO due(key, kind, at) VALUES(?, 'import', 1) ON CONFLICT DO NOTHING`, string(of))
}

// staged tells of all logs whose they are and how many entries they have, and what is due.
func (r *rig) staged() string {
	r.Helper()
	return r.lines(`SELECT l.id || ' of ' || l.key || ': ' || (SELECT count(*) FROM entries WHERE log = l.id) FROM logs l WHERE l.id LIKE 'stage%' UNION ALL SELECT 'due ' || key FROM due ORDER BY 1 LIMIT 99`)
}

const aunts, yours tidemark.Key = "agent:main:aunt", "agent:main:local:dm:yours"

// TestImportGoesOn: an import goes on from what an earlier one left of the same conversation, here or in another session where
// nobody works, and leaves alone what others left.
func TestImportGoesOn(t *testing.T) {
	r, _, ground, roof := house(t)
	raw, low := r.export(roof.ID), r.export(ground.ID)
	_, _, lines := opened(t, raw)
	for _, tc := range []struct {
		name  string
		raw   []byte
		lines []carriedEntry
		more  int
		of    tidemark.Key // who left them
		want  string
	}{
		{"its own", raw, lines[:3], 0, there, "due agent:main:aunt\nstage1 of agent:main:local:dm:there: 3\nstage2 of import:agent:main:aunt: 5"},
		{"its own, which came further", low, lines[:3], 2, there, "due agent:main:aunt\nstage1 of agent:main:local:dm:there: 3\nstage2 of import:agent:main:aunt: 5"},
		{"another's", raw, lines[:5], 0, yours, "due agent:main:aunt\ndue agent:main:local:dm:yours\nstage1 of agent:main:local:dm:there: 5\nstage2 of import:agent:main:aunt: 5"},
	} {
		x := newRig(t).on(there)
		x.clock.now = noon.Add(time.Hour)
		x.left("stage1", tc.of, tc.lines, tc.more)
		x.left("stage2", aunts, nil, 5)
		x.exec(`INSERT INTO runs(id, key, state) VALUES('a', 'agent:main:aunt', 'calling'), ('y', ?, 'done'), ('z', 'agent:main:zoe', 'tools')`, string(yours))
		if _, err := x.imports(tc.raw); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := x.staged(); got != tc.want {
			t.Errorf("%s: there are\n%s\nwant\n%s", tc.name, got, tc.want)
		}
		if got := x.lines(`SELECT count(*) FROM entries WHERE id = ? LIMIT 2`, string(lines[0].ID)); got != "1" {
			t.Errorf("%s: the first entry is there %s times", tc.name, got)
		}
	}
	for state, busy := range map[string]bool{"calling": true, "tools": true, "failed": false} {
		x := newRig(t).on(there)
		x.left("stage1", yours, lines[:3], 0)
		x.exec(`INSERT INTO runs(id, key, state) VALUES('y', ?, ?)`, string(yours), state)
		if _, err := x.imports(raw); (err != nil) != busy || busy && (!errors.Is(err, tidemark.ErrBusy) || !strings.Contains(err.Error(), "is read into "+string(yours)+", or")) {
			t.Errorf("beside a turn that is %s: %v", state, err)
		}
		if got := strings.Contains(x.staged(), "stage1 of import:"+string(yours)+": 3"); got != busy {
			t.Errorf("beside a turn that is %s there are\n%s", state, x.staged())
		}
	}
}

// TestImportLeaves: what an import that breaks off has read is looked after, and what it left elsewhere keeps it looked after.
func TestImportLeaves(t *testing.T) {
	r, _, _, roof := house(t)
	raw := r.export(roof.ID)
	x := newRig(t).on(there)
	x.unfit = tidemark.ErrUnavailable
	if _, err := x.imports(raw); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Fatal(err)
	}
	if got := x.lines(`SELECT key || ' ' || kind || ' ' || at FROM due LIMIT 9`); got != fmt.Sprintf("%s import %d", there, noon.Add(stagingKept).UnixMilli()) {
		t.Errorf("due: %s", got)
	}
	x.left("stage9", there, nil, 1)
	x.unfit = nil
	if _, err := x.imports(raw); err != nil {
		t.Fatal(err)
	}
	if got := x.staged(); got != "due agent:main:local:dm:there\nstage9 of import:agent:main:local:dm:there: 1" {
		t.Errorf("there are\n%s", got)
	}
}

// TestImportForgets: what an import left goes when nobody tried again, some at a time, and nothing else goes with it; while a turn
// is in work it waits.
func TestImportForgets(t *testing.T) {
	x := newRig(t).on(there)
	x.talks("one", "two")
	x.left("stage1", there, nil, 700)
	x.left("stage2", there, nil, 500)
	x.left("stage3", aunts, nil, 3)
	x.exec(`INSERT INTO due(key, kind, at) VALUES(?, 'other', 1)`, string(there))
	x.exec(`INSERT INTO runs(id, key, state) VALUES('a', 'agent:main:aunt', 'calling'), ('d', ?, 'done'), ('z', 'agent:main:zoe', 'tools')`, string(there))
	for _, state := range []string{"calling", "tools"} {
		x.exec(`INSERT INTO runs(id, key, state) VALUES('r', ?, ?)`, string(there), state)
		before := x.staged()
		if err := x.carry.Wake(t.Context()); err != nil || x.staged() != before {
			t.Errorf("while a turn is %s: %v, there are\n%s", state, err, x.staged())
		}
		if got := x.lines(`SELECT at FROM due WHERE key = ? AND kind = 'import' LIMIT 9`, string(there)); got != fmt.Sprint(x.clock.now.Add(stagingKept).UnixMilli()) {
			t.Errorf("while a turn is %s: looked at again at %s", state, got)
		}
		x.exec(`DELETE FROM runs WHERE id = 'r'`)
	}
	if err := x.carry.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := x.staged(); got != "due agent:main:aunt\ndue agent:main:local:dm:there\nstage3 of import:agent:main:aunt: 3" {
		t.Errorf("there are\n%s", got)
	}
	if got := x.lines(`SELECT (SELECT kind FROM due WHERE key = ?) || ' ' || count(*) FROM entries WHERE kind = 'message' LIMIT 1`, string(there)); got != "other 2" {
		t.Errorf("what is due still, and messages: %s", got)
	}
	if want := []time.Duration{host.YieldRest, host.YieldRest, host.YieldRest}; !slices.Equal(x.clock.slept, want) {
		t.Errorf("others had a turn %v", x.clock.slept)
	}
	if x.carry.Wakes() != "import" {
		t.Errorf("it is woken by %s", x.carry.Wakes())
	}
}

// TestImportForgetsLate: the newest goes first, so that what is left by a life that ends meanwhile is a beginning still; a store
// that fails is told.
func TestImportForgetsLate(t *testing.T) {
	x := newRig(t).on(there)
	x.left("stage1", there, nil, 700)
	x.store.part, x.store.refuse = "DELETE FROM logs", errDown
	if err := x.carry.Wake(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("%v", err)
	}
	x.store.part = ""
	x.left("stage3", there, nil, 700)
	first := x.lines(`SELECT min(seq) FROM entries WHERE log = 'stage3' LIMIT 1`)
	x.store.down = 3 // behind a look and what it removes
	if err := x.carry.Wake(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("%v", err)
	}
	if got := x.lines(`SELECT min(seq) || ' ' || count(*) FROM entries LIMIT 1`); got != first+" 200" {
		t.Errorf("left are the first and how many: %s, want %s 200", got, first)
	}
}
