package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// skipper is two conversations that may leave turns out.
func skipper(t *testing.T) (d, beside *desk) {
	t.Helper()
	d, beside = desks(t)
	if err := d.Made.Open(t.Context(), skipTables); err != nil {
		t.Fatal(err)
	}
	return d, beside
}

// skip writes what was decided of a turn behind a position.
func (d *desk) skip(run, state string, first int64, ids ...tidemark.EntryID) {
	d.t.Helper()
	d.exec(`INSERT INTO skips(key, run, log, state, first, at, ids) VALUES(?, ?, ?, ?, ?, 0, ?)`, string(d.Key), run, d.log, state, first, room.JSON(append([]tidemark.EntryID{}, ids...)))
}

// TestWeighed: a message weighs what is stored of it, or what its tokens say where that is more.
func TestWeighed(t *testing.T) {
	for _, c := range [][3]int64{{0, 0, 0}, {10, 3, 10}, {9, 3, 10}, {11, 3, 11}, {0, 1, 3}} {
		if got := weighed(c[0], c[1]); got != c[2] {
			t.Errorf("%d bytes and %d tokens: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// TestTurnOf: a turn as a gate sees it: each message of its log behind where it began, with what its kind is worth, or what
// somebody said of it, and what must not go.
func TestTurnOf(t *testing.T) {
	d, beside := skipper(t)
	user := func(text string) tidemark.Message { return tidemark.NewText(tidemark.User, text) }
	before := d.logs(morning, "", user("before"))
	d.skip("run", skipOpen, before.Seq)
	d.skip("later", skipOpen, before.Seq+4)
	beside.skip("run", skipOpen, 0)
	var want memory.Turn
	marks := map[tidemark.EntryID]room.Mark{}
	add := func(from string, m tidemark.Message, importance int, protected bool, mark room.Mark) {
		t.Helper()
		e := d.logs(morning, from, m)
		marks[e.ID] = mark
		want = append(want, memory.Event{ID: e.ID, Importance: importance, Bytes: weighed(int64(len(e.Payload)), int64(e.Tokens)), Protected: protected})
		beside.logs(morning, from, m)
		d.event()
	}
	add(tidemark.FromPerson, user("ok, go on"), 7, false, room.Mark{})
	add(tidemark.FromPerson, user("please mend the boat"), 7, true, room.Mark{})
	add(tidemark.FromModel, uses("c1 a"), 5, false, room.Mark{})
	add(tidemark.FromTool, gave(false, "c1"), 3, false, room.Mark{})
	add(tidemark.FromTool, gave(true, "c1"), 3, true, room.Mark{})
	add(tidemark.FromRecall, gave(false, "c2"), 3, false, room.Mark{})
	add(tidemark.FromSystem, user("a notice"), 5, false, room.Mark{})
	add(tidemark.FromModel, tidemark.NewText(tidemark.Assistant, "done"), 9, false, room.Mark{Importance: 9})
	add(tidemark.FromModel, tidemark.NewText(tidemark.Assistant, "aside"), 1, false, room.Mark{Importance: 1})
	add(tidemark.FromModel, tidemark.NewText(tidemark.Assistant, "kept"), 5, true, room.Mark{Pinned: true, Importance: 9})
	add(tidemark.FromPerson, user("ok "+strings.Repeat(" ", 400)+"go on"), 7, true, room.Mark{}) // too long to be looked at
	d.skips.MarksOf = func(context.Context, []tidemark.EntryID) (map[tidemark.EntryID]room.Mark, error) { return marks, nil }
	d.another()
	d.logs(morning, "", user("of another log"))
	got, err := d.skips.turnOf(t.Context(), "run")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	if n := len(d.query(`SELECT id FROM entries WHERE tokens >= 100 LIMIT 9`)); n != 2 {
		t.Errorf("%d messages are long", n)
	}
}

// query gives the rows of a statement.
func (d *desk) query(sql string, args ...any) []tidemark.Row {
	d.t.Helper()
	rows, err := d.DB.Query(d.t.Context(), sql, args...)
	if err != nil {
		d.t.Fatal(err)
	}
	return rows
}

// TestWorking: what recall looks through is counted on from where it was, up to the turns that are not decided yet, of this
// conversation alone.
func TestWorking(t *testing.T) {
	d, beside := skipper(t)
	size := func(list ...tidemark.Entry) (n int64) {
		for _, e := range list {
			n += weighed(int64(len(e.Payload)), int64(e.Tokens))
		}
		return n
	}
	beside.exec(`INSERT INTO working(key, upto, events, bytes, skipped) VALUES(?, 1, 70, 70, 7)`, string(beside.Key))
	var mine []tidemark.Entry
	for i := range 3 {
		mine = append(mine, d.says(minutes(i), fmt.Sprint("walnut ", i))) // 1, 4, 7
		beside.says(minutes(i), "a walnut of another")
		d.event()
	}
	want := func(name string, events int, bytes int64) {
		t.Helper()
		if got, err := d.skips.working(t.Context()); err != nil || got != (memory.Held{Events: events, Bytes: bytes}) {
			t.Errorf("%s: %+v, %v; want %d, %d bytes", name, got, err, events, bytes)
		}
	}
	want("all", 3, size(mine...))
	if got := d.query(`SELECT upto, events, bytes, skipped FROM working WHERE key = ? LIMIT 1`, string(d.Key)); len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint([]any{mine[2].Seq, int64(3), size(mine...), int64(0)}) {
		t.Errorf("written down: %v", got)
	}
	d.exec(`UPDATE working SET events = 100 WHERE key = ?`, string(d.Key))
	want("what was counted", 100, size(mine...))
	four := d.says(minutes(3), "walnut")
	d.skip("open", skipOpen, four.Seq)
	d.skip("kept", skipKept, 1)
	beside.skip("open", skipOpen, 1)
	d.says(minutes(4), "in a turn that is not decided")
	want("up to a turn that waits", 101, size(append(mine, four)...))
	if at, err := d.skips.Settled(t.Context()); err != nil || at != four.Seq {
		t.Errorf("settled up to %d, %v", at, err)
	}
	d.exec(`UPDATE working SET skipped = 5 WHERE key = ?`, string(d.Key))
	if n, err := d.skips.Count(t.Context()); err != nil || n != 5 {
		t.Errorf("%d are left out, %v", n, err)
	}
	if n, err := beside.skips.Count(t.Context()); err != nil || n != 7 {
		t.Errorf("of the neighbour %d are left out, %v", n, err)
	}
	// Another life counts further meanwhile: what it knows stays.
	real := d.skips.DB
	d.exec(`DELETE FROM skips WHERE key = ?`, string(d.Key))
	d.skips.DB = meddled{real, func() {
		d.exec(`UPDATE working SET upto = 1000, events = 1000 WHERE key = ?`, string(d.Key))
	}}
	if _, err := d.skips.working(t.Context()); err != nil {
		t.Error(err)
	}
	d.skips.DB = real
	want("behind another life", 1000, size(append(mine, four)...))
	if n := d.number(`SELECT events FROM working WHERE key = ? LIMIT 1`, string(beside.Key)); n != 70 {
		t.Errorf("the neighbour has %d", n)
	}
	none := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
	if n, err := none.skips.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("without a gate %d, %v", n, err)
	}
	if at, err := none.skips.Settled(t.Context()); at != 1<<53 || err != nil {
		t.Errorf("without a gate settled up to %d, %v", at, err)
	}
}

// meddled is a database in which something happens before each write.
type meddled struct {
	tidemark.DB
	before func()
}

func (m meddled) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	m.before()
	return m.DB.Tx(ctx, stmts)
}

// TestSkipped: recall leaves out what a turn of this conversation says that was skipped, and nothing for what else was
// decided, or for another conversation.
func TestSkipped(t *testing.T) {
	d, beside := skipper(t)
	var ids []tidemark.EntryID
	for i := range 12 {
		ids = append(ids, d.says(minutes(i), "walnut").ID)
	}
	d.skip("first", skipSkipped, 1, ids[1], ids[2])  // 2, 3
	d.skip("kept", skipKept, 2, ids[4])              // 5
	d.skip("open", skipOpen, 4, ids[5])              // 6
	d.skip("second", skipSkipped, 6, ids[6], ids[8]) // 7, 9
	beside.skip("another's", skipSkipped, 2, ids[3])
	beside.skip("another's too", skipSkipped, 8, ids[9])
	for _, c := range []struct {
		first, last int64
		want        []int64
	}{{1, 12, []int64{2, 3, 7, 9}}, {3, 8, []int64{3, 7}}, {3, 3, []int64{3}}, {4, 6, nil}, {9, 9, []int64{9}}, {8, 9, []int64{9}}, {7, 7, []int64{7}}, {1, 1, nil}, {10, 12, nil}, {2, 2, []int64{2}}} {
		got, err := d.skips.Skipped(t.Context(), c.first, c.last)
		var seqs []int64
		for seq := int64(1); seq <= 12; seq++ {
			if got[seq] {
				seqs = append(seqs, seq)
			}
		}
		if err != nil || !slices.Equal(seqs, c.want) || len(got) != len(c.want) {
			t.Errorf("%d to %d: %d, %v; want %d", c.first, c.last, seqs, err, c.want)
		}
	}
	for seq, want := range map[int64]string{2: recall.SkippedHome(d.Key), 4: recall.Home(d.Key), 5: recall.Home(d.Key)} {
		if got, err := d.skips.homeOf(t.Context(), seq); err != nil || got != want {
			t.Errorf("message %d stands under %s, %v; want %s", seq, got, err, want)
		}
	}
	beside.exec(`UPDATE skips SET indexed = 1 WHERE key = ?`, string(d.Key))
	if waits, err := d.skips.undecidedAt(t.Context(), 12); waits || err != nil {
		t.Errorf("what is in the index waits: %v", err)
	}
	d.exec(`UPDATE skips SET indexed = 0 WHERE key = ? AND run = 'second'`, string(d.Key))
	for seq, want := range map[int64]bool{6: false, 7: true} {
		if waits, err := d.skips.undecidedAt(t.Context(), seq); waits != want || err != nil {
			t.Errorf("message %d waits: %v, %v", seq, waits, err)
		}
	}
}

// TestSettle: the words of what was decided come into the index under the home that it has then; of a turn that ended without
// a decision under that of what is found, and of one in work not yet.
func TestSettle(t *testing.T) {
	d, beside := skipper(t)
	var ids []tidemark.EntryID
	for i := range 9 { // 1, 2, 3, 5, 6, 7, 9, 10, 11
		ids = append(ids, d.logs(minutes(i), "", tidemark.NewText(tidemark.User, fmt.Sprintf("walnut n%d", i+1))).ID)
		switch i {
		case 2:
			beside.logs(minutes(i), "", tidemark.NewText(tidemark.User, "walnut"))
		case 5:
			d.event()
		}
	}
	run := func(id, state string) {
		d.exec(`INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES(?, ?, ?, '', ?, 0, 0)`, id, string(d.Key), d.log, state)
	}
	d.skip("skipped", skipSkipped, 0, ids[0]) // 1
	d.skip("kept", skipKept, 1, ids[1], "gone")
	d.skip("ended", skipOpen, 2) // 3 and 5
	run("ended", "failed")
	d.skip("without a run", skipOpen, 5) // 6, 7 and 9
	d.skip("working", skipOpen, 9)
	run("working", "tools")
	d.skip("before", skipSkipped, 9)
	d.exec(`UPDATE skips SET indexed = 1 WHERE key = ? AND run = 'before'`, string(d.Key))
	beside.skip("kept", skipKept, 6, ids[7])
	beside.skip("skipped", skipSkipped, 7)
	if err := d.skips.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	under := func(home string) (out []int64) {
		for _, r := range d.query(`SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid LIMIT 20`, recall.MatchHome([]string{home})) {
			out = append(out, r.Int(0))
		}
		return out
	}
	if got := under(recall.Home(d.Key)); !slices.Equal(got, []int64{2, 3, 5, 6, 7, 9}) {
		t.Errorf("found are %d", got)
	}
	if got := under(recall.SkippedHome(d.Key)); !slices.Equal(got, []int64{1}) {
		t.Errorf("left out are %d", got)
	}
	left := fmt.Sprint(d.query(`SELECT run, indexed FROM skips ORDER BY key, run LIMIT 20`))
	if left != "[[before 1] [skipped 1] [working 0] [kept 0] [skipped 0]]" {
		t.Errorf("left are %s", left)
	}
	if err := d.skips.settle(t.Context()); err != nil || len(under(recall.Home(d.Key))) != 6 {
		t.Errorf("a second time: %v", err)
	}
	if got, err := d.skips.undecided(t.Context(), d.log, 6); err != nil || !slices.Equal(got, []tidemark.EntryID{ids[5], ids[6]}) { // 7 and 9, up to the turn in work
		t.Errorf("behind a position: %q, %v", got, err)
	}
}

// holds has the words of a run wait, and returns how many statements that took.
func (d *desk) holds(run string) int {
	d.t.Helper()
	stmts := must(d.skips.HoldStmts(d.t.Context(), run, d.log))
	if err := d.DB.Tx(d.t.Context(), stmts); err != nil {
		d.t.Fatal(err)
	}
	return len(stmts)
}

// TestDecided: a turn is decided on once, as a whole with its reply: what is left out is counted and told, with how much is
// looked through without it.
func TestDecided(t *testing.T) {
	d, beside := skipper(t)
	g := &gate{over: true, hot: memory.None}
	d.skips.Gate = func() memory.Gate { return g }
	first := d.says(minutes(0), "walnut")
	if g.over = false; d.holds("within the budget") != 0 || d.skips.holding() || g.held != (memory.Held{Events: 1, Bytes: weighed(int64(len(first.Payload)), int64(first.Tokens))}) {
		t.Errorf("a turn waits that cannot be skipped, of %+v", g.held)
	}
	g.over = true
	beside.says(minutes(1), "acorn") // 2
	if n := d.holds("run"); n != 1 || !d.skips.holding() || d.number(`SELECT first FROM skips WHERE key = ? AND run = 'run' LIMIT 1`, string(d.Key)) != 2 {
		t.Errorf("%d statements hold the turn", n)
	}
	if stmts, err := d.index.IndexStmts(t.Context(), first, tidemark.NewText(tidemark.User, "walnut")); stmts != nil || err != nil {
		t.Errorf("words of a turn that waits come into the index: %v, %v", stmts, err)
	}
	beside.skip("run", skipOpen, 0)
	asked := d.logs(minutes(2), "", tidemark.NewText(tidemark.User, "ok")) // 3
	payload := tidemark.NewText(tidemark.Assistant, "done").AppendJSON(nil)
	reply := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(minutes(3))), Kind: tidemark.KindMessage, At: minutes(3), Tokens: 50, Payload: payload}
	decide := func(run string) []tidemark.Stmt {
		t.Helper()
		stmts, err := d.skips.DecideStmts(t.Context(), run, d.log, reply)
		if err != nil {
			t.Fatal(err)
		}
		return stmts
	}
	g.hot = memory.Add
	if stmts := decide("run"); len(stmts) != 1 || stmts[0].Args[0] != skipKept {
		t.Errorf("what is kept: %v", stmts)
	}
	g.hot = memory.None
	stmts := decide("run")
	if want := (memory.Turn{{ID: asked.ID, Importance: 7, Bytes: weighed(int64(len(asked.Payload)), int64(asked.Tokens))}, {ID: reply.ID, Importance: 5, Bytes: 166}}); !slices.Equal(g.turn, want) {
		t.Errorf("the gate sees %+v, want %+v", g.turn, want)
	}
	if err := d.DB.Tx(t.Context(), stmts); err != nil {
		t.Fatal(err)
	}
	left := Left{Entries: []tidemark.EntryID{asked.ID, reply.ID}, Bytes: g.turn[0].Bytes + 166, Events: 1, Held: g.held.Bytes}
	rows := d.query(`SELECT state, ids, bytes, at, indexed FROM skips WHERE key = ? AND run = 'run' LIMIT 1`, string(d.Key))
	if want := fmt.Sprint([]any{skipSkipped, room.JSON(left.Entries), left.Bytes, d.clock.Now().UnixMilli(), int64(0)}); len(rows) != 1 || fmt.Sprint([]any(rows[0])) != want {
		t.Errorf("decided: %v, want %s", rows, want)
	}
	if n := d.number(`SELECT count(*) FROM skips WHERE key = ? AND state = 'open' LIMIT 1`, string(beside.Key)); n != 1 {
		t.Error("a turn of the neighbour was decided on")
	}
	var e tidemark.Event
	var told Left
	raw := d.query(`SELECT payload FROM entries WHERE log = ? AND kind = 'event' ORDER BY seq DESC LIMIT 1`, d.log)
	if err := json.Unmarshal(raw[0].Bytes(0), &e); err != nil || json.Unmarshal(e.Data, &told) != nil || fmt.Sprint(told) != fmt.Sprint(left) || e.Type != "skip" ||
		e.Text != "2 messages of this turn are left out of recall, which looks through 1: they stand in the log, and `recall --all` finds them" {
		t.Errorf("told %+v, %+v", e, told)
	}
	if n, err := d.skips.Count(t.Context()); n != 2 || err != nil || d.number(`SELECT upto FROM working WHERE key = ? LIMIT 1`, string(d.Key)) != 4 { // the event
		t.Errorf("%d are left out, %v", n, err)
	}
	if err := d.DB.Tx(t.Context(), stmts[:1]); err == nil {
		t.Error("a turn is decided on twice")
	}
}

// TestDecidedOfMany: a turn of more messages than are looked at is kept, and a life that knows nothing waits for the end of a
// turn that is not decided.
func TestDecidedOfMany(t *testing.T) {
	d, beside := skipper(t)
	g := &gate{over: true, hot: memory.None}
	d.skips.Gate = func() memory.Gate { return g }
	beside.skip("run", skipOpen, 0)
	reply := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(minutes(3))), Kind: tidemark.KindMessage, Payload: tidemark.NewText(tidemark.Assistant, "done").AppendJSON(nil)}
	decide := func(run string) []tidemark.Stmt {
		t.Helper()
		return must(d.skips.DecideStmts(t.Context(), run, d.log, reply))
	}
	d.holds("run")
	d.skips.EndWait("run")
	if stmts := decide("run"); d.skips.holding() || stmts != nil {
		t.Errorf("behind its end: %v", stmts)
	}
	first := d.logs(minutes(1), "", tidemark.NewText(tidemark.User, "ok"))
	if d.holds("second") != 1 || d.number(`SELECT first FROM skips WHERE key = ? AND run = 'second' LIMIT 1`, string(d.Key)) != first.Seq {
		t.Error("the second turn does not wait")
	}
	for range maxSkipped - 1 {
		d.logs(minutes(4), tidemark.FromModel, tidemark.NewText(tidemark.Assistant, "so"))
	}
	if stmts := decide("second"); stmts[0].Args[0] != skipSkipped {
		t.Errorf("a turn of %d messages: %.200v", maxSkipped, stmts[0].Args)
	}
	d.logs(minutes(4), tidemark.FromModel, tidemark.NewText(tidemark.Assistant, "so"))
	if stmts := decide("second"); stmts[0].Args[0] != skipKept {
		t.Errorf("a turn of one more: %.200v", stmts[0].Args)
	}
	d.exec(`UPDATE skips SET state = ? WHERE key = ? AND run = 'run'`, skipKept, string(d.Key)) // that of the neighbour is open
	for run, want := range map[string]bool{"second": true, "run": false, "nobody's": false} {   // of a life that knows nothing
		other := "of another run"
		d.skips.held.Store(&other)
		if err := d.skips.Again(t.Context(), run); err != nil || d.skips.holding() != want {
			t.Errorf("%s waits again: %v, %v", run, d.skips.holding(), err)
		}
	}
	d.skips.Gate = func() memory.Gate { return nil }
	if d.holds("third") != 0 {
		t.Error("a turn waits without a gate")
	}
}

// gate says what a test has it say, and notes what it is asked.
type gate struct {
	over bool
	hot  memory.Hot
	held memory.Held
	turn memory.Turn
}

func (g *gate) Over(h memory.Held) bool { g.held = h; return g.over }

func (g *gate) DecideHot(t memory.Turn, h memory.Held) memory.Hot {
	g.turn, g.held = t, h
	return g.hot
}
