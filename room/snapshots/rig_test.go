package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// noon is when a test begins.
var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// still is a runtime whose clock stands until a test moves it, and in which what runs beside runs at once.
type still struct {
	tidemark.Runtime
	now   time.Time
	slept []time.Duration
}

func (s *still) Now() time.Time { return s.now }

func (s *still) Go(f func()) { f() }

func (s *still) Sleep(ctx context.Context, d time.Duration) error {
	s.slept = append(s.slept, d)
	return context.Cause(ctx)
}

var errDown = errors.New("the database is down")

// store is a database that can be down at a step, and which counts the transactions that have a part in one of their statements.
type store struct {
	tidemark.DB
	down   int    // the step from 1 at which it fails, once; 0: never
	part   string // of SQL
	met    int
	refuse error // what a transaction with the part comes to, if set
}

func (s *store) step() error {
	if s.down--; s.down == 0 {
		return errDown
	}
	return nil
}

func (s *store) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if err := s.step(); err != nil {
		return nil, err
	}
	return s.DB.Query(ctx, sql, args...)
}

func (s *store) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if err := s.step(); err != nil {
		return err
	}
	for _, x := range stmts {
		if s.part != "" && strings.Contains(x.SQL, s.part) {
			if s.met++; s.refuse != nil {
				return s.refuse
			}
			break
		}
	}
	return s.DB.Tx(ctx, stmts)
}

// told is an agent that keeps the tree.
type told struct {
	nodes []snapshot.Node
	fail  error
}

func (a *told) Snapshots(_ context.Context, nodes []snapshot.Node) error {
	a.nodes = append(a.nodes, nodes...)
	return a.fail
}

// rig is one conversation with the rooms of this package, over the tables of a session as far as they read them.
type rig struct {
	*testing.T
	room.Held // what the rooms do not use of it is nobody's
	key       tidemark.Key
	store     *store
	clock     *still
	log       *host.Log
	room      *Room
	merges    *Merges
	carry     *Carry

	agent    any
	did      []string // what the session was asked for: enter, tell, alarm, warn
	began    []tidemark.SessionInfo
	from     []room.Place
	trimmed  string // how the trim was asked for
	overlays []tidemark.Overlay
	weighed  []string
	unfit    error // what weighing comes to
	kept     room.State
	past     bool // the state was asked for of the past
	noted    []string
	note     error             // what a note comes to, if set
	blobs    map[string]string // in the bucket, by hash
	writes   []int             // entries of each write of an import
	moved    []tidemark.SessionInfo
	enter    error
}

const sessionTables = `CREATE TABLE heads(key TEXT PRIMARY KEY, log TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', messages INTEGER NOT NULL DEFAULT 0, context INTEGER NOT NULL DEFAULT 0);
CREATE TABLE runs(id TEXT PRIMARY KEY, key TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE due(key TEXT NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(key, kind));
CREATE TABLE outbox(id TEXT PRIMARY KEY, payload TEXT NOT NULL);
CREATE TABLE restored(key TEXT NOT NULL, seq INTEGER NOT NULL)`

const mine tidemark.Key = "agent:main:main"

func newRig(t *testing.T) *rig {
	t.Helper()
	s := &store{DB: hosttest.DB(t)}
	log, err := host.OpenLog(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, store: s, clock: &still{Runtime: hosttest.Runtime(t), now: noon}, log: log, blobs: map[string]string{}}
	for sql := range strings.SplitSeq(sessionTables, ";\n") {
		r.exec(sql)
	}
	return r.on(mine)
}

// on is another session of the same database, which is made if it is not there.
func (r *rig) on(key tidemark.Key) *rig {
	r.Helper()
	o := &rig{T: r.T, key: key, store: r.store, clock: r.clock, log: r.log, agent: r.agent, blobs: r.blobs}
	if len(o.query(`SELECT 1 FROM heads WHERE key = ? LIMIT 1`, string(key))) == 0 {
		id := tidemark.NewID(r.clock.now)
		o.tx(o.log.CreateStmt(host.Info{ID: id, Key: key, Created: r.clock.now}), tidemark.Stmt{SQL: `INSERT INTO heads(key, log) VALUES(?, ?)`, Args: []any{string(key), id}})
	}
	o.open()
	return o
}

// open begins a life of the rooms.
func (r *rig) open() {
	p := r.ports()
	r.room, r.merges, r.carry = newRoom(p), MakeMerges(p).(*Merges), MakeCarry(p).(*Carry)
}

func (r *rig) ports() room.Ports {
	did := func(what string) func(context.Context) {
		return func(context.Context) { r.did = append(r.did, what) }
	}
	return room.Ports{
		Self: room.Self{Key: r.key, DB: r.store, Made: &room.Made{DB: r.store}, Runtime: r.clock, Life: r.Context(),
			Zone: func() *time.Location { return time.FixedZone("there", 3600) }, Warn: func(what string, err error) { r.did = append(r.did, "warn "+what+": "+err.Error()) }},
		History: room.History{Log: r.log, Current: func(context.Context) (string, error) { return r.current(), nil },
			Words: func(_ context.Context, e tidemark.Entry) (tidemark.Message, func(), error) {
				m, err := e.Message()
				return m, func() { r.noted = append(r.noted, "done") }, err
			}, Note: r.putNote},
		Work: room.Work{Alarm: did("alarm"),
			Due: func(kind string, at time.Time, _ string) tidemark.Stmt {
				return tidemark.Stmt{SQL: `INSERT INTO due(key, kind, at) VALUES(?, ?, ?) ON CONFLICT(key, kind) DO UPDATE SET at = excluded.at`, Args: []any{string(r.key), kind, at.UnixMilli()}}
			},
			Undue: func(kind string) tidemark.Stmt {
				return tidemark.Stmt{SQL: `DELETE FROM due WHERE key = ? AND kind = ?`, Args: []any{string(r.key), kind}}
			}},
		Mail: room.Mail{Agent: r.agent, Tell: did("tell"), Outbox: func(id, kind string, payload any, after time.Duration) []tidemark.Stmt {
			return []tidemark.Stmt{{SQL: `INSERT INTO outbox(id, payload) VALUES(?, ?) ON CONFLICT DO NOTHING`, Args: []any{fmt.Sprintf("%s %s %s", id, kind, after), room.JSON(payload)}}}
		}},
		Past: r.history(), Blocks: r.blocks(),
		Turns: room.Turns{Hold: func(_ context.Context, work func(room.Held) error) error { return work(r) }},
	}
}

func (r *rig) history() room.Past {
	return room.Past{
		Weigh: func(_ context.Context, log string, upTo int64, check bool) (tidemark.Tokens, error) {
			r.weighed = append(r.weighed, fmt.Sprint(log == r.current(), " ", upTo, " ", check))
			return 700, r.unfit
		},
		Trim: func(_ context.Context, log string, upTo int64, pins map[tidemark.EntryID]bool, threshold int) ([]tidemark.Overlay, compaction.TrimMetrics, error) {
			r.trimmed = fmt.Sprint(log == r.current(), " ", upTo, " ", len(pins), " ", threshold)
			return r.overlays, compaction.TrimMetrics{Before: 700, After: 90}, nil
		},
		Archived: func(_ context.Context, _ string, upTo int64) (int64, error) { return upTo - 1, nil },
		State: func(_ context.Context, _ int64, past bool) (room.State, error) {
			r.past = past
			return r.kept, nil
		},
		Restore: func(_ context.Context, to tidemark.Key, from room.Place) ([]tidemark.Stmt, error) {
			return []tidemark.Stmt{{SQL: `INSERT INTO restored(key, seq) VALUES(?, ?)`, Args: []any{string(to), from.Seq}}}, nil
		},
		Begin: func(i tidemark.SessionInfo, from room.Place) []tidemark.Stmt {
			r.began, r.from = append(r.began, i), append(r.from, from)
			return []tidemark.Stmt{r.log.CreateStmt(host.Info{ID: i.ID, Key: i.Key, BaseLog: from.Log, BaseSeq: from.Seq, Created: i.CreatedAt}),
				{SQL: `INSERT INTO heads(key, log, title, messages, context) VALUES(?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, Args: []any{string(i.Key), i.ID, i.Title, i.Messages, int64(i.ContextTokens)}, Want: 1}}
		},
		Enter: func(_ context.Context, i tidemark.SessionInfo) error {
			r.did = append(r.did, fmt.Sprintf("enter %s %t %s", i.Key, i.ID == r.began[len(r.began)-1].ID, i.Title))
			return r.enter
		}}
}

func (r *rig) blocks() room.Blocks {
	return room.Blocks{MaxBlock: 1000,
		Export: func(_ context.Context, e tidemark.Entry, use func(tidemark.Hash, int64, io.Reader) error) ([]byte, error) {
			for sum, text := range r.blobs {
				if strings.Contains(string(e.Payload), sum) {
					if err := use(tidemark.Hash(sum), int64(len(text)), strings.NewReader(text)); err != nil {
						return nil, err
					}
				}
			}
			return e.Payload, nil
		},
		Import: func(_ context.Context, sum tidemark.Hash, _ int64, body io.Reader) error {
			raw, err := io.ReadAll(body)
			r.blobs[string(sum)] = string(raw)
			return err
		},
		Whole: func(_ context.Context, m tidemark.Message, imported func(tidemark.Hash) bool) (tidemark.Message, error) {
			if sum, ok := strings.CutPrefix(m.PlainText(), "blob "); ok && !imported(tidemark.Hash(sum)) {
				return m, fmt.Errorf("block %s is not there: %w", sum, tidemark.ErrInvalid)
			}
			return m, nil
		},
		Keep: func(_ context.Context, m tidemark.Message) (tidemark.Message, []tidemark.Stmt, error) {
			if m.PlainText() == "kept" {
				return tidemark.NewText(m.Role, "kept elsewhere"), []tidemark.Stmt{{SQL: `INSERT INTO restored(key, seq) VALUES('kept', 0)`}}, nil
			}
			return m, nil, nil
		}}
}

// Write implements room.Held.
func (r *rig) Write(ctx context.Context, stmts ...tidemark.Stmt) error {
	n := 0
	for _, s := range stmts {
		if strings.Contains(s.SQL, "INSERT INTO entries") {
			n++
		}
	}
	r.writes = append(r.writes, n)
	return r.store.Tx(ctx, stmts)
}

// Move implements room.Held.
func (r *rig) Move(ctx context.Context, i tidemark.SessionInfo, from room.Place, stmts ...tidemark.Stmt) error {
	r.moved, r.from = append(r.moved, i), append(r.from, from)
	return r.store.Tx(ctx, append([]tidemark.Stmt{r.log.CreateStmt(host.Info{ID: i.ID, Key: i.Key, BaseLog: from.Log, BaseSeq: from.Seq, Created: i.CreatedAt}),
		{SQL: `UPDATE heads SET log = ?, title = ?, messages = ?, context = ? WHERE key = ?`, Args: []any{i.ID, i.Title, i.Messages, int64(i.ContextTokens), string(r.key)}, Want: 1}}, stmts...))
}

// putNote is room.History.Note, where no turn is in work.
func (r *rig) putNote(ctx context.Context, log string, e tidemark.Entry, m tidemark.Message, ev tidemark.Event, stmts ...tidemark.Stmt) error {
	if r.note != nil {
		return r.note
	}
	e.Payload = m.AppendJSON(nil)
	more, err := r.log.AppendStmts(log, e)
	if err != nil {
		return err
	}
	if err = r.store.Tx(ctx, append(stmts, more...)); err == nil {
		r.noted = append(r.noted, room.JSON(ev))
	}
	return err
}

func (r *rig) exec(sql string, args ...any) {
	r.Helper()
	r.tx(tidemark.Stmt{SQL: sql, Args: args})
}

func (r *rig) tx(stmts ...tidemark.Stmt) {
	r.Helper()
	if err := r.store.Tx(r.Context(), stmts); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) query(sql string, args ...any) []tidemark.Row {
	r.Helper()
	rows, err := r.store.DB.Query(r.Context(), sql, args...)
	if err != nil {
		r.Fatal(err)
	}
	return rows
}

// lines are the rows of a query of one text.
func (r *rig) lines(sql string, args ...any) string {
	r.Helper()
	var out []string
	for _, row := range r.query(sql, args...) {
		out = append(out, row.Text(0))
	}
	return strings.Join(out, "\n")
}

// current is the log that the session stands in.
func (r *rig) current() string {
	return r.lines(`SELECT log FROM heads WHERE key = ? LIMIT 1`, string(r.key))
}

// says appends a message to the session's log, a second after the one before, and returns its id.
func (r *rig) says(m tidemark.Message, from string, c *tidemark.Call) tidemark.EntryID {
	r.Helper()
	r.clock.now = r.clock.now.Add(time.Second)
	prev, err := r.log.Chain(r.Context(), r.current())
	if err != nil {
		r.Fatal(err)
	}
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(r.clock.now)), Kind: tidemark.KindMessage, At: r.clock.now, Origin: tidemark.Origin{From: from}, Call: c,
		Tokens: 10, Payload: m.AppendJSON(nil), Chain: tidemark.Chain(prev, m)}
	r.append(e)
	return e.ID
}

// append appends an entry to the session's log.
func (r *rig) append(e tidemark.Entry) {
	r.Helper()
	if err := r.log.Append(r.Context(), r.current(), e); err != nil {
		r.Fatal(err)
	}
}

// event appends an event to the session's log.
func (r *rig) event() tidemark.EntryID {
	r.Helper()
	id := tidemark.EntryID(tidemark.NewID(r.clock.now))
	r.append(tidemark.Entry{ID: id, Kind: tidemark.KindEvent, At: r.clock.now, Payload: []byte(`{"type":"x"}`)})
	return id
}

// talks has a person and the model say something in turn, and returns the ids.
func (r *rig) talks(texts ...string) (ids []tidemark.EntryID) {
	r.Helper()
	for i, text := range texts {
		role, from := tidemark.User, tidemark.FromPerson
		if i%2 == 1 {
			role, from = tidemark.Assistant, tidemark.FromModel
		}
		ids = append(ids, r.says(tidemark.NewText(role, text), from, nil))
	}
	return ids
}

// take takes a snapshot a minute later.
func (r *rig) take(o Options) snapshot.Node {
	r.Helper()
	r.clock.now = r.clock.now.Add(time.Minute)
	n, err := r.room.Take(r.Context(), o)
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// branch makes a branch a minute later, and opens it.
func (r *rig) branch(o BranchOptions) (*rig, Branch) {
	r.Helper()
	r.clock.now = r.clock.now.Add(time.Minute)
	b, err := r.room.Branch(r.Context(), o)
	if err != nil {
		r.Fatal(err)
	}
	return r.on(b.Key), b
}

// seq is the position of an entry.
func (r *rig) seq(id tidemark.EntryID) int64 {
	r.Helper()
	e, err := r.log.Entry(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return e.Seq
}

// failsAtEach has the database be down at each step of an act in turn, counted from 1, until the act needs no more steps. Each
// time that must be told, but for those steps that are behind what the caller waits for, which it counts.
func (r *rig) failsAtEach(what string, act func(n int) error) (untold int) {
	r.Helper()
	for n := 1; ; n++ {
		r.store.down = n
		err := act(n)
		reached := r.store.down <= 0
		r.store.down = 0
		switch {
		case !reached && (err != nil || n == 1):
			r.Errorf("%s: %v behind %d steps", what, err, n-1)
			return untold
		case !reached:
			return untold
		case err == nil:
			untold++
		case !errors.Is(err, errDown):
			r.Errorf("%s: the database is down at step %d: %v", what, n, err)
		}
	}
}

// withStop is a context that a test ends.
func withStop(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	return ctx, stop
}

// asked is a word that somebody typed; with an id it is the same when it comes again.
func asked(word, text string, owner bool, id string) room.Asked {
	return room.Asked{Word: word, Text: text, Owner: owner, ID: id, At: noon}
}
