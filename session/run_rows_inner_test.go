package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
)

// hooked is a database on which something happens just before the next write, and which counts them.
type hooked struct {
	tidemark.DB
	before func()
	writes int
}

func (h *hooked) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	h.writes++
	if f := h.before; f != nil {
		h.before = nil
		f()
	}
	return h.DB.Tx(ctx, stmts)
}

// twin makes a run of another conversation that stands as one of this stands.
func (s *Session) twin(t *testing.T, r *run) {
	t.Helper()
	s.does(t, `INSERT INTO runs(id, key, log, owner, state, started, updated, spent) SELECT 'a-twin', 'agent:main:twin', log, owner, state, 1, 1, 5000 FROM runs WHERE key = ? AND id = ?`, string(s.Key), r.ID)
}

const runRow = `SELECT state, updated, round, attempt, error FROM runs WHERE key = ? AND id = 'r' LIMIT 1`

// TestFence: a run writes only while it has its owner, its state, its log and its mark, and nobody else's row is moved on.
func TestFence(t *testing.T) {
	for _, c := range []struct {
		name string
		to   string // what became of its row meanwhile
		want string
	}{
		{"nothing", `error = error`, ""},
		{"another life has it", `owner = '000000000009/x'`, "conflict"},
		{"it is at its tools", `state = 'tools'`, "conflict"},
		{"it ended", `state = 'done'`, "conflict"},
		{"it moved to another log", `log = 'moved'`, "conflict"},
		{"it was stopped", `error = 'stop:""'`, "conflict"},
	} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateCalling)
		s.twin(t, r)
		r.Round, r.Attempt = 3, 2
		s.does(t, `UPDATE runs SET `+c.to+` WHERE key = ? AND id = 'r'`, string(s.Key))
		err := s.step(t.Context(), r, stateTools, tidemark.Stmt{SQL: `UPDATE heads SET title = 'written' WHERE key = ?`, Args: []any{string(s.Key)}})
		title := s.reads(t, `SELECT title FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
		if c.want != "" {
			if !errors.Is(err, tidemark.ErrConflict) || title != "" || r.State != stateCalling {
				t.Errorf("%s: %v, wrote %q, it is at %s", c.name, err, title, r.State)
			}
			continue
		}
		if got := s.reads(t, runRow, string(s.Key)); err != nil || title != "written" || r.State != stateTools || got != "tools 1700000000000 3 2 " {
			t.Errorf("%s: %v, wrote %q, its row is %q", c.name, err, title, got)
		}
		r.mark = "stop:x"
		s.does(t, `UPDATE runs SET error = ? WHERE key = ? AND id = 'r'`, r.mark, string(s.Key))
		if err := s.step(t.Context(), r, stateCalling); err != nil {
			t.Errorf("it knows of its mark: %v", err)
		}
		if got := s.reads(t, `SELECT state, updated FROM runs WHERE id = 'a-twin' LIMIT 1`); got != "calling 1" {
			t.Errorf("the twin is %q", got)
		}
	}
}

// TestLastWrite: what ends with a command ends the command and the run; without one the run goes on.
func TestLastWrite(t *testing.T) {
	for _, command := range []bool{false, true} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateCalling)
		s.puts(t, s.Key, "c", InputCompact, "new", "")
		s.puts(t, s.Key, "d", InputCompact, "new", "")
		want := "calling c new , d new "
		if command {
			q, err := s.waiting(t.Context())
			if err != nil || len(q) != 2 {
				t.Fatal(q, err)
			}
			r.command, want = &q[0], "done c done r, d new "
		}
		if err := s.last(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got := r.State + " " + s.reads(t, `SELECT id, state, run FROM inputs WHERE key = ? ORDER BY n LIMIT 9`, string(s.Key)); got != want {
			t.Errorf("with a command %v: %q", command, got)
		}
		if due := s.reads(t, `SELECT kind, at FROM due WHERE key = ? LIMIT 9`, string(s.Key)); due != map[bool]string{true: "outbox 1700000000000"}[command] {
			t.Errorf("with a command %v due is %q", command, due)
		}
	}
}

// TestInputsOfARun: only what a run has taken up is answered with it, in the order in which it came; what asks for nothing has
// nobody's rights.
func TestInputsOfARun(t *testing.T) {
	s, _ := plain(t, Config{})
	r := s.begun(t, "r", stateCalling)
	for _, in := range []struct{ id, state, run, origin string }{{"b", "taken", "r", `{"peer":"ann"}`}, {"a", "taken", "r", `{"quiet":true}`}, {"c", "taken", "r2", `{}`}, {"d", "new", "r", `{"peer":"bob"}`}, {"e", "new", "", `{}`}} {
		s.puts(t, s.Key, in.id, InputMessage, in.state, in.run)
		s.does(t, `UPDATE inputs SET origin = ? WHERE key = ? AND id = ?`, in.origin, string(s.Key), in.id)
	}
	ids, origins, err := s.inputsOf(t.Context(), "r")
	if err != nil || !slices.Equal(ids, []string{"b", "a", "d"}) || len(origins) != 2 || origins[0].Peer != "ann" || origins[1].Peer != "bob" {
		t.Errorf("%q of %+v, %v", ids, origins, err)
	}
	if err := s.DB.Tx(t.Context(), []tidemark.Stmt{doneStmt(r)}); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT id, state FROM inputs WHERE key = ? ORDER BY id LIMIT 9`, string(s.Key)); got != "a done, b done, c taken, d new, e new" {
		t.Errorf("they are %q", got)
	}
	s.does(t, `UPDATE inputs SET origin = '{' WHERE key = ? AND id = 'b'`, string(s.Key))
	if _, _, err := s.inputsOf(t.Context(), "r"); err == nil || !strings.Contains(err.Error(), "read input b") {
		t.Errorf("an input that cannot be read: %v", err)
	}
}

// TestTakeOver: a life takes up a run that an earlier one left, as it stands, and none that ended, that a later life has, or
// that somebody took or moved on at the same moment.
func TestTakeOver(t *testing.T) {
	const row = ` WHERE key = ? AND id = 'r'`
	for _, c := range []struct {
		name, to, then string
		taken          bool
	}{
		{"of an earlier life", `state = 'tools'`, "", true},
		{"of this life", `state = 'calling', owner = '000000000001/x'`, "", true},
		{"done", `state = 'done'`, "", false},
		{"failed", `state = 'failed'`, "", false},
		{"of a later life", `owner = '000000000002/x'`, "", false},
		{"another takes it", `state = 'tools'`, `owner = '000000000000/y'`, false},
		{"it moves on", `state = 'tools'`, `state = 'calling'`, false},
	} {
		s, _ := plain(t, Config{})
		s.runs(t, "r", s.current(t), stateCalling, 1)
		s.does(t, `UPDATE runs SET attempt = 2, round = 5, started = 77, owner = '000000000000/x', error = 'stop:"ann"', `+c.to+row, string(s.Key))
		s.twin(t, &run{ID: "r"})
		s.puts(t, s.Key, "a", InputMessage, "taken", "r")
		s.says(t, s.current(t), "A1", tidemark.NewText(tidemark.Assistant, "before"), tidemark.Origin{}, 1)
		h := &hooked{DB: s.DB}
		if c.then != "" {
			h.before = func() { s.does(t, `UPDATE runs SET `+c.then+row, string(s.Key)) }
		}
		s.DB = h
		r, err := s.takeOver(t.Context(), "r")
		if !c.taken {
			if !errors.Is(err, tidemark.ErrConflict) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.ID != "r" || r.Log != s.current(t) || r.Attempt != 2 || r.Round != 5 || r.Started.UnixMilli() != 77 || r.mark != `stop:"ann"` || !slices.Equal(r.took, []string{"a"}) || len(r.origins) != 1 ||
			!strings.HasPrefix(r.owner, "000000000001/") || s.reads(t, `SELECT owner, state FROM runs WHERE key = ? AND id = 'r' LIMIT 1`, string(s.Key)) != r.owner+" "+r.State {
			t.Errorf("%s: %+v", c.name, r)
		}
		if sub, err := s.Subscribe(); err != nil || sub.Reply != "A1" {
			t.Errorf("who listens is told of the reply %v, %v", sub.Reply, err)
		}
	}
	s, _ := plain(t, Config{})
	if _, err := s.takeOver(t.Context(), "aunt"); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("a run that is not there: %v", err)
	}
}

// TestBeginRun: a run begins for what waits in its conversation and for nothing else, once; without it nothing is written.
func TestBeginRun(t *testing.T) {
	s, rt := plain(t, Config{})
	h := &hooked{DB: s.DB}
	s.DB = h
	log := s.current(t)
	s.puts(t, s.Key, "d", InputMessage, "done", "")
	h.writes = 0
	if _, err := s.begin(t.Context()); !errors.Is(err, tidemark.ErrConflict) || h.writes != 0 {
		t.Errorf("nothing waits: %v after %d writes", err, h.writes)
	}
	s.puts(t, s.Key, "a", InputMessage, "new", "")
	h.before = func() { s.does(t, `UPDATE inputs SET state = 'done' WHERE key = ? AND id = 'a'`, string(s.Key)) }
	if _, err := s.begin(t.Context()); !errors.Is(err, tidemark.ErrConflict) || s.Working() {
		t.Errorf("it was taken back at the same moment: %v, works %v", err, s.Working())
	}
	s.does(t, `UPDATE inputs SET state = 'new' WHERE key = ? AND id = 'a'`, string(s.Key))
	s.does(t, `INSERT INTO heads(key, log, created, active) VALUES('agent:main:twin', ?, 1, 1)`, log)
	r, err := s.begin(t.Context())
	if err != nil || r.Log != log || r.State != stateCalling || !r.Started.Equal(rt.now) || !s.Working() || s.claim(r.ID) {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := s.reads(t, `SELECT id, log, owner, state, attempt, round, started, updated FROM runs WHERE key = ? LIMIT 9`, string(s.Key)); got != fmt.Sprintf("%s %s %s calling 0 0 1700000000000 1700000000000", r.ID, log, r.owner) {
		t.Errorf("its row is %s", got)
	}
	if got := s.reads(t, `SELECT kind, at FROM due WHERE key = ? LIMIT 9`, string(s.Key)); got != "run 1700000060000" {
		t.Errorf("due is %s", got)
	}
	if id, err := s.Busy(t.Context()); id != r.ID || err != nil {
		t.Errorf("busy with %q, %v", id, err)
	}
	if _, err := s.begin(t.Context()); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("a second: %v", err)
	}
	s.release(r.ID)
	if s.Working() || !s.Idle() {
		t.Error("it works though its run is let go of")
	}
	sub, err := s.Subscribe()
	if err != nil || s.Idle() {
		t.Errorf("it is quiet though somebody listens, %v", err)
	}
	if sub.Close(); !s.Idle() {
		t.Error("it is not quiet though nobody listens")
	}
}

// TestNotBusyBesideOthers: a conversation with nothing in work begins nothing, whatever others have in work.
func TestNotBusyBesideOthers(t *testing.T) {
	s, rt := plain(t, Config{})
	if id, err := s.Busy(t.Context()); id != "" || err != nil {
		t.Errorf("busy with %q, %v", id, err)
	}
	if err := s.resume(t.Context()); err != nil || len(rt.later) != 1 {
		t.Fatalf("%v, %d are to run", err, len(rt.later))
	}
	rt.later[0]()
	if got := s.reads(t, `SELECT count(*) FROM runs WHERE key = ? LIMIT 1`, string(s.Key)); got != "0" || s.Working() {
		t.Errorf("%s runs, works %v", got, s.Working())
	}
	if run, err := s.inWork(t.Context()); run != "" || err != nil {
		t.Errorf("%q can be stopped, %v", run, err)
	}
	s.puts(t, s.Key, "d", InputMessage, "done", "r0")
	s.puts(t, s.Key, "e", InputMessage, "taken", "r1")
	if run, err := s.inWork(t.Context()); run != "r1" || err != nil {
		t.Errorf("%q can be stopped, %v", run, err)
	}
	s.active = "r2"
	if run, err := s.inWork(t.Context()); run != "r2" || err != nil {
		t.Errorf("%q can be stopped, %v", run, err)
	}
}

// TestLives: each life of a session has a number of its own, and its owners sort behind those of earlier ones.
func TestLives(t *testing.T) {
	first, _ := plain(t, Config{})
	later, err := Open(t.Context(), first.Config)
	if err != nil {
		t.Fatal(err)
	}
	if first.number != 1 || later.number != 2 || !strings.HasPrefix(first.owner(), "000000000001/") || !strings.HasPrefix(later.owner(), "000000000002/") {
		t.Errorf("%d %q, %d %q", first.number, first.owner(), later.number, later.owner())
	}
	if !(first.owner() < first.ownerBound() && first.ownerBound() < later.owner() && later.owner() < later.ownerBound()) {
		t.Errorf("%q, %q, %q", first.ownerBound(), later.owner(), later.ownerBound())
	}
	for key, want := range map[tidemark.Key]bool{"agent:main:main": true, "agent:main:aunt": true, "agent:main:none": false} {
		if there, err := Exists(t.Context(), first.DB, key); there != want || err != nil {
			t.Errorf("%s is there: %v, %v", key, there, err)
		}
	}
	first.does(t, `INSERT INTO heads(key, log, created, active, lives) VALUES('agent:main:twin', 'twin-log', 1, 1, 2)`)
	for _, c := range []struct {
		s    *Session
		want bool
	}{{first, false}, {later, true}} {
		if err := first.DB.Tx(t.Context(), []tidemark.Stmt{c.s.ports().Held()}); (err == nil) != c.want {
			t.Errorf("life %d holds the session: %v", c.s.number, err)
		}
	}
}

// TestMarkCall: how far a call is, is written while its run has it. What a call has done is kept of a run that was stopped; no
// other call is moved.
func TestMarkCall(t *testing.T) {
	for _, c := range []struct {
		name, to, state string
		kept            bool
	}{
		{"begins", `error = ''`, callStarted, true},
		{"is done", `error = ''`, callDone, true},
		{"begins in a run that was stopped", `error = 'stop:""'`, callStarted, false},
		{"is done in a run that was stopped", `error = 'stop:""'`, callDone, true},
		{"is done, and another life has the run", `owner = '000000000009/x'`, callDone, false},
		{"is done, and the run has ended", `state = 'failed'`, callDone, false},
		{"is done, and the run has moved", `log = 'moved'`, callDone, false},
	} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateTools)
		s.twin(t, r)
		r.Round = 1
		for _, other := range []struct {
			run      string
			round, n int
		}{{"r", 1, 1}, {"r", 0, 1}, {"r", 1, 0}, {"r2", 1, 1}} {
			s.does(t, `INSERT INTO calls(run, round, n, id, call, idempotent, state) VALUES(?, ?, ?, 'c', '{}', 0, 'registered')`, other.run, other.round, other.n)
		}
		s.does(t, `UPDATE runs SET `+c.to+` WHERE key = ? AND id = 'r'`, string(s.Key))
		err := s.mark(t.Context(), r, call{N: 1, ID: "c"}, c.state, "what it brought")
		want := "registered , registered , registered , registered "
		if c.kept {
			want = "registered , registered , " + c.state + " what it brought, registered "
		}
		if got := s.reads(t, `SELECT state, result FROM calls WHERE run IN ('r', 'r2') ORDER BY run, round, n LIMIT 9`); (err == nil) != c.kept || err != nil && !errors.Is(err, tidemark.ErrConflict) || got != want {
			t.Errorf("a call %s: %v, %q", c.name, err, got)
		}
		fence := s.callOf(r, call{N: 1, ID: "c"}).Fence()
		if err := s.DB.Tx(t.Context(), []tidemark.Stmt{fence}); (err == nil) != (c.kept || c.to == `error = 'stop:""'`) {
			t.Errorf("a call %s: its fence gives %v", c.name, err)
		}
	}
}

// TestAccount: what a turn has spent, and how many calls of a tool it made before one of them, whatever other turns spend.
func TestAccount(t *testing.T) {
	s, _ := plain(t, Config{})
	r := s.begun(t, "r", stateTools)
	s.twin(t, r)
	s.does(t, `UPDATE runs SET spent = 100 WHERE key = ? AND id = 'r'`, string(s.Key))
	put := func(run string, round, n int, tool, state string, spent int) {
		s.does(t, `INSERT INTO calls(run, round, n, id, call, idempotent, state, spent) VALUES(?, ?, ?, 'c', ?, 0, ?, ?)`, run, round, n, fmt.Sprintf(`{"name":%q}`, tool), state, spent)
	}
	put("r", 0, 0, "delegate", callDone, 10)
	put("r", 0, 1, "look", callDone, 0)
	put("r", 0, 2, "delegate", callStarted, 0)
	put("r", 0, 4, "look", callDone, 2)
	put("r", 1, 0, "delegate", callDone, 5)
	put("r", 1, 1, "delegate", callRegistered, 0)
	put("r", 1, 2, "delegate", callStarted, 0)
	put("r", 1, 3, "look", callRegistered, 0)
	put("r", 1, 4, "delegate", callRegistered, 7)
	put("r", 1, 5, "delegate", callDone, 0)
	put("r", 2, 0, "delegate", callDone, 1)
	put("a-twin", 0, 0, "delegate", callDone, 1)
	put("a-twin", 1, 0, "delegate", callRegistered, 0)
	put("a-twin", 1, 4, "delegate", callRegistered, 900)
	for _, c := range []struct {
		n    int
		want room.Account
	}{{0, room.Account{Before: 2, Open: 2, Call: 5, Round: 12, Turn: 125}}, {2, room.Account{Before: 4, Open: 2, Call: 0, Round: 12, Turn: 125}}, {4, room.Account{Before: 5, Open: 2, Call: 7, Round: 12, Turn: 125}}} {
		if got, err := s.account(t.Context(), room.Call{Turn: room.Turn{Run: "r", Round: 1}, N: c.n, Tool: "delegate"}); got != c.want || err != nil {
			t.Errorf("call %d: %+v, %v; want %+v", c.n, got, err, c.want)
		}
	}
	for id, want := range map[string]tidemark.Tokens{"r": 125, "a-twin": 5901, "none": 0} {
		if n, err := s.spent(t.Context(), id); n != want || err != nil {
			t.Errorf("%s has spent %d, %v; want %d", id, n, err, want)
		}
	}
	if err := s.DB.Tx(t.Context(), []tidemark.Stmt{callSpends(room.Call{Turn: room.Turn{Run: "r", Round: 1}, N: 4}, 30), spendStmt(r, tidemark.Usage{Input: 3, Output: 4, CacheRead: 5, CacheCreation: 6})}); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT run, sum(spent) FROM calls WHERE run IN ('r', 'a-twin') GROUP BY run LIMIT 9`) + ", " + s.reads(t, `SELECT spent FROM runs WHERE id IN ('r', 'a-twin') ORDER BY id LIMIT 9`); got != "a-twin 901, r 48, 5000, 118" {
		t.Errorf("spent %s", got)
	}
	for _, c := range []struct {
		budget tidemark.Tokens
		over   bool
	}{{0, false}, {167, false}, {166, true}, {1, true}} {
		s.settings().limits.Budget = c.budget
		err := s.withinBudget(t.Context(), r)
		if (err != nil) != c.over || err != nil && (!errors.Is(err, tidemark.ErrTooLarge) || err.Error() != fmt.Sprintf("the turn spent 166 tokens, and may spend %d", c.budget)) {
			t.Errorf("a budget of %d: %v", c.budget, err)
		}
	}
}

// TestMayRecall: how often a turn may search and how much it may read, whatever later calls and other turns do.
func TestMayRecall(t *testing.T) {
	query, entry, episode := `{"query":"x"}`, `{"entry":"e1"}`, `{"episode":"build"}`
	type calls struct {
		n           int
		name, input string
		bytes       int // of each result; -1: it is in work
	}
	for _, c := range []struct {
		name          string
		made          []calls
		search, entry string // why not
	}{
		{"none", nil, "", ""},
		{"seven searches", []calls{{7, room.RecallTool, query, 1}}, "", ""},
		{"eight searches", []calls{{8, room.RecallTool, query, 1}}, "called 8 times", ""},
		{"eight entries", []calls{{8, room.RecallTool, entry, 1}}, "", ""},
		{"eight episodes", []calls{{8, room.RecallTool, episode, 1}}, "", ""},
		{"eight of another tool", []calls{{8, "look", query, 100_000}}, "", ""},
		{"a byte less than may be read", []calls{{1, room.RecallTool, query, 199_999}}, "", ""},
		{"as much as may be read", []calls{{1, room.RecallTool, query, 199_999}, {1, paging.FaultTool, `{}`, 1}}, "gave 200000 bytes", "gave 200000 bytes"},
		{"nine in work", []calls{{9, paging.FaultTool, `{}`, -1}}, "", ""},
		{"ten in work", []calls{{10, paging.FaultTool, `{}`, -1}}, "gave 200000 bytes", "gave 200000 bytes"},
	} {
		s, _ := plain(t, Config{})
		r := s.begun(t, "r", stateTools)
		r.Round = 1
		put := func(run string, round, n int, name, input string, bytes int) {
			s.does(t, `INSERT INTO calls(run, round, n, id, call, idempotent, state, result) VALUES(?, ?, ?, 'c', ?, 0, ?, ?)`, run, round, n, fmt.Sprintf(`{"name":%q,"input":%s}`, name, input),
				map[bool]string{true: callStarted, false: callDone}[bytes < 0], strings.Repeat("x", max(bytes, 0)))
		}
		n := 0
		for _, m := range c.made {
			for range m.n {
				put("r", n%2, n, m.name, m.input, m.bytes)
				n++
			}
		}
		for i := range 9 { // neither behind this call, nor in a later round, nor of others
			put("r", 1, 100+i, room.RecallTool, query, 90_000)
			put("r", 2, i, room.RecallTool, query, 90_000)
			put("r2", 0, i, room.RecallTool, query, 90_000)
		}
		for _, k := range []struct {
			entry bool
			want  string
		}{{false, c.search}, {true, c.entry}} {
			err := s.mayRecall(t.Context(), r, call{N: 100}, k.entry)
			if (err == nil) != (k.want == "") || err != nil && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), k.want)) {
				t.Errorf("%s, an entry %v: %v", c.name, k.entry, err)
			}
		}
	}
}

// TestTurnFrom: a turn begins at the first message that it took up, in its own log.
func TestTurnFrom(t *testing.T) {
	s, _ := plain(t, Config{})
	r, log := s.begun(t, "r", stateCalling), s.current(t)
	if from, err := s.turnFrom(t.Context(), r); from != 0 || err != nil {
		t.Errorf("a turn without a message begins at %d, %v", from, err)
	}
	for id, run := range map[string]string{"a": "r", "b": "r", "c": "r2"} {
		s.puts(t, s.Key, id, InputMessage, "taken", run)
	}
	s.does(t, `INSERT INTO logs(id, key, created) VALUES('older', ?, 1)`, string(s.Key))
	s.says(t, "older", "E0", tidemark.NewText(tidemark.User, "before a reset"), tidemark.Origin{Input: "a"}, 1)
	_, event, err := s.kindStmts(log, tidemark.KindEvent, tidemark.FromSystem, tidemark.Event{Type: "notice"})
	if err == nil {
		err = s.DB.Tx(t.Context(), event)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.does(t, `UPDATE entries SET origin = '{"input":"a"}' WHERE log = ? AND kind = 'event'`, log)
	s.says(t, log, "E1", tidemark.NewText(tidemark.User, "of another turn"), tidemark.Origin{Input: "c"}, 1)
	s.says(t, log, "E2", tidemark.NewText(tidemark.User, "of nobody"), tidemark.Origin{}, 1)
	want := s.says(t, log, "E3", tidemark.NewText(tidemark.User, "first"), tidemark.Origin{Input: "b"}, 1)
	s.says(t, log, "E4", tidemark.NewText(tidemark.User, "second"), tidemark.Origin{Input: "a"}, 1)
	if from, err := s.turnFrom(t.Context(), r); from != want || err != nil {
		t.Errorf("it begins at %d, %v; want %d", from, err, want)
	}
}

// TestCause: why a turn ended is what ended its context, but for a write that was lost to another life.
func TestCause(t *testing.T) {
	live, stop := context.WithCancelCause(t.Context())
	if err := cause(live, errKnown); !errors.Is(err, errKnown) {
		t.Errorf("alive: %v", err)
	}
	stop(tidemark.ErrAborted)
	if err := cause(live, errKnown); !errors.Is(err, tidemark.ErrAborted) {
		t.Errorf("stopped: %v", err)
	}
	lost := fmt.Errorf("write: %w", tidemark.ErrConflict)
	if err := cause(live, lost); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("lost: %v", err)
	}
}

var errKnown = errors.New("known")
