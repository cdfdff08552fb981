package session

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// rig is a session without rooms for tests of its functions, one by one: its clock stands still, and its database fails
// when it is told to.
type rig struct {
	*Session
	t      *testing.T
	clock  *stillClock
	faulty *faulty
	bucket *tidemarktest.Blobs
	warned *warnings
}

// rigNoon is when the clock of a rig stands still.
const rigNoon int64 = 1_773_144_000_000 // 2026-03-10T12:00:00Z

func newRig(t *testing.T, set Settings) *rig {
	t.Helper()
	r := &rig{t: t, faulty: &faulty{DB: hosttest.DB(t)}, clock: &stillClock{Runtime: tidemarktest.NewRuntime(t)}, bucket: tidemarktest.NewBlobs(), warned: &warnings{}}
	r.clock.ms.Store(rigNoon)
	r.Session = r.opened("agent:main:main", set)
	return r
}

// opened is a session of a key in the same database.
func (r *rig) opened(key tidemark.Key, set Settings) *Session {
	r.t.Helper()
	if set.Model == "" {
		set.Model = "test"
	}
	s, err := Open(r.t.Context(), Config{Key: key, DB: r.faulty, Blobs: r.bucket, Agent: silent{}, Runtime: r.clock, Settings: set,
		Logger: slog.New(slog.NewTextHandler(r.warned, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		r.t.Fatal(err)
	}
	r.rests() // it has looked for what waits
	return s
}

// rests waits until all that sessions began has ended.
func (r *rig) rests() {
	r.t.Helper()
	ctx, stop := r.clock.WithTimeout(r.t.Context(), tidemarktest.Patience)
	defer stop()
	if err := r.clock.Wait(ctx); err != nil {
		r.t.Fatalf("the session does not come to rest: %v", err)
	}
}

// current is the log of the session.
func (r *rig) current() string {
	r.t.Helper()
	h, err := r.head(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return h.Log
}

// logs appends a message to the log of a session and returns its entry.
func (r *rig) logs(s *Session, o tidemark.Origin, m tidemark.Message) tidemark.Entry {
	r.t.Helper()
	ctx := r.t.Context()
	h, err := s.head(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(r.clock.Now())), Kind: tidemark.KindMessage, At: r.clock.Now(), Origin: o, Tokens: tidemark.Estimate(m)}
	stmts, err := s.entryStmts(ctx, h.Log, &e, m, "")
	if err == nil {
		err = s.DB.Tx(ctx, stmts)
	}
	if err == nil {
		e, err = s.log.Entry(ctx, e.ID)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// person logs what somebody said.
func (r *rig) person(text string) tidemark.Entry {
	r.t.Helper()
	return r.logs(r.Session, tidemark.Origin{From: tidemark.FromPerson}, tidemark.NewText(tidemark.User, text))
}

// model logs what a model said.
func (r *rig) model(text string) tidemark.Entry {
	r.t.Helper()
	return r.logs(r.Session, tidemark.Origin{From: tidemark.FromModel}, tidemark.NewText(tidemark.Assistant, text))
}

// overlaid logs an overlay and returns its entry.
func (r *rig) overlaid(o tidemark.Overlay) tidemark.Entry {
	r.t.Helper()
	id, stmts, err := r.overlayStmts(r.current(), tidemark.FromSystem, o)
	r.runs(stmts...)
	if err != nil {
		r.t.Fatal(err)
	}
	e, err := r.Session.log.Entry(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// runs carries out statements.
func (r *rig) runs(stmts ...tidemark.Stmt) {
	r.t.Helper()
	if err := r.faulty.DB.Tx(r.t.Context(), stmts); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	r.runs(tidemark.Stmt{SQL: sql, Args: args})
}

// table is what a query gives: columns apart by blanks, rows by semicolons.
func (r *rig) table(sql string, args ...any) string {
	r.t.Helper()
	rows, err := r.faulty.DB.Query(r.t.Context(), sql, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		cells := make([]string, len(row))
		for n := range row {
			cells[n] = row.Text(n)
		}
		lines[i] = strings.Join(cells, " ")
	}
	return strings.Join(lines, "; ")
}

// reads holds what a query gives against what it should.
func (r *rig) reads(want, sql string, args ...any) {
	r.t.Helper()
	if got := r.table(sql, args...); got != want {
		r.t.Errorf("%s\n got %s\nwant %s", sql, got, want)
	}
}

// working is a run in work that nobody works on but the test.
func (r *rig) working(state string) *run {
	r.t.Helper()
	x := r.newRun(r.current())
	x.State, x.typing = state, func([]tidemark.Origin) {}
	r.claim(x.ID)
	r.exec(`INSERT INTO runs(id, key, log, owner, state, started, updated) VALUES(?, ?, ?, ?, ?, 0, 0)`, x.ID, string(r.Key), x.Log, x.owner, state)
	return x
}

// heard are the notices that a subscription has, by their types and texts.
func heard(sub *Subscription) string {
	var out []string
	for n, ok := sub.Next(); ok; n, ok = sub.Next() {
		text := n.Text
		if n.Event != nil {
			text = n.Event.Type + ": " + n.Event.Text
		}
		out = append(out, strings.TrimSpace(n.Type+" "+strings.Join(n.Inputs, ",")+" "+text))
	}
	return strings.Join(out, "; ")
}

// listens subscribes to a session until the end of the test.
func (r *rig) listens() *Subscription {
	r.t.Helper()
	sub, err := r.Subscribe()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(sub.Close)
	return sub
}

// stillClock is a runtime whose time a test sets.
type stillClock struct {
	*tidemarktest.Runtime
	ms atomic.Int64
}

func (c *stillClock) Now() time.Time { return time.UnixMilli(c.ms.Load()).UTC() }

// passes moves the clock.
func (c *stillClock) passes(d time.Duration) { c.ms.Add(d.Milliseconds()) }

var errFaulty = errors.New("the disk is gone")

// faulty is a database that refuses what has some text in it.
type faulty struct {
	tidemark.DB
	mu    sync.Mutex // guards the following
	text  string     // empty: it refuses nothing
	first func()     // called once, before the next transaction
}

// refuses sets the text.
func (f *faulty) refuses(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = text
}

// before has something happen before the next transaction.
func (f *faulty) before(first func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first = first
}

func (f *faulty) refused(sql string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.text != "" && strings.Contains(sql, f.text) {
		return errFaulty
	}
	return nil
}

func (f *faulty) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if err := f.refused(sql); err != nil {
		return nil, err
	}
	return f.DB.Query(ctx, sql, args...)
}

func (f *faulty) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	f.mu.Lock()
	first := f.first
	f.first = nil
	f.mu.Unlock()
	if first != nil {
		first()
	}
	for _, s := range stmts {
		if err := f.refused(s.SQL); err != nil {
			return err
		}
	}
	return f.DB.Tx(ctx, stmts)
}

// warnings is what a session logs.
type warnings struct {
	mu   sync.Mutex // guards the following
	text strings.Builder
}

func (w *warnings) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// taken returns what was logged since the last time.
func (w *warnings) taken() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.text.Reset()
	return w.text.String()
}

const onePicture = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`

// pictureOf is a block as it comes.
func pictureOf(t *testing.T, raw string) tidemark.Block {
	t.Helper()
	var b tidemark.Block
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// spoken is a view of some items.
func spoken(items ...compaction.Item) (v View) {
	v.Items = items
	return v
}

// saidBy is an item of somebody.
func saidBy(source, text string) compaction.Item {
	role := tidemark.User
	if source == tidemark.FromModel {
		role = tidemark.Assistant
	}
	return compaction.Item{Message: tidemark.NewText(role, text), Source: source}
}

// offering is an agent with a tool.
type offering struct{ silent }

func (offering) Tools(tidemark.Scope) []tidemark.Tool {
	return []tidemark.Tool{{Name: "look", Description: "look", InputSchema: []byte(`{"type":"object"}`)}}
}

// asks has another model asked from now on.
func (r *rig) asks(p tidemark.Provider) { r.Provider, r.writer.Provider = p, p }
