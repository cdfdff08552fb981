package session

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// still is a runtime whose clock stands until a test moves it. Nothing sleeps, and what is to run on its own waits in later,
// unless it may run at once.
type still struct {
	tidemark.Runtime
	now    time.Time
	atOnce bool
	slept  []time.Duration
	later  []func()
}

func (r *still) Now() time.Time { return r.now }

func (r *still) Sleep(ctx context.Context, d time.Duration) error {
	r.slept = append(r.slept, d)
	return context.Cause(ctx)
}

func (r *still) Go(f func()) {
	if r.atOnce {
		f()
		return
	}
	r.later = append(r.later, f)
}

// played is a provider that answers what a test says.
type played struct {
	calls []tidemark.Request
	play  func(req tidemark.Request) (tidemark.Message, error)
	usage tidemark.Usage
}

func (p *played) Stream(_ context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		p.calls = append(p.calls, req)
		m, err := tidemark.NewText(tidemark.Assistant, "ok"), error(nil)
		if p.play != nil {
			m, err = p.play(req)
		}
		if err != nil {
			yield(tidemark.Delta{}, err)
			return
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m, Call: tidemark.Call{Model: req.Model, Stop: "end_turn", Usage: p.usage, Reported: p.usage != tidemark.Usage{}}}}, nil)
	}
}

// beside are two busy conversations in the database of a test, of which one sorts before agent:main:main and one behind it.
var beside = hosttest.Neighbour{Names: []string{"agent:main:aunt", "agent:main:zoe"}, Play: func(t testing.TB, db tidemark.DB) {
	log, err := Migrate(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aunt", "zoe"} {
		stmts := []tidemark.Stmt{log.CreateStmt(host.Info{ID: name + "-log", Key: tidemark.Key("agent:main:" + name), BaseLog: name + "-base", BaseSeq: 1, Created: time.UnixMilli(5)})}
		for _, role := range []tidemark.Role{tidemark.User, tidemark.Assistant} {
			more, err := log.AppendStmts(name+"-log", tidemark.Entry{ID: tidemark.EntryID(name + "-" + string(role)), Kind: tidemark.KindMessage, At: time.UnixMilli(5), Tokens: 7000,
				Origin: tidemark.Origin{Input: name + "-in"}, Payload: tidemark.NewText(role, "of "+name).AppendJSON(nil)})
			if err != nil {
				t.Fatal(err)
			}
			stmts = append(stmts, more...)
		}
		for sql := range strings.SplitSeq(strings.TrimSpace(besideRows), ";\n") {
			stmts = append(stmts, tidemark.Stmt{SQL: strings.TrimSuffix(strings.ReplaceAll(sql, "$", name), ";")})
		}
		if err := db.Tx(t.Context(), stmts); err != nil {
			t.Fatal(err)
		}
	}
}}

const besideRows = `
INSERT INTO heads(key, log, title, created, active, people, messages, context, compactions, usage, prompt, settings, lives, cooldown, failures) VALUES
	('agent:main:$', '$-log', 'Of $', 5, 5, 5, 2, 9000, 3, '{"input_tokens":7,"output_tokens":7}', 'hash', '{"title":"Of $","model":"theirs"}', 7, 9000000000000, 2);
INSERT INTO refs(name, value) VALUES('head:agent:main:$', '$-log');
INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash, run) VALUES
	('agent:main:$', 'in1', 'message', 'done', 5, '{}', '{"role":"user","content":"a"}', 'h', '$-done'),
	('agent:main:$', 'in2', 'message', 'taken', 5, '{}', '{"role":"user","content":"b"}', 'h', '$-run'),
	('agent:main:$', 'in3', 'message', 'new', 5, '{}', '{"role":"user","content":"c"}', 'h', ''),
	('agent:main:$', 'in4', 'reset', 'new', 5, '{}', '"manual"', 'h', '');
INSERT INTO runs(id, key, log, owner, state, attempt, round, started, updated, reply, error, spent) VALUES
	('$-run', 'agent:main:$', '$-log', '000000000007/x', 'tools', 1, 0, 5, 5, '', '', 500),
	('$-done', 'agent:main:$', '$-log', '000000000007/x', 'done', 1, 0, 5, 5, '$-assistant', '', 500),
	('$-failed', 'agent:main:$', '$-log', '000000000007/x', 'failed', 1, 0, 5, 5, '', 'no', 500);
INSERT INTO calls(run, round, n, id, call, idempotent, state, result, spent) VALUES
	('$-run', 0, 0, 'c0', '{"type":"tool_use","id":"c0","name":"recall","input":{"query":"x"}}', 1, 'done', 'a long result', 300),
	('$-run', 0, 1, 'c1', '{"type":"tool_use","id":"c1","name":"recall","input":{"query":"x"}}', 1, 'started', '', 0);
INSERT INTO plans(id, key, log, state, reason, instructions, act, part_ms, last, size, chunk_size, created) VALUES
	('$-plan', 'agent:main:$', '$-log', 'open', 'threshold', '', '{}', 5, 1, 4, 2, 5);
INSERT INTO parts(log, first, last, key, info) VALUES('$-log', 1, 2, 'agents/main/sessions/$-part5.jsonl.gz', '{"messages":2}');
INSERT INTO resets(old, key, new, step, reason, at, archive, messages) VALUES
	('$-log', 'agent:main:$', '$-new', 'extract', 'idle', 5, 'agents/main/sessions/$-log.jsonl.gz', 2),
	('$-old', 'agent:main:$', '$-log', 'archive', 'idle', 5, '', 0),
	('$-older', 'agent:main:$', '$-old', 'move', 'idle', 5, '', 0);
INSERT INTO outbox(id, key, kind, payload, at) VALUES('archive:agents/main/sessions/$-log.jsonl.gz', 'agent:main:$', 'archive', '{}', 5);
INSERT INTO due(key, kind, at) VALUES('agent:main:$', 'run', 5), ('agent:main:$', 'reset', 5), ('agent:main:$', 'outbox', 5);
`

// plain opens a session beside two others, with whatever of its ports a test does not give.
func plain(t *testing.T, c Config) (*Session, *still) {
	t.Helper()
	rt := &still{Runtime: hosttest.Runtime(t), now: time.UnixMilli(1_700_000_000_000).UTC()} // a Tuesday, 22:13:20
	db := hosttest.DB(t)
	beside.Beside(t, db)
	c.Key, c.DB, c.Runtime = cmp.Or(c.Key, "agent:main:main"), db, rt
	if c.Blobs == nil {
		c.Blobs = tidemarktest.NewBlobs()
	}
	if c.Agent == nil {
		c.Agent = silent{}
	}
	if c.Provider == nil {
		c.Provider = &played{}
	}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	rt.later = nil
	return s, rt
}

// imports replays a log in a session that has the room for it.
func (s *Session) imports(ctx context.Context, in iter.Seq2[replay.Message, error], progress func(int)) (replay.Result, error) {
	r, _ := room.Find[*replay.Room](s.rooms)
	return r.Import(ctx, in, progress)
}

// does writes rows.
func (s *Session) does(t *testing.T, sql string, args ...any) {
	t.Helper()
	if err := s.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: sql, Args: args}}); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// reads gives rows as text: columns apart by blanks, rows by commas.
func (s *Session) reads(t *testing.T, sql string, args ...any) string {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		columns := make([]string, len(r))
		for k := range r {
			columns[k] = r.Text(k)
		}
		out[i] = strings.Join(columns, " ")
	}
	return strings.Join(out, ", ")
}

// current is the log that the session is in.
func (s *Session) current(t *testing.T) string {
	t.Helper()
	h, err := s.head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h.Log
}

// says appends a message under a name, of some tokens, and returns its position.
func (s *Session) says(t *testing.T, log, id string, m tidemark.Message, o tidemark.Origin, tokens tidemark.Tokens) int64 {
	t.Helper()
	chain, err := s.log.Chain(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	e := tidemark.Entry{ID: tidemark.EntryID(id), Kind: tidemark.KindMessage, At: s.Runtime.Now(), Tokens: tokens, Origin: o}
	stmts, err := s.entryStmts(t.Context(), log, &e, m, chain)
	if err == nil {
		err = s.DB.Tx(t.Context(), stmts)
	}
	if err != nil {
		t.Fatal(err)
	}
	seqs, err := s.log.Seqs(t.Context(), []tidemark.EntryID{e.ID})
	if err != nil {
		t.Fatal(err)
	}
	return seqs[e.ID]
}

// begun makes a run in some state, as this life works on it.
func (s *Session) begun(t *testing.T, id, state string) *run {
	t.Helper()
	r := &run{ID: id, Log: s.current(t), State: state, Started: s.Runtime.Now(), owner: s.owner(), typing: func([]tidemark.Origin) {}}
	s.does(t, `INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES(?, ?, ?, ?, ?, 1, 1)`, id, string(s.Key), r.Log, r.owner, state)
	return r
}
