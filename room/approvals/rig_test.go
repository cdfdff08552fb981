package approvals

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
	"github.com/tidemark-ai/tidemark/room"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// still is a runtime whose clock stands until a test moves it.
type still struct {
	tidemark.Runtime
	now time.Time
}

func (s *still) Now() time.Time { return s.now }

var errDown = errors.New("the database is down")

// store is a database that can be down.
type store struct {
	tidemark.DB
	down, conflict bool
}

func (s *store) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if s.down {
		return nil, errDown
	}
	return s.DB.Query(ctx, sql, args...)
}

func (s *store) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	switch {
	case s.down:
		return errDown
	case s.conflict:
		return tidemark.ErrConflict
	}
	return s.DB.Tx(ctx, stmts)
}

// answerer is an agent that knows what its conversations ask.
type answerer struct {
	asked  map[string]bool
	got    []tidemark.Question
	answer tidemark.Question
	err    error
}

func (a *answerer) Question(_ context.Context, q tidemark.Question) error {
	a.got = append(a.got, q)
	return a.err
}

func (a *answerer) Asked(_ context.Context, code string) (bool, error) { return a.asked[code], a.err }

func (a *answerer) Answer(_ context.Context, d tidemark.Decision) (tidemark.Question, error) {
	return a.answer, a.err
}

// bench is a room over a table of its own, in which others ask, too; it notes what the session is asked for.
type bench struct {
	*testing.T
	*Room
	store  *store
	clock  *still
	active string
	did    []string
	lines  string // to whom a question was sent, and what
}

const mine tidemark.Key = "agent:main:main"

func newBench(t *testing.T, key tidemark.Key, c Config, agent any) *bench {
	t.Helper()
	b := &bench{T: t, store: &store{DB: hosttest.DB(t)}, clock: &still{Runtime: hosttest.Runtime(t), now: noon}}
	if _, err := host.OpenLog(t.Context(), b.store); err != nil {
		t.Fatal(err)
	}
	note := func(sql string) []tidemark.Stmt {
		return []tidemark.Stmt{{SQL: `INSERT INTO notes(text) VALUES(?)`, Args: []any{sql}}}
	}
	b.Room = Make(c)(room.Ports{
		Self: room.Self{Key: key, DB: b.store, Made: &room.Made{DB: b.store}, Runtime: b.clock, Life: t.Context(), Zone: func() *time.Location { return time.FixedZone("CET", 3600) },
			Warn: func(what string, err error) { b.did = append(b.did, "warn "+what) }},
		Mail: room.Mail{Agent: agent, Outbox: func(id, kind string, payload any, after time.Duration) []tidemark.Stmt {
			return note(fmt.Sprintf("outbox %s %s %s %s", id, kind, after, room.JSON(payload)))
		}},
		Voice: room.Voice{Event: func(log string, e tidemark.Event) tidemark.Stmt { return note("event " + log + " " + room.JSON(e))[0] },
			Happened: func(run string, e tidemark.Event) { b.did = append(b.did, "happened "+run+" "+e.Text+string(e.Data)) },
			Rests: func(run string, list []tidemark.Question, text string) {
				b.did = append(b.did, fmt.Sprint("rests ", run, " ", len(list), " ", text))
			}},
		Channels: room.Channels{
			Lines: func(_ context.Context, log string, to []tidemark.Origin, text string) ([]tidemark.Stmt, error) {
				var who []string
				for _, o := range to {
					who = append(who, o.Peer)
				}
				b.lines = fmt.Sprint(log, " ", who, " ", text)
				return note("lines"), nil
			},
			Say: func(_ context.Context, id string, to *tidemark.Address, text string, e *tidemark.Event) error {
				b.did = append(b.did, fmt.Sprint("say ", id, " ", to.Peer, " ", text, " ", room.JSON(e)))
				if b.store.down {
					return errDown
				}
				return nil
			}},
		Turns: room.Turns{Active: func() string { return b.active }, Resume: func() { b.did = append(b.did, "resume") },
			GoOn: func(_ context.Context, run string) (string, []tidemark.Stmt, error) {
				return "log", note("goon " + run), nil
			}},
	}).(*Room)
	b.exec(`CREATE TABLE notes(text TEXT NOT NULL)`)
	return b
}

// others ask under codes like ours, before us and behind us.
func (b *bench) others() {
	b.Helper()
	if err := b.Made.Open(b.Context(), tables); err != nil {
		b.Fatal(err)
	}
	b.exec(`INSERT INTO approvals(key, code, run, round, n, tool, input, state, asked, expires) VALUES
		('agent:main:aunt', 'AAAAA', 'r', 1, 0, 'theirs', '{}', 'waiting', 1, 9000000000000), ('agent:main:aunt', 'BBBBB', 'r', 1, 1, 'theirs', '{}', 'waiting', 1, 1), ('agent:main:zoe', 'CCCCC', 'r', 1, 0, 'theirs', '{}', 'denied', 1, 1)`)
	b.Cleanup(func() {
		if got := b.said(`SELECT count(*) || ' ' || sum(state = 'waiting') FROM approvals WHERE tool = 'theirs' LIMIT 1`); got != "3 2" {
			b.Errorf("of others there is %s", got)
		}
	})
}

// asks puts a question of ours into the table.
func (b *bench) asks(code, run string, round, n int, state string, asked, expires time.Time) {
	b.Helper()
	b.exec(`INSERT INTO approvals(key, code, run, round, n, tool, input, state, asked, expires) VALUES(?, ?, ?, ?, ?, 'send', '{"to":"x"}', ?, ?, ?)`, string(b.Key), code, run, round, n, state, asked.UnixMilli(), expires.UnixMilli())
}

func (b *bench) exec(sql string, args ...any) {
	b.Helper()
	hosttest.Exec(b.T, b.store.DB, sql, args...)
}

// said are the rows of a query of one text.
func (b *bench) said(sql string, args ...any) string {
	b.Helper()
	return hosttest.Lines(b.T, b.store.DB, sql, args...)
}

// notes are what was written with a transaction, which they forget.
func (b *bench) notes() string {
	b.Helper()
	out := b.said(`SELECT text FROM notes ORDER BY rowid LIMIT 99`)
	b.exec(`DELETE FROM notes`)
	return out
}

// codes are those of some questions.
func codes(list []tidemark.Question) string {
	var out []string
	for _, q := range list {
		out = append(out, q.Code)
	}
	return strings.Join(out, " ")
}
