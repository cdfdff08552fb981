package outbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// stepped is a runtime whose clock moves by what is slept, and in which what runs beside waits until a test runs it.
type stepped struct {
	tidemark.Runtime
	now   time.Time
	slept []time.Duration
	most  int // pauses, if set: then it is over
	open  int // times that are counted
	run   []func()
}

func (s *stepped) Now() time.Time { return s.now }

func (s *stepped) Go(f func()) { s.run = append(s.run, f) }

func (s *stepped) Sleep(ctx context.Context, d time.Duration) error {
	s.slept, s.now = append(s.slept, d), s.now.Add(d)
	if s.most > 0 && len(s.slept) >= s.most {
		return context.Canceled
	}
	return context.Cause(ctx)
}

func (s *stepped) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	s.open++
	ctx, cancel := context.WithCancel(ctx)
	return ctx, func() { s.open--; cancel() }
}

var errDown = errors.New("the database is down")

// store is a database in which transactions with a part in one of their statements come to an error.
type store struct {
	tidemark.DB
	before func() // what happens once before one of them
	behind func() // what happens once behind a query
	looks  string // that has this
	part   string
	err    error
	times  int // that they do, if set
	met    int
}

func (s *store) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	rows, err := s.DB.Query(ctx, sql, args...)
	if f := s.behind; f != nil && strings.Contains(sql, s.looks) {
		s.behind = nil
		f()
	}
	return rows, err
}

func (s *store) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	for _, x := range stmts {
		if s.part != "" && strings.Contains(x.SQL, s.part) && (s.times == 0 || s.met < s.times) {
			s.met++
			if f := s.before; f != nil {
				s.before = nil
				f()
				break
			}
			return s.err
		}
	}
	return s.DB.Tx(ctx, stmts)
}

// bench is a ledger over the tables of a session as far as it reads them, with neighbours in them.
type bench struct {
	*testing.T
	*Room
	store  *store
	clock  *stepped
	phone  *tidemarktest.Courier
	owners int
	rang   int      // how often the host is to wake the session
	told   []string // to who listens
	warned []string
}

const mine tidemark.Key = "agent:main:fake:dm:ann"

var (
	ann   = tidemark.Address{Platform: "fake", Account: "us", Peer: "ann"}
	bob   = tidemark.Address{Platform: "fake", Account: "us", Peer: "bob"}
	group = tidemark.Address{Platform: "fake", Account: "us", Peer: "club", Group: true}
)

// neighbours are those of whom nothing is to be read and nothing changed: one sorts before the conversation, one behind it.
const neighbours = `INSERT INTO outbound(n, key, state, open, peer, address, text, at, next, owner, id) VALUES
	(-4, 'agent:main:aunt', 'pending', 1, 'fake' || char(31) || 'us' || char(31) || 'ann', '{"platform":"fake","account":"us","peer":"ann"}', 'theirs', 1, 0, '', ''), (-3, 'agent:main:aunt', 'sent', 0, 'p', '{}', 'theirs', 1, 0, '', 'mid.1'),
	(-2, 'agent:main:zoe', 'sending', 1, 'p', '{}', 'theirs', 1, 0, '000000000001/x', ''), (-1, 'agent:main:zoe', 'failed', 0, 'p', '{}', 'theirs', 1, 0, '', 'mid.2');
INSERT INTO heard(key, message, said, at) VALUES('agent:main:aunt', 'their.1', 'theirs', 1), ('agent:main:zoe', 'their.2', 'theirs', 1), ('agent:main:zoe', 'their.9', 'theirs', 1);
INSERT INTO inputs(key, id, kind, at, origin) VALUES('agent:main:aunt', 'say:1', 'say', 1, '{"to":{"platform":"fake","account":"us","peer":"ann"},"owner":true}'), ('agent:main:zoe', 'say:1', 'say', 1, '{"to":{"platform":"fake","account":"us","peer":"ann"},"owner":true}');
INSERT INTO due(key, kind, at, data) VALUES('agent:main:aunt', 'out', 1, ''), ('agent:main:zoe', 'out', 1, '')`

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, store: &store{DB: hosttest.DB(t)}, clock: &stepped{Runtime: hosttest.Runtime(t), now: now}, phone: &tidemarktest.Courier{}}
	b.exec(`CREATE TABLE inputs(n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL DEFAULT '', state TEXT NOT NULL DEFAULT '', at INTEGER NOT NULL, origin TEXT NOT NULL, payload TEXT NOT NULL DEFAULT '', hash TEXT NOT NULL DEFAULT '', UNIQUE(key, id))`)
	b.exec(`CREATE TABLE due(key TEXT NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY(key, kind))`)
	b.exec(`CREATE TABLE lives(n INTEGER NOT NULL)`)
	b.exec(`INSERT INTO lives(n) VALUES(7)`)
	b.exec(`CREATE TABLE events(text TEXT NOT NULL)`)
	b.open(b.phone)
	if err := b.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	for sql := range strings.SplitSeq(neighbours, ";\n") {
		b.exec(sql)
	}
	before := b.others()
	t.Cleanup(func() {
		if after := b.others(); after != before {
			t.Errorf("of others there is\n%s\nwant\n%s", after, before)
		}
	})
	return b
}

// others are the rows of others.
func (b *bench) others() string {
	return b.lines(`SELECT n || key || state || open || hold || peer || address || text || next || tries || owner || id || error FROM outbound WHERE text = 'theirs'
		UNION ALL SELECT key || message || said FROM heard WHERE said = 'theirs' UNION ALL SELECT key || id FROM inputs WHERE at = 1 UNION ALL SELECT key || at || data FROM due WHERE at = 1 ORDER BY 1 LIMIT 99`)
}

// open begins a life, nil for one without a channel.
func (b *bench) open(c tidemark.Courier) {
	made := &room.Made{DB: b.store}
	if b.Room != nil {
		made = b.Made
	}
	b.Room = Make(c)(room.Ports{
		Self: room.Self{Key: mine, DB: b.store, Made: made, Runtime: b.clock, Life: context.Background(), Logger: slog.New(slog.DiscardHandler),
			Warn: func(what string, err error) { b.warned = append(b.warned, what+": "+err.Error()) }},
		History: room.History{Current: func(context.Context) (string, error) { return "log", nil }},
		Work: room.Work{Alarm: func(context.Context) { b.rang++ },
			Due: func(kind string, at time.Time, data string) tidemark.Stmt {
				return tidemark.Stmt{SQL: `INSERT INTO due(key, kind, at, data) VALUES(?, ?, ?, ?) ON CONFLICT(key, kind) DO UPDATE SET at = excluded.at, data = excluded.data`, Args: []any{string(mine), kind, at.UnixMilli(), data}}
			}},
		Voice: room.Voice{Event: func(log string, e tidemark.Event) tidemark.Stmt {
			return tidemark.Stmt{SQL: `INSERT INTO events(text) VALUES(?)`, Args: []any{log + " " + e.Type + ": " + e.Text}}
		}, Happened: func(run string, e tidemark.Event) { b.told = append(b.told, run+" "+e.Text) }},
		Lease: room.Lease{Owner: func() string { b.owners++; return fmt.Sprint("000000000007/", b.owners) }, Bound: func() string { return "000000000008" },
			Held: func() tidemark.Stmt { return tidemark.Stmt{SQL: `UPDATE lives SET n = n WHERE n = 7`, Want: 1} }},
		Turns: room.Turns{Active: func() string { return "run" }},
	}).(*Room)
}

func (b *bench) exec(sql string, args ...any) {
	b.Helper()
	hosttest.Exec(b.T, b.store.DB, sql, args...)
}

// lines are the rows of a query of one text.
func (b *bench) lines(sql string, args ...any) string {
	b.Helper()
	return hosttest.Lines(b.T, b.store.DB, sql, args...)
}

// rows are those of the conversation in a few words.
func (b *bench) rows() string {
	b.Helper()
	return b.lines(`SELECT n || ' ' || state || CASE open WHEN 1 THEN ' open' ELSE '' END || CASE hold WHEN '' THEN '' ELSE ' ' || hold END || ' tries ' || tries || CASE owner WHEN '' THEN '' ELSE ' by ' || owner END
		|| CASE id WHEN '' THEN '' ELSE ' id ' || id END || CASE next WHEN 0 THEN '' ELSE ' next ' || CAST(next - ? AS INTEGER) END || CASE error WHEN '' THEN '' ELSE ' error ' || error END FROM outbound WHERE key = ? ORDER BY n LIMIT 99`, now.UnixMilli(), string(mine))
}

// due is when the sender is, behind the beginning, and why.
func (b *bench) due() string {
	b.Helper()
	return b.lines(`SELECT kind || ' ' || CAST(at - ? AS INTEGER) || ' ' || data FROM due WHERE key = ? ORDER BY kind LIMIT 9`, now.UnixMilli(), string(mine))
}

// say puts a message to ann into the ledger.
func (b *bench) say(text string) {
	b.Helper()
	stmts, err := b.Lines(b.Context(), "log", []tidemark.Origin{{To: &ann}}, text)
	if err == nil {
		err = b.DB.Tx(b.Context(), stmts)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// sends runs what runs beside, and what that begins.
func (b *bench) sends() {
	for len(b.clock.run) > 0 {
		f := b.clock.run[0]
		b.clock.run = b.clock.run[1:]
		f()
	}
}

// fails has each of some tries fail in turn.
func fails(of ...*tidemark.SendError) func(int, tidemark.Outgoing) error {
	return func(n int, _ tidemark.Outgoing) error {
		if n <= len(of) && of[n-1] != nil {
			return of[n-1]
		}
		return nil
	}
}
