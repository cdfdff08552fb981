package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// ticking is a runtime in which each look at the clock is a millisecond behind the one before, so that ids sort as they were made.
type ticking struct {
	tidemark.Runtime
	n int
}

func (c *ticking) Now() time.Time {
	c.n++
	return time.Date(2026, 3, 10, 12, 0, 0, c.n*1e6, time.UTC)
}

// ordered is a bench on such a clock.
func ordered(t *testing.T) bench {
	t.Helper()
	s := bare(t)
	s.Runtime = &ticking{Runtime: s.Runtime}
	return s
}

// crowd is a database in which somebody else changes the task before some of its transactions.
type crowd struct {
	tidemark.DB
	before func() // what happens once before a transaction
	down   bool   // queries fail
	part   string // of those that do, if not all
	left   int
	tries  int
	err    error
}

func (c *crowd) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if c.down && strings.Contains(sql, c.part) {
		return nil, tidemark.ErrUnavailable
	}
	return c.DB.Query(ctx, sql, args...)
}

func (c *crowd) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if f := c.before; f != nil {
		c.before = nil
		f()
	}
	c.tries++
	if c.left--; c.left >= 0 {
		return c.err
	}
	return c.DB.Tx(ctx, stmts)
}

// neighbours have the same entries marked, and a task each.
func (s bench) neighbours(t *testing.T, ids ...tidemark.EntryID) {
	t.Helper()
	if err := s.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	var stmts []tidemark.Stmt
	for _, key := range []string{"agent:main:aunt", "agent:main:zoe"} {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO tasks(key, version, card) VALUES(?, 1, '{"items":[{"name":"g1","kind":"goal","text":"theirs"}]}')`, Args: []any{key}},
			tidemark.Stmt{SQL: `INSERT INTO premises(key, since, premise, task) VALUES(?, 1, 'theirs', 'theirs')`, Args: []any{key}})
		for i, id := range ids {
			stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO marks(key, id, pinned, superseded, reason) VALUES(?, ?, ?, 'theirs', 'theirs')`, Args: []any{key, string(id), 100 + i}})
		}
	}
	if err := s.DB.Tx(t.Context(), stmts); err != nil {
		t.Fatal(err)
	}
	before := s.lines(t, theirs)
	t.Cleanup(func() {
		if after := s.lines(t, theirs); after != before {
			t.Errorf("of others there is\n%s\nwant\n%s", after, before)
		}
	})
}

const theirs = `SELECT key || version || card FROM tasks WHERE key <> 'agent:main:main' UNION ALL SELECT key || since || premise || task FROM premises WHERE key <> 'agent:main:main'
	UNION ALL SELECT key || id || pinned || superseded || reason FROM marks WHERE key <> 'agent:main:main' ORDER BY 1 LIMIT 999`

// lines are the rows of a query of one text.
func (s bench) lines(t *testing.T, sql string, args ...any) string {
	t.Helper()
	rows, err := s.DB.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		out = append(out, r.Text(0))
	}
	return strings.Join(out, "\n")
}

const marks = `SELECT id || ' ' || pinned || ' ' || superseded || ' ' || reason FROM marks WHERE key = 'agent:main:main' ORDER BY id LIMIT 999`

// TestKeepMarks: what a change says of single entries is written of this conversation's alone, and what could not be done is told.
func TestKeepMarks(t *testing.T) {
	s := ordered(t)
	var ids []tidemark.EntryID
	for i := range 5 {
		ids = append(ids, s.logged(t, tidemark.FromPerson, fmt.Sprint("message ", i)))
	}
	far := s.logged(t, tidemark.FromPerson, "of another conversation")
	tool := s.logged(t, tidemark.FromTool, "a result")
	event := tidemark.EntryID(tidemark.NewID(s.Runtime.Now()))
	if err := s.Log.Append(t.Context(), testLog, tidemark.Entry{ID: event, Kind: tidemark.KindEvent, At: s.Runtime.Now(), Payload: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	s.Reaches = func(_ context.Context, e tidemark.Entry) (bool, error) { return e.ID != far, nil }
	s.neighbours(t, ids...)
	change := func(ch Change, want ...string) {
		t.Helper()
		if _, notes, err := s.keep(t.Context(), testLog, ch); err != nil || !slices.Equal(notes, want) {
			t.Errorf("%+v: notes %q, %v, want %q", ch, notes, err, want)
		}
	}
	const none = " is no message of this conversation"
	change(Change{By: tidemark.FromModel, Pin: []tidemark.EntryID{ids[0], far, ids[1], event, "unknown"}}, string(far)+none, string(event)+none, "unknown"+none)
	change(Change{By: tidemark.FromModel, Unpin: []tidemark.EntryID{ids[1], ids[2]}}, string(ids[2])+" is not pinned")
	change(Change{By: tidemark.FromModel, Superseded: []Supersession{{ids[0], ids[3], " it\nmoved "}, {ids[4], ids[2], "backwards"}, {ids[1], tool, "a tool's word"}, {ids[1], far, "x"}, {far, ids[4], "x"}, {ids[2], ids[4], "later"}}},
		string(ids[2])+" is older than what it would supersede", string(ids[1])+" was said by a person, so only what a person said later supersedes it", string(far)+none, string(far)+none)
	change(Change{By: tidemark.FromPerson, Superseded: []Supersession{{ids[1], tool, "a person says so"}}})
	change(Change{By: tidemark.FromModel, Superseded: []Supersession{{ids[0], ids[4], strings.Repeat("w", 300)}}})
	if got, want := s.lines(t, marks), strings.Join([]string{fmt.Sprint(ids[0], " 1 ", ids[4], " ", strings.Repeat("w", 200), "…"), fmt.Sprint(ids[1], " 0 ", tool, " a person says so"), fmt.Sprint(ids[2], " 0 ", ids[4], " later")}, "\n"); got != want {
		t.Errorf("marks\n%s\nwant\n%s", got, want)
	}
	v, err := s.View(t.Context())
	if err != nil || !slices.Equal(v.Pinned, ids[:1]) || len(v.Superseded) != 3 || v.Superseded[0] != (Supersession{ids[0], ids[4], strings.Repeat("w", 200) + "…"}) || !v.Kept {
		t.Errorf("view %+v, %v", v, err)
	}
	got, err := s.Marks(t.Context(), append(ids, far))
	if err != nil || !got[ids[0]].Pinned || got[ids[0]].Importance != pinImportance || got[ids[0]].SupersededBy != ids[4] || got[ids[1]].Pinned || got[ids[1]].Importance != 0 || got[ids[1]].SupersededBy != tool || got[ids[3]].SupersededBy != "" {
		t.Errorf("known of them %+v, %v", got, err)
	}
	if err := s.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO marks(key, id, superseded) VALUES('agent:main:main', 'bare', 'later')`}}); err != nil {
		t.Fatal(err)
	}
	if _, all, err := s.marked(t.Context()); err != nil || len(all) != 4 || !slices.Contains(all, Supersession{"bare", "later", ""}) {
		t.Errorf("with one for no reason: %+v, %v", all, err)
	}
	if pins, err := s.Pinned(t.Context(), testLog); err != nil || len(pins) != 1 || !pins[ids[0]] {
		t.Errorf("pins %v, %v", pins, err)
	}
	change(Change{By: tidemark.FromModel, Unpin: ids[3:4]}, string(ids[3])+" is not pinned")
	if n := s.lines(t, `SELECT version FROM tasks WHERE key = 'agent:main:main' LIMIT 1`); n != "5" {
		t.Errorf("%s changes were kept, want 5", n)
	}
	s.Reaches = func(context.Context, tidemark.Entry) (bool, error) { return false, errors.New("away") }
	for _, ch := range []Change{{Pin: ids[:1]}, {Superseded: []Supersession{{ids[0], ids[1], "x"}}}} {
		if _, _, err := s.keep(t.Context(), testLog, ch); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("%+v, where nobody can tell whose it is: %v", ch, err)
		}
	}
}

// TestPinsAgain: what is pinned anew, or let go at once, takes nobody's place.
func TestPinsAgain(t *testing.T) {
	s := ordered(t)
	var ids []tidemark.EntryID
	for i := range maxPins + 1 {
		ids = append(ids, s.logged(t, tidemark.FromPerson, fmt.Sprint("message ", i)))
	}
	s.neighbours(t, ids...)
	for part := range slices.Chunk(ids[:maxPins], maxTaskCall) {
		s.mustKeep(t, Change{By: tidemark.FromModel, Pin: part})
	}
	for _, ch := range []Change{{Pin: ids[:1]}, {Pin: []tidemark.EntryID{ids[maxPins], ids[maxPins]}, Unpin: ids[1:2]}} {
		ch.By = tidemark.FromModel
		if _, notes, err := s.keep(t.Context(), testLog, ch); err != nil || len(notes) > 0 {
			t.Errorf("%+v: %q, %v", ch, notes, err)
		}
	}
	if _, notes, err := s.keep(t.Context(), testLog, Change{By: tidemark.FromModel, Pin: ids[1:2]}); err != nil || len(notes) != 1 || notes[0] != fmt.Sprintf("%s is not pinned any more: at most %d messages are at a time, and it was pinned first", ids[2], maxPins) {
		t.Errorf("one too many: %q, %v", notes, err)
	}
	if n := s.lines(t, `SELECT count(*) FROM marks WHERE key = 'agent:main:main' AND pinned > 0 LIMIT 1`); n != fmt.Sprint(maxPins) {
		t.Errorf("%s pins", n)
	}
	s.mustKeep(t, Change{By: tidemark.FromModel, Unpin: ids[5:8]})
	if _, notes, err := s.keep(t.Context(), testLog, Change{By: tidemark.FromModel, Pin: []tidemark.EntryID{s.logged(t, tidemark.FromPerson, "one more")}}); err != nil || len(notes) > 0 {
		t.Errorf("where there is room again: %q, %v", notes, err)
	}
	var many []tidemark.EntryID // more than one statement asks for
	for i := range 120 {
		many = append(many, tidemark.EntryID(fmt.Sprint("none", i)))
	}
	if got, err := s.Marks(t.Context(), append(many, ids[0], ids[3])); err != nil || !got[ids[0]].Pinned || !got[ids[3]].Pinned {
		t.Errorf("behind a hundred others: %+v, %v", got[ids[0]], err)
	}
}

// TestKeepBesideOthers: a change is done upon what others made of the card meanwhile, some times, and a failure is told.
func TestKeepBesideOthers(t *testing.T) {
	for _, tc := range []struct {
		times int
		err   error
		want  error
		tries int
	}{{3, tidemark.ErrConflict, nil, 4}, {4, tidemark.ErrConflict, tidemark.ErrConflict, 4}, {1, tidemark.ErrUnavailable, tidemark.ErrUnavailable, 1}} {
		s := bare(t)
		s.mustKeep(t, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "first"}}})
		db := &crowd{DB: s.DB, left: tc.times, err: tc.err}
		s.DB = db
		c, _, err := s.keep(t.Context(), testLog, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "second"}}})
		if !errors.Is(err, tc.want) || err != nil && !strings.Contains(err.Error(), "keep the task") || db.tries != tc.tries || err == nil && names(c) != "g1 g2" {
			t.Errorf("%d times %v: %v behind %d tries, %s", tc.times, tc.err, err, db.tries, names(c))
		}
	}
	beside := bare(t)
	beside.neighbours(t)
	beside.mustKeep(t, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "first"}}})
	db := &crowd{DB: beside.DB}
	beside.DB = db
	db.before = func() {
		beside.mustKeep(t, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "second"}}})
	}
	if c := beside.mustKeep(t, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "third"}}}); names(c) != "g1 g2 g3" || c.Items[2].Text != "third" {
		t.Errorf("beside another change the card is %+v", c)
	}
	beside.Made = &room.Made{DB: db}
	db.down = true
	_, _, err := beside.keep(t.Context(), testLog, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "x"}}})
	db.part = "FROM tasks"
	if _, _, err := beside.keep(t.Context(), testLog, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "x"}}}); !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("a card that cannot be read: %v", err)
	}
	db.part = ""
	_, pushed := beside.Push(t.Context(), 100, 100)
	db.down = false
	if !errors.Is(err, tidemark.ErrUnavailable) || !errors.Is(pushed, tidemark.ErrUnavailable) {
		t.Errorf("a store that is down: %v, %v", err, pushed)
	}
	s := bare(t)
	guard := tidemark.Stmt{SQL: `UPDATE logs SET key = key WHERE id = 'nowhere'`, Want: 1}
	if _, _, err := s.keep(t.Context(), testLog, Change{By: tidemark.FromModel, Add: []Added{{Kind: Goal, Text: "x"}}}, guard); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("of a run that works no more: %v", err)
	}
	if n := s.lines(t, `SELECT count(*) FROM tasks LIMIT 1`); n != "0" {
		t.Errorf("%s tasks are kept all the same", n)
	}
}

// TestKeepWrites: a change is an event of the log by who made it, and a version of the card; the premise is noted where it changes.
func TestKeepWrites(t *testing.T) {
	s := ordered(t)
	s.neighbours(t)
	s.mustKeep(t, Change{By: tidemark.FromModel, Add: []Added{{Kind: Loop, Text: "order a float"}}})
	s.mustKeep(t, Change{By: tidemark.FromModel, Add: []Added{{Kind: KeyEvent, Text: "it broke"}}})
	s.mustKeep(t, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "mend it"}}})
	s.mustKeep(t, Change{By: tidemark.FromPerson, New: true})
	var got []string
	entries, err := s.Log.Forward(t.Context(), testLog, 0, host.LogEnd)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var event tidemark.Event
		if err := json.Unmarshal(e.Payload, &event); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Kind, " ", e.Origin.From, " ", event.Type, " ", event.Text, " ", string(event.Data)))
	}
	if want := []string{`event model task Task: added 1. {"by":"model","add":[{"kind":"loop","text":"order a float"}]}`, `event model task Task: added 1. {"by":"model","add":[{"kind":"event","text":"it broke"}]}`,
		`event person task Task: added 1. {"by":"person","add":[{"kind":"goal","text":"mend it"}]}`, `event person task Task: a new task. {"by":"person","new":true}`}; !slices.Equal(got, want) {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	premise := recall.Task{Goals: []string{"mend it"}}.Premise()
	if got, want := s.lines(t, `SELECT since || ' ' || premise || ' ' || task FROM premises WHERE key = 'agent:main:main' ORDER BY since LIMIT 9`),
		fmt.Sprintf("%d  %s\n%d %s %s\n%d  %s", entries[0].Seq, entries[0].ID, entries[2].Seq, premise, entries[0].ID, entries[3].Seq, entries[3].ID); got != want {
		t.Errorf("premises\n%s\nwant\n%s", got, want)
	}
	if got := s.lines(t, `SELECT version FROM tasks WHERE key = 'agent:main:main' LIMIT 1`); got != "4" {
		t.Errorf("version %s", got)
	}
}

// TestChangeByWhom: who may not change the conversation changes no task, and a person's change is a person's, whatever it says.
func TestChangeByWhom(t *testing.T) {
	s := bare(t)
	s.neighbours(t)
	s.MayChange = func(o tidemark.Origin) bool { return o.Owner }
	owner := tidemark.Origin{Owner: true}
	if _, err := s.Change(t.Context(), Change{Add: []Added{{Kind: Goal, Text: "x"}}}, tidemark.Origin{}); !errors.Is(err, tidemark.ErrForbidden) || !strings.Contains(err.Error(), "task of agent:main:main: only the owner changes it") {
		t.Errorf("of another: %v", err)
	}
	if _, err := s.Change(t.Context(), Change{Phase: "sleeping"}, owner); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("what cannot be: %v", err)
	}
	v, err := s.Change(t.Context(), Change{By: tidemark.FromModel, Call: "r/1/0", Add: []Added{{Kind: Constraint, Text: "ask me", Entry: "made up"}}, Close: []string{"g9"}}, owner)
	if err != nil || !v.Kept || v.Phase != recall.Idle || len(v.Items) != 1 || v.Items[0].By != tidemark.FromPerson || v.Items[0].Entry == "made up" || v.Text != "Constraints:\n- c1: ask me" || !slices.Equal(v.Notes, []string{`"g9" is no item of the card`}) {
		t.Errorf("%+v, %v", v, err)
	}
	call := func(input string, from ...tidemark.Origin) string {
		c := room.Call{Turn: room.Turn{Run: "r", Round: 2, Log: testLog, Origins: from}, N: 3, ID: "call", Input: []byte(input), Fence: func() tidemark.Stmt { return tidemark.Stmt{SQL: `SELECT 1`} }}
		b := s.Call(t.Context(), c)
		if b.ToolUseID != "call" {
			t.Errorf("it answers %q", b.ToolUseID)
		}
		return fmt.Sprint(b.IsError, " ", b.Content[0].Text)
	}
	const card = "Constraints:\n- c1: ask me"
	for _, tc := range []struct {
		name, input string
		from        []tidemark.Origin
		want        string
	}{
		{"looked at by another", `{}`, []tidemark.Origin{{}}, "false " + card},
		{"changed by another", `{"phase":"planning"}`, []tidemark.Origin{owner, {}}, "true The task here is the owner's, and this turn answers somebody else: nothing was changed."},
		{"changed", `{"phase":"planning","add":[{"kind":"goal","text":"go","entry":"x"}]}`, []tidemark.Origin{owner}, "false Phase: planning\n" + card + "\nGoals:\n- g2: go"},
		{"carried out again", `{"add":[{"kind":"goal","text":"stop"}]}`, []tidemark.Origin{owner}, "false Phase: planning\n" + card + "\nGoals:\n- g2: go"},
		{"what cannot be", `{"phase":"sleeping"}`, []tidemark.Origin{owner}, "true phase \"sleeping\": want idle"},
		{"what cannot be read", `{`, []tidemark.Origin{owner}, "true input: "},
	} {
		if got := call(tc.input, tc.from...); got != tc.want && !(strings.HasPrefix(tc.want, "true") && strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if got := s.lines(t, `SELECT card ->> '$.calls' FROM tasks WHERE key = 'agent:main:main' LIMIT 1`); got != `["r/2/3"]` {
		t.Errorf("calls %s", got)
	}
	for _, tc := range []struct {
		offered State
		plain   int
		points  int
	}{{On, 1, 1}, {Auto, 0, 1}, {Off, 0, 0}} {
		s.offered = tc.offered
		if plain, points := len(s.Tools(false)), len(s.Tools(true)); plain != tc.plain || points != tc.points {
			t.Errorf("%q: offered %d, and %d with pointers", tc.offered, plain, points)
		}
	}
}

// TestPushedCard: a kept card is pushed under its title, within what there is for both.
func TestPushedCard(t *testing.T) {
	s := bare(t)
	s.neighbours(t)
	if got, err := s.Push(t.Context(), 100, 100); got != "" || err != nil {
		t.Errorf("none is kept: %q, %v", got, err)
	}
	s.mustKeep(t, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "go"}, {Kind: Constraint, Text: "ask me"}}})
	const title, rule, goal = "[The task card, as task_state keeps it.]\n", "Constraints:\n- c2: ask me", "\nGoals:\n- g1: go"
	tokens := tidemark.EstimateText
	head, all := tokens(title), tokens(rule+goal+"\n")
	for _, tc := range []struct {
		rest, all tidemark.Tokens
		want      string
	}{{1000, 1000, title + rule + goal}, {head + all - tokens(rule+"\n"), head + all, title + rule + goal}, {1000, head + all - 1, title + rule}, {head + all - tokens(rule+"\n") - 1, 1000, title + rule}, {1000, head + tokens(rule+"\n") - 1, title + strings.TrimPrefix(goal, "\n")}} {
		if got, err := s.Push(t.Context(), tc.rest, tc.all); err != nil || got != tc.want {
			t.Errorf("%d, of all %d: %q, %v, want %q", tc.rest, tc.all, got, err, tc.want)
		}
	}
	if stmts, err := s.PinStmts(t.Context(), testLog, nil); stmts != nil || err != nil {
		t.Errorf("nothing to pin: %v, %v", stmts, err)
	}
	id := s.logged(t, tidemark.FromPerson, "x")
	stmts, err := s.PinStmts(t.Context(), testLog, []tidemark.EntryID{id})
	if err == nil {
		err = s.DB.Tx(t.Context(), stmts)
	}
	if got := s.lines(t, marks); err != nil || got != string(id)+" 2  " {
		t.Errorf("pinned %q, %v", got, err)
	}
	if got := s.lines(t, `SELECT kind || origin || payload FROM entries ORDER BY seq DESC LIMIT 1`); got != `event{"from":"system"}{"type":"task","text":"Task: pinned 1.","data":{"by":"model","pin":["`+string(id)+`"]}}` {
		t.Errorf("logged %s", got)
	}
}
