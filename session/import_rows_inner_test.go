package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// talked yields messages of another log: talk from one number on, and an error behind them.
func talked(from, to int, fails error) func(func(replay.Message, error) bool) {
	return func(yield func(replay.Message, error) bool) {
		for i, it := range talk("", to).Items {
			if in := (replay.Message{Message: it.Message, At: time.UnixMilli(int64(1000 * (i + 1))), Peer: map[bool]string{true: "ann"}[i == 0], Call: map[bool]*tidemark.Call{true: {Model: "theirs", Stop: "end_turn"}}[i%2 == 1]}); i >= from && !yield(in, nil) {
				return
			}
		}
		if fails != nil {
			yield(replay.Message{}, fails)
		}
	}
}

// TestImportIsKept: what another log says is stored as it was said there; an import that was cut off goes on, and another
// conversation, or less of the same, is refused.
func TestImportIsKept(t *testing.T) {
	s, rt := plain(t, Config{Settings: Settings{Window: 100_000}, Rooms: []room.Maker{replay.Make}})
	ctx := t.Context()
	var progress []int
	res, err := s.imports(ctx, talked(0, 5, nil), func(n int) { progress = append(progress, n) })
	v, bad := s.View(ctx)
	if err != nil || bad != nil || res != (replay.Result{Messages: 5, Entries: 5, ContextTokens: v.Size, Window: 100_000, Limit: 80_000}) || !slices.Equal(progress, []int{1, 2, 3, 4, 5}) {
		t.Errorf("%+v, %v, told of %d", res, err, progress)
	}
	if got := s.reads(t, `SELECT at, origin, call FROM entries WHERE log = ? ORDER BY seq LIMIT 2`, s.current(t)); got != `1000 {"from":"person","channel":"import","peer":"ann"} , 2000 {"from":"model","channel":"import"} `+mustJSON(tidemark.Call{Model: "theirs", Stop: "end_turn"}) {
		t.Errorf("stored are %s", got)
	}
	if got := s.reads(t, `SELECT active, people, messages, context FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != fmt.Sprint("1700000000000 1700000000000 5 ", int64(v.Size)) {
		t.Errorf("its row is %s, the view has %d", got, v.Size)
	}
	if got := s.reads(t, `SELECT state FROM runs WHERE key = ? LIMIT 9`, string(s.Key)); got != "done" || s.Working() || len(rt.later) != 1 {
		t.Errorf("its runs are %s, works %v, %d are to run", got, s.Working(), len(rt.later))
	}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{s.eventStmt(s.current(t), tidemark.Event{Type: "notice"})}); err != nil {
		t.Fatal(err)
	}
	for skipped, messages := range []int{5: 7, 7: 7} {
		if messages == 0 {
			continue
		}
		if res, err = s.imports(ctx, talked(0, 7, nil), nil); err != nil || res.Messages != messages || res.Entries != 8 || res.Skipped != skipped {
			t.Errorf("behind %d that are there: %+v, %v", skipped, res, err)
		}
	}
	h := &hooked{DB: s.DB, before: func() { s.does(t, `UPDATE heads SET log = 'moved' WHERE key = ?`, string(s.Key)) }}
	old := s.current(t)
	s.DB = h
	if _, err := s.imports(ctx, talked(0, 7, nil), nil); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("a reset ends at the same moment: %v", err)
	}
	s.does(t, `UPDATE heads SET log = ? WHERE key = ?`, old, string(s.Key))
	for _, c := range []struct {
		name  string
		in    func(func(replay.Message, error) bool)
		err   error
		says  string
		count int
	}{
		{"another one", talked(1, 7, nil), tidemark.ErrConflict, "import message 1: session agent:main:main holds another conversation", 7},
		{"less of it", talked(0, 6, nil), tidemark.ErrConflict, "holds 7 messages, the log only 6", 7},
		{"one that breaks", talked(0, 9, errKnown), errKnown, "import message 10: known", 9},
	} {
		_, err := s.imports(ctx, c.in, nil)
		if n := s.reads(t, `SELECT messages FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) || n != fmt.Sprint(c.count) {
			t.Errorf("%s: %v, %s messages", c.name, err, n)
		}
	}
	if id, err := s.Busy(ctx); id != "" || err != nil || s.Working() {
		t.Errorf("in work is %q, %v", id, err)
	}
	s.runs(t, "busy", s.current(t), stateTools, 1)
	if _, err := s.imports(ctx, talked(0, 7, nil), nil); !errors.Is(err, tidemark.ErrBusy) || s.Working() {
		t.Errorf("beside a turn: %v, works %v", err, s.Working())
	}
}

// TestImportFits: a long log is compacted before each reply that would not fit, and at its end, as if it had been said here.
func TestImportFits(t *testing.T) {
	m := &played{play: summarizes}
	s, _ := plain(t, Config{Provider: m, Settings: Settings{Window: 3_000, Reserve: 1_000, Keep: 300, NoMemories: true}, Rooms: []room.Maker{replay.Make}})
	res, err := s.imports(t.Context(), talked(0, 90, nil), nil)
	if err != nil || res.Messages != 90 || res.Compactions == 0 || res.ArchivedParts == 0 || res.ContextTokens > res.Limit || res.Limit != 2_000 || len(m.calls) == 0 {
		t.Fatalf("%+v, %v, %d calls", res, err, len(m.calls))
	}
	if n := s.reads(t, `SELECT count(*) FROM entries WHERE log = ? LIMIT 1`, s.current(t)); fmt.Sprint(res.Entries) != n {
		t.Errorf("%d entries of %s", res.Entries, n)
	}
}

// arrivals is an index that counts how often messages came.
type arrivals struct {
	room.Indexer
	came int
}

func (a *arrivals) Came() { a.came++ }

func (a *arrivals) IndexStmts(context.Context, tidemark.Entry, tidemark.Message) ([]tidemark.Stmt, error) {
	return nil, nil
}

// TestHeldMove: a room that holds the session's run moves it to a log of its own that goes on from a place; who lost the run
// moves nothing, and no other conversation moves. The index is told of what came.
func TestHeldMove(t *testing.T) {
	index := &arrivals{}
	s, rt := plain(t, Config{Rooms: []room.Maker{func(room.Ports) any { return index }}})
	ctx, old := t.Context(), s.current(t)
	s.runs(t, "r0", old, stateDone, 1)
	s.does(t, `INSERT INTO heads(key, log, created, active) VALUES('agent:main:twin', ?, 1, 1)`, old)
	s.does(t, `UPDATE heads SET prompt = 'frozen' WHERE key = ?`, string(s.Key))
	info := tidemark.SessionInfo{ID: "moved", Key: s.Key, Title: strings.Repeat("x", 300), CreatedAt: time.UnixMilli(7), UpdatedAt: rt.now.Add(time.Minute), Messages: 4, ContextTokens: 99}
	from := room.Place{Node: snapshot.Node{Session: "agent:main:aunt"}, Log: "base", Seq: 12}
	first := s.looked(t)
	if err := s.lend(ctx, func(h room.Held) error {
		if err := h.Write(ctx, tidemark.Stmt{SQL: `UPDATE heads SET failures = 5 WHERE key = ?`, Args: []any{string(s.Key)}}); err != nil {
			return err
		}
		return h.Move(ctx, info, from, tidemark.Stmt{SQL: `UPDATE heads SET failures = failures + 1 WHERE key = ?`, Args: []any{string(s.Key)}})
	}); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT log, title, active, messages, context, prompt, failures FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != "moved "+strings.Repeat("x", maxTitle)+" 1700000060000 4 99  6" {
		t.Errorf("its row is %q", got)
	}
	if got := s.reads(t, `SELECT key, base_log, base_seq, created FROM logs WHERE id = 'moved' LIMIT 1`); got != "agent:main:main base 12 7" {
		t.Errorf("the log is %q", got)
	}
	if got := s.reads(t, `SELECT state, log = 'moved' FROM runs WHERE key = ? ORDER BY id = 'r0', id LIMIT 9`, string(s.Key)); got != "done 1, done 0" {
		t.Errorf("its runs are %q", got)
	}
	if got := s.reads(t, `SELECT kind, at, data FROM due WHERE key = ? ORDER BY kind LIMIT 9`, string(s.Key)); got != fmt.Sprint("index 1700000060000 ", host.LogEnd, ", outbox 1700000060000 ") {
		t.Errorf("due is %q", got)
	}
	if l, err := s.lineage.Reach(ctx); err != nil || l == first || first == nil || s.Working() {
		t.Errorf("what it continued is known still: %+v", l)
	}
	if got := s.reads(t, `SELECT log FROM heads WHERE key = 'agent:main:twin' LIMIT 1`); got != old {
		t.Errorf("the twin is at %s", got)
	}
	s.does(t, `UPDATE heads SET title = 'mine' WHERE key = ?`, string(s.Key))
	info.ID = "again"
	if err := s.lend(ctx, func(h room.Held) error { return h.Move(ctx, info, from) }); err != nil || s.reads(t, `SELECT title FROM heads WHERE key = ? LIMIT 1`, string(s.Key)) != "mine" {
		t.Errorf("a title that is there: %v", err)
	}
	if err := s.lend(ctx, func(room.Held) error { return errKnown }); !errors.Is(err, errKnown) || s.Working() {
		t.Errorf("work that fails: %v", err)
	}
	if got := s.reads(t, `SELECT state FROM runs WHERE key = ? AND log = 'again' ORDER BY state LIMIT 9`, string(s.Key)); got != "done, failed" {
		t.Errorf("its runs are %q", got)
	}
	lost := s.lend(ctx, func(h room.Held) error {
		s.does(t, `UPDATE runs SET owner = 'x' WHERE key = ? AND state = 'calling'`, string(s.Key))
		info.ID = "never"
		return h.Move(ctx, info, from)
	})
	if !errors.Is(lost, tidemark.ErrConflict) || s.current(t) != "again" || index.came != 2 {
		t.Errorf("who lost the run moves it to %s, %v, the index is told %d times", s.current(t), lost, index.came)
	}
	s.does(t, `UPDATE runs SET state = 'failed' WHERE key = ?`, string(s.Key))
	s.does(t, `INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES('busy', ?, 'again', 'x', 'tools', 1, 1)`, string(s.Key))
	if err := s.lend(ctx, func(room.Held) error { t.Error("it is lent"); return nil }); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("beside a turn: %v", err)
	}
}

// looked has a session read what it continues, so that it knows of it.
func (s *Session) looked(t *testing.T) *host.Lineage {
	t.Helper()
	l, err := s.lineage.Reach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// entered is an agent that notes what it is told of conversations.
type entered struct {
	silent
	told []tidemark.SessionInfo
}

func (a *entered) Report(_ context.Context, i tidemark.SessionInfo, _ []archive.Info) error {
	a.told = append(a.told, i)
	return nil
}

// TestBeginAt: another conversation begins at a place with the settings of the one that it is of, but for its title, and is told
// of; one that is there stays.
func TestBeginAt(t *testing.T) {
	agent := &entered{}
	s, rt := plain(t, Config{Agent: agent, Settings: Settings{Window: 90_000}})
	info := tidemark.SessionInfo{ID: "new", Key: "agent:main:main#side", Title: strings.Repeat("y", 300), CreatedAt: rt.now, Messages: 4, ContextTokens: 99}
	from := room.Place{Node: snapshot.Node{Session: "agent:main:aunt"}, Log: "base", Seq: 12}
	if err := s.DB.Tx(t.Context(), s.beginAt(info, from)); err != nil {
		t.Fatal(err)
	}
	if got := s.reads(t, `SELECT log, title, created, active, messages, context, settings FROM heads WHERE key = ? LIMIT 1`, string(info.Key)); got != "new "+strings.Repeat("y", maxTitle)+` 1700000000000 1700000000000 4 99 {"model":"theirs"}` {
		t.Errorf("its row is %q", got)
	}
	if got := s.reads(t, `SELECT kind, at FROM due WHERE key = ? LIMIT 9`, string(info.Key)) + ", " + s.reads(t, `SELECT value FROM refs WHERE name = ? LIMIT 1`, headRef(info.Key)) + ", " + s.reads(t, `SELECT base_log, base_seq FROM logs WHERE id = 'new' LIMIT 1`); got != "outbox 1700000000000, new, base 12" {
		t.Errorf("it begins with %q", got)
	}
	info.ID = "another"
	if err := s.DB.Tx(t.Context(), s.beginAt(info, from)); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("begun twice: %v", err)
	}
	from.Session, info.Key = "agent:main:none", "agent:main:main#third"
	if err := s.DB.Tx(t.Context(), s.beginAt(info, from)); err != nil || s.reads(t, `SELECT settings FROM heads WHERE key = ? LIMIT 1`, string(info.Key)) != "{}" {
		t.Errorf("of one that is gone: %v", err)
	}
	past := s.past()
	if err := past.Enter(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	state, err := past.State(t.Context(), 1, true)
	stmts, bad := past.Restore(t.Context(), "key", from)
	if len(agent.told) != 1 || agent.told[0].Window != 90_000 || len(agent.told[0].Title) != maxTitle || mustJSON(state) != "{}" || err != nil || stmts != nil || bad != nil {
		t.Errorf("told %+v, %+v, %v", agent.told, state, err)
	}
}

// TestStallPauses: while nothing can be written the pauses grow up to a bound; what is wrong is told from the second on, and the
// log says at the end how long it was. One that was never told leaves no line.
func TestStallPauses(t *testing.T) {
	s, rt := plain(t, Config{})
	sub, err := s.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	s.recovered(s.current(t))
	s.retryLater(errKnown)
	if tries, until := s.retries(); tries != 1 || !until.Equal(rt.now.Add(5*time.Second)) || len(heardOf(sub)) != 0 {
		t.Errorf("%d tries, until %s", tries, until)
	}
	s.recovered(s.current(t))
	if tries, _ := s.retries(); tries != 0 || s.notices(t) != "" || len(heardOf(sub)) != 0 {
		t.Errorf("%d tries, told %q", tries, s.notices(t))
	}
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 600, 600} {
		s.retryLater(errKnown)
		tries, until := s.retries()
		var told []Notice
		for n, ok := sub.Next(); ok; n, ok = sub.Next() {
			told = append(told, n)
		}
		if tries != i+1 || !until.Equal(rt.now.Add(want*time.Second)) || i > 0 && (len(told) != 1 || told[0].Type != NoticeStalled || told[0].Text != "known" || told[0].Count != int(want)) || i == 0 && len(told) > 0 {
			t.Errorf("try %d: %d, until %s, told %+v", i, tries, until, told)
		}
	}
	if len(rt.later) != 10 {
		t.Errorf("%d tries are to be made", len(rt.later))
	}
	rt.now = rt.now.Add(65 * time.Second)
	s.recovered(s.current(t))
	if tries, _ := s.retries(); tries != 0 || s.notices(t) != "This conversation waited for 65 s, nothing is lost: known" || !slices.Equal(heardOf(sub), []string{"stalled"}) {
		t.Errorf("%d tries, told %q", tries, s.notices(t))
	}
	for _, f := range rt.later { // all were called off: none looks for work
		f()
	}
	if got := s.reads(t, `SELECT count(*) FROM runs WHERE key = ? LIMIT 1`, string(s.Key)); got != "0" || len(rt.later) != 10 {
		t.Errorf("%s runs, %d are to run", got, len(rt.later))
	}
}
