package sittings

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room"
)

const mine tidemark.Key = "agent:main:main"

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// still is a runtime whose clock stands until a test moves it.
type still struct {
	tidemark.Runtime
	now   time.Time
	slept int
}

func (s *still) Now() time.Time { return s.now }

func (s *still) Sleep(ctx context.Context, _ time.Duration) error {
	s.slept++
	return context.Cause(ctx)
}

// crossed is a database in which something happens once before a transaction.
type crossed struct {
	tidemark.DB
	before func()
}

func (c *crossed) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if f := c.before; f != nil {
		c.before = nil
		f()
	}
	return c.DB.Tx(ctx, stmts)
}

// keeps is an agent that keeps sittings.
type keeps struct {
	had []memory.Sitting
	err error
}

func (k *keeps) Sittings(_ context.Context, s []memory.Sitting) error {
	k.had = append(k.had, s...)
	return k.err
}

// bench is a room over a log of its own, beside one of somebody else.
type bench struct {
	*testing.T
	*Room
	db      *crossed
	clock   *still
	current string
	tasks   map[tidemark.EntryID]string
	did     []string
	warned  []string
}

func newBench(t *testing.T, agent any) *bench {
	t.Helper()
	b := &bench{T: t, db: &crossed{DB: hosttest.DB(t)}, clock: &still{Runtime: hosttest.Runtime(t), now: noon}, current: "log", tasks: map[tidemark.EntryID]string{}}
	log, err := host.OpenLog(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	note := func(text string) tidemark.Stmt {
		return tidemark.Stmt{SQL: `INSERT INTO notes(text) VALUES(?)`, Args: []any{text}}
	}
	b.Room = Make(room.Ports{
		Self: room.Self{Key: mine, DB: b.db, Made: &room.Made{DB: b.db}, Runtime: b.clock, Warn: func(what string, _ error) { b.warned = append(b.warned, what) }},
		History: room.History{Log: log, Current: func(context.Context) (string, error) { return b.current, nil },
			MarksOf: func(_ context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]room.Mark, error) {
				out := map[tidemark.EntryID]room.Mark{}
				for _, id := range ids {
					out[id] = room.Mark{Task: b.tasks[id]}
				}
				return out, nil
			}},
		Work: room.Work{Due: func(kind string, at time.Time, _ string) tidemark.Stmt {
			return note(fmt.Sprint("due ", kind, " ", at.Sub(noon)))
		},
			Undue: func(kind string) tidemark.Stmt { return note("undue " + kind) }},
		Mail: room.Mail{Agent: agent, Tell: func(context.Context) { b.did = append(b.did, "tell") },
			Outbox: func(id, kind string, payload any, after time.Duration) []tidemark.Stmt {
				s := payload.(memory.Sitting)
				return []tidemark.Stmt{note(fmt.Sprintf("%s %s %s: %d of %s", id, kind, after, s.Count, s.Log))}
			}},
	}).(*Room)
	for _, sql := range []string{`CREATE TABLE notes(text TEXT NOT NULL)`, `INSERT INTO logs(id, key, created) VALUES('old', '` + string(mine) + `', 0), ('log', '` + string(mine) + `', 0), ('theirs', 'agent:main:aunt', 0)`} {
		b.exec(sql)
	}
	if err := b.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	b.exec(`INSERT INTO episodes(key, upto) VALUES('agent:main:aunt', 99999), ('agent:main:zoe', 99999)`)
	t.Cleanup(func() {
		if got := b.rows(`SELECT count(*) FROM episodes WHERE upto = 99999 LIMIT 1`); got != "2" {
			t.Errorf("of others there are %s rows", got)
		}
	})
	return b
}

func (b *bench) exec(sql string, args ...any) {
	b.Helper()
	hosttest.Exec(b.T, b.db.DB, sql, args...)
}

// rows are those of a query of one text.
func (b *bench) rows(sql string, args ...any) string {
	b.Helper()
	return hosttest.Lines(b.T, b.DB, sql, args...)
}

// said puts a message into a log, so long behind the beginning.
func (b *bench) said(log, from, text string, after time.Duration) tidemark.EntryID {
	b.Helper()
	role := map[string]tidemark.Role{tidemark.FromModel: tidemark.Assistant}[from]
	if role == "" {
		role = tidemark.User
	}
	id := tidemark.EntryID(tidemark.NewID(noon.Add(after)))
	if err := b.Room.Log.Append(b.Context(), log, tidemark.Entry{ID: id, Kind: tidemark.KindMessage, At: noon.Add(after), Origin: tidemark.Origin{From: from}, Payload: tidemark.NewText(role, text).AppendJSON(nil)}); err != nil {
		b.Fatal(err)
	}
	return id
}

// wakes wakes the room and tells what it wrote.
func (b *bench) wakes(after time.Duration) string {
	b.Helper()
	b.clock.now = noon.Add(after)
	b.exec(`DELETE FROM notes`)
	if err := b.Wake(b.Context()); err != nil {
		b.Fatal(err)
	}
	out := b.rows(`SELECT text FROM notes ORDER BY rowid LIMIT 99`)
	if upto := b.rows(`SELECT upto FROM episodes WHERE key = ? LIMIT 1`, string(mine)); upto != "" {
		out += "\nupto " + upto
	}
	return out
}

// TestWakeTells: each sitting that is over is told once; one that may go on is looked at again when it may be over.
func TestWakeTells(t *testing.T) {
	b := newBench(t, nil)
	b.said("theirs", tidemark.FromPerson, "of another", 0)
	first := b.said("log", tidemark.FromPerson, "deploy the server", 0)
	b.said("log", tidemark.FromModel, "done", time.Minute)
	b.said("theirs", tidemark.FromPerson, "of another", 20*time.Minute)
	second := b.said("log", tidemark.FromPerson, "holidays in Rome", 41*time.Minute)
	for _, step := range []struct {
		after time.Duration
		want  string
		tells int
	}{
		{50 * time.Minute, fmt.Sprintf("due episode 1h20m0s\nepisode:%s:%s episode 1m0s: 2 of log\nupto 3", mine, first), 1},
		{71*time.Minute - 1, "due episode 1h40m59.999999999s\nupto 3", 1},
		{71 * time.Minute, fmt.Sprintf("undue episode\nepisode:%s:%s episode 1m0s: 1 of log\nupto 5", mine, second), 2},
		{72 * time.Minute, "undue episode\nupto 5", 2},
	} {
		if got := b.wakes(step.after); got != step.want || len(b.did) != step.tells {
			t.Errorf("%s behind: %s, told %d times, want %s", step.after, got, len(b.did), step.want)
		}
	}
	third := b.said("log", tidemark.FromPerson, "and on", 80*time.Minute)
	b.current = "new" // a reset ends it
	if got, want := b.wakes(81*time.Minute), fmt.Sprintf("undue episode\nepisode:%s:%s episode 1m0s: 1 of log\nupto 6", mine, third); got != want {
		t.Errorf("behind a reset: %s, want %s", got, want)
	}
	b.said("log", tidemark.FromPerson, "late", 82*time.Minute)
	b.db.before = func() { b.exec(`UPDATE episodes SET upto = 7 WHERE key = ?`, string(mine)) }
	if err := b.Wake(t.Context()); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "store sittings") {
		t.Errorf("told by another meanwhile: %v", err)
	}
	b.exec(`DROP TABLE logs`)
	b.Closed(t.Context())
	if len(b.warned) != 1 || b.warned[0] != "tell sittings" {
		t.Errorf("warned of %q", b.warned)
	}
	if got := b.EndStmts(); len(got) != 1 || fmt.Sprint(got[0].Args...) != "due episode 1h51m0s" || b.Wakes() != "episode" || b.Reports() != "episode" {
		t.Errorf("behind a turn %v", got)
	}
}

// TestWakeOfMany: of a sitting that is longer than any a part is told at once, and the rest behind it.
func TestWakeOfMany(t *testing.T) {
	for n, want := range map[int]string{maxSitting - 1: "due episode 1h0m0s", maxSitting: "due episode 30m0s", maxSitting + 300: "due episode 30m0s"} {
		b := newBench(t, nil)
		b.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) INSERT INTO entries(id, log, kind, role, at, origin, hash, payload) SELECT printf('e%05d', n), 'log', 'message', 'user', ?, '{"from":"tool"}', '', '{}' FROM i`, n, noon.Add(29*time.Minute).UnixMilli())
		got := b.wakes(30 * time.Minute)
		if n >= maxSitting {
			want += "\nepisode:agent:main:main:e00001 episode 1m0s: 2000 of log\nupto 2000"
		}
		if got != want || b.clock.slept != min(n, maxSitting)/sittingPage {
			t.Errorf("of %d: %s behind %d pauses, want %s", n, got, b.clock.slept, want)
		}
	}
}

// TestMomentsOf: what persons and the model said is read, up to a size, and of the rest that it was said.
func TestMomentsOf(t *testing.T) {
	b := newBench(t, nil)
	ids := []tidemark.EntryID{b.said("old", tidemark.FromPerson, "a <system-reminder>x</system-reminder>word", 0), b.said("log", tidemark.FromModel, "an answer", time.Minute), b.said("log", tidemark.FromTool, "a result", 2*time.Minute)}
	b.said("theirs", tidemark.FromPerson, "of another", 3*time.Minute)
	size := len(tidemark.NewText(tidemark.User, "").AppendJSON(nil))
	for more := range 2 {
		ids = append(ids, b.said("log", tidemark.FromPerson, strings.Repeat("x", 65535-size+more), 4*time.Minute))
	}
	b.exec(`INSERT INTO entries(id, log, kind, at, origin, hash, payload) VALUES('e', 'log', 'event', 0, '{"from":"person"}', '', '{}')`)
	b.tasks[ids[1]] = "task"
	list, err := b.moments(t.Context(), 0)
	if err != nil || len(list) != 5 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range []memory.Moment{{Log: "old", Text: "a word", Role: tidemark.User}, {Log: "log", Text: "an answer", Role: tidemark.Assistant, Task: "task"}, {Log: "log"}, {Log: "log", Text: strings.Repeat("x", 1000), Role: tidemark.User}, {Log: "log"}} {
		want.ID, want.Seq, want.At = ids[i], list[i].Seq, noon.Add([]time.Duration{0, 1, 2, 4, 4}[i]*time.Minute)
		if got := list[i]; got.ID != want.ID || got.Log != want.Log || got.Text != want.Text || got.Role != want.Role || got.Task != want.Task || !got.At.Equal(want.At) {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	if rest, err := b.moments(t.Context(), list[3].Seq); err != nil || len(rest) != 1 || rest[0].ID != ids[4] {
		t.Errorf("behind the last but one: %d, %v", len(rest), err)
	}
	b.exec(`UPDATE entries SET payload = '5' WHERE id = ?`, string(ids[0]))
	if _, err := b.moments(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "read entry "+string(ids[0])) {
		t.Errorf("what cannot be read: %v", err)
	}
}

// TestReportSitting: what the outbox has reaches an agent that keeps sittings, and is nothing to another one.
func TestReportSitting(t *testing.T) {
	agent := &keeps{err: tidemark.ErrUnavailable}
	b := newBench(t, agent)
	raw, err := json.Marshal(memory.Sitting{Key: mine, Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Report(t.Context(), raw); !errors.Is(err, tidemark.ErrUnavailable) || len(agent.had) != 1 || agent.had[0].Count != 3 {
		t.Errorf("%v, told of %+v", err, agent.had)
	}
	if err := b.Report(t.Context(), []byte(`{`)); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("what cannot be read: %v", err)
	}
	if err := newBench(t, nil).Report(t.Context(), []byte(`{`)); err != nil {
		t.Errorf("an agent that keeps none: %v", err)
	}
}
