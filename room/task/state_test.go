package task

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// TestStateOfPlace: a snapshot keeps the card and the marks of what was said up to there; one of the past what is pinned alone; and a
// new session is given just that.
func TestStateOfPlace(t *testing.T) {
	s := ordered(t)
	ids := []tidemark.EntryID{s.logged(t, tidemark.FromPerson, "a"), s.logged(t, tidemark.FromPerson, "b"), s.logged(t, tidemark.FromPerson, "c")}
	if k, err := s.State(t.Context(), host.LogEnd, false); err != nil || room.JSON(k) != "{}" {
		t.Errorf("of none %s, %v", room.JSON(k), err)
	}
	if stmts, err := s.Restore(t.Context(), "agent:main:new", "agent:main:main", 1, room.State{}); stmts != nil || err != nil {
		t.Errorf("of none %v, %v", stmts, err)
	}
	s.neighbours(t, ids...)
	s.mustKeep(t, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Goal, Text: "go"}}, Pin: ids[1:2], Superseded: []Supersession{{ids[0], ids[1], "why"}, {ids[1], ids[2], "so"}}})
	s.mustKeep(t, Change{By: tidemark.FromPerson, Pin: []tidemark.EntryID{ids[0], ids[2]}, Add: []Added{{Kind: Goal, Text: "on"}}})
	ids = append(ids, s.logged(t, tidemark.FromPerson, "d"), s.logged(t, tidemark.FromPerson, "e"))
	s.mustKeep(t, Change{By: tidemark.FromPerson, Superseded: []Supersession{{ids[3], ids[4], "too"}}})
	seqs, err := s.Log.Seqs(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	mark := func(i int, pinned int64, by, why string) room.StateMark {
		return room.StateMark{ID: string(ids[i]), Pinned: pinned, Superseded: by, Reason: why}
	}
	card := []byte(s.lines(t, `SELECT card FROM tasks WHERE key = 'agent:main:main' LIMIT 1`))
	b, c := string(ids[1]), string(ids[2])
	for _, tc := range []struct {
		name string
		upTo int64
		past bool
		want room.State
	}{
		{"now", host.LogEnd, false, room.State{Card: card, Version: 3, Marks: []room.StateMark{mark(2, 2, "", ""), mark(0, 2, b, "why"), mark(1, 1, c, "so"), mark(3, 0, string(ids[4]), "too")}}},
		{"of the past", seqs[ids[2]], true, room.State{Marks: []room.StateMark{mark(2, 2, "", ""), mark(0, 2, "", ""), mark(1, 1, "", "")}}},
		{"of earlier", seqs[ids[1]], true, room.State{Marks: []room.StateMark{mark(0, 2, "", ""), mark(1, 1, "", "")}}},
	} {
		if k, err := s.State(t.Context(), tc.upTo, tc.past); err != nil || room.JSON(k) != room.JSON(tc.want) {
			t.Errorf("%s: %s, %v, want %s", tc.name, room.JSON(k), err, room.JSON(tc.want))
		}
	}
	s.mustKeep(t, Change{By: tidemark.FromPerson, Unpin: ids[2:], New: true})
	if k, err := s.State(t.Context(), host.LogEnd, true); err != nil || len(k.Marks) != 2 {
		t.Errorf("of the past, what is pinned no more: %s, %v", room.JSON(k), err)
	}
	state := room.State{Card: []byte(`{"id":"x"}`), Version: 9, Marks: []room.StateMark{mark(0, 2, b, "why"), mark(1, 0, "", "")}}
	for _, tc := range []struct {
		to   string
		upTo string
		of   room.State
		want string
	}{
		{"agent:main:new", "SELECT max(since) FROM premises WHERE key = 'agent:main:main'", state, fmt.Sprintf("task 9 {\"id\":\"x\"}\npremises 3\nmark %s 2 %s why\nmark %s 0  ", ids[0], b, ids[1])},
		{"agent:main:one", "SELECT max(since) FROM premises WHERE key = 'agent:main:main'", room.State{Marks: state.Marks[:1]}, fmt.Sprintf("premises 3\nmark %s 2 %s why", ids[0], b)},
		{"agent:main:old", "SELECT max(since) - 1 FROM premises WHERE key = 'agent:main:main'", room.State{}, "premises 2"},
	} {
		upTo := s.lines(t, tc.upTo+` LIMIT 1`)
		var n int64
		if _, err := fmt.Sscan(upTo, &n); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time nothing more
			stmts, err := s.Restore(t.Context(), tidemark.Key(tc.to), "agent:main:main", n, tc.of)
			if err == nil {
				err = s.DB.Tx(t.Context(), stmts)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		got := s.lines(t, `SELECT 'task ' || version || ' ' || card FROM tasks WHERE key = ?1 UNION ALL SELECT 'premises ' || count(*) FROM premises WHERE key = ?1 UNION ALL SELECT * FROM (SELECT 'mark ' || id || ' ' || pinned || ' ' || superseded || ' ' || reason FROM marks WHERE key = ?1 ORDER BY id) LIMIT 9`, tc.to)
		if got != tc.want {
			t.Errorf("%s has\n%s\nwant\n%s", tc.to, got, tc.want)
		}
		for _, table := range []string{"tasks", "premises", "marks"} {
			if err := s.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `DELETE FROM ` + table + ` WHERE key = ?`, Args: []any{tc.to}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDerivedTask: where nobody keeps a task, it is what a person said last who may set it, and calls without a good result.
func TestDerivedTask(t *testing.T) {
	s := bare(t)
	s.MayChange = func(o tidemark.Origin) bool { return o.Owner }
	at := s.Runtime.Now()
	put := func(log string, o tidemark.Origin, tokens tidemark.Tokens, m tidemark.Message) tidemark.EntryID {
		t.Helper()
		at = at.Add(time.Second)
		id := tidemark.EntryID(tidemark.NewID(at))
		if err := s.Log.Append(t.Context(), log, tidemark.Entry{ID: id, Kind: tidemark.KindMessage, At: at, Origin: o, Tokens: tokens, Payload: m.AppendJSON(nil)}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	says := func(text string) tidemark.Message { return tidemark.NewText(tidemark.User, text) }
	owner := tidemark.Origin{From: tidemark.FromPerson, Owner: true}
	if err := s.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO logs(id, key, created) VALUES(?, 'agent:main:main', 0)`, Args: []any{testLog}}}); err != nil {
		t.Fatal(err)
	}
	if v, err := s.View(t.Context()); err != nil || v.Items == nil || len(v.Items) > 0 || v.Kept {
		t.Errorf("where nothing was said: %+v, %v", v, err)
	}
	early := put(testLog, tidemark.Origin{From: tidemark.FromPerson, Channel: tidemark.ChannelImport}, 10, says("imported words"))
	if v, err := s.View(t.Context()); err != nil || len(v.Items) != 1 || v.Items[0].Text != "imported words" {
		t.Errorf("where one thing was said: %+v, %v", v.Items, err)
	}
	put(testLog, owner, 10, tidemark.NewText(tidemark.Assistant, "an answer by a person"))
	want := put(testLog, owner, maxSaidTokens, says("mend the gauge"))
	wantAt := at.UnixMilli()
	call := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", "look", nil)}}
	open := put(testLog, tidemark.Origin{From: tidemark.FromModel}, 10, call)
	put(testLog, tidemark.Origin{From: tidemark.FromModel}, 10, tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("d", "find", nil)}})
	put(testLog, owner, maxSaidTokens+1, says("what was pasted"))
	put(testLog, tidemark.Origin{From: tidemark.FromPerson}, 10, says("a guest's"))
	put(testLog, tidemark.Origin{From: tidemark.FromTool}, 10, says("a tool's"))
	put(testLog, tidemark.Origin{From: tidemark.FromAgent, Owner: true}, 10, says("another conversation's"))
	put(testLog, owner, 10, says("?!"))
	if err := s.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO entries(id, log, kind, role, at, origin, hash, payload) VALUES('e', ?1, 'event', '', 1, '{"from":"person","owner":true}', '', '{"type":"x"}'), ('f', 'broken', 'message', 'user', 1, '{"from":"person","owner":true}', '', '5')`, Args: []any{testLog}}}); err != nil {
		t.Fatal(err)
	}
	put("elsewhere", owner, 10, says("of another log"))
	heard, err := s.said(t.Context(), testLog)
	if err != nil || len(heard) != 2 || heard[0].id != want || heard[0].text != "mend the gauge" || heard[1].id != early {
		t.Errorf("said %+v, %v", heard, err)
	}
	if heard[0].at.UnixMilli() != wantAt {
		t.Errorf("said at %s", heard[0].at)
	}
	put("broken", owner, 10, says("go on"))
	if heard, err := s.said(t.Context(), "broken"); err != nil || len(heard) != 1 || heard[0].text != "go on" {
		t.Errorf("beside what cannot be read: %+v, %v", heard, err)
	}
	v, err := s.View(t.Context())
	if err != nil || v.Kept || v.ID != "" || v.Phase != recall.Idle || len(v.Items) != 3 || v.Pinned == nil || v.Superseded == nil {
		t.Fatalf("%+v, %v", v, err)
	}
	if g, l := v.Items[0], v.Items[1]; g.Kind != Goal || g.Text != "mend the gauge" || g.Entry != want || g.By != tidemark.FromPerson || g.At.UnixMilli() != wantAt || l.Kind != Loop || l.Entry != open || l.By != tidemark.FromTool || l.Text != "the call of look has no result yet" || v.Items[2].Text != "the call of find has no result yet" {
		t.Errorf("items %+v", v.Items)
	}
	for range recentMessages - 7 { // the call is the oldest that is read
		put(testLog, tidemark.Origin{From: tidemark.FromModel}, 10, tidemark.NewText(tidemark.Assistant, "x"))
	}
	for i, want := range []int{3, 2} {
		if v, err := s.View(t.Context()); err != nil || len(v.Items) != want {
			t.Errorf("%d further: %+v, %v", i, v.Items, err)
		}
		put(testLog, tidemark.Origin{From: tidemark.FromModel}, 10, tidemark.NewText(tidemark.Assistant, "x"))
	}
}
