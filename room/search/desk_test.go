package search

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// watch is a runtime whose clock a test sets.
type watch struct {
	tidemark.Runtime
	mu sync.Mutex // guards at
	at time.Time
}

func (w *watch) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *watch) move(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// desk is the room of a conversation that is written into by hand, so that all positions are known.
type desk struct {
	*Room
	t      *testing.T
	log    string
	clock  *watch
	alarms int
}

// deskOf opens a conversation in a database, of an agent that has nothing to say.
func deskOf(t *testing.T, db tidemark.DB, key tidemark.Key, agent session.Agent) *desk {
	t.Helper()
	d := &desk{t: t, clock: &watch{Runtime: hosttest.Runtime(t), at: morning}}
	s, err := session.Open(t.Context(), session.Config{Key: key, DB: db, Blobs: tidemarktest.NewBlobs(), Agent: agent, Settings: session.Settings{Window: 1 << 20}, Runtime: d.clock, Rooms: []room.Maker{Make},
		Alarm: func(context.Context, time.Time) error { d.alarms++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	var ok bool
	if d.Room, ok = session.Room[*Room](s); !ok {
		t.Fatal("the session has no room that finds")
	}
	if d.log, err = d.Current(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// desks are two conversations that share a database, of which the second is a neighbour.
func desks(t *testing.T) (d, beside *desk) {
	t.Helper()
	db := hosttest.DB(t)
	return deskOf(t, db, "agent:main:main", silent{}), deskOf(t, db, "agent:main:second", silent{})
}

// exec runs statements.
func (d *desk) exec(sql string, args ...any) {
	d.t.Helper()
	hosttest.Exec(d.t, d.DB, sql, args...)
}

// number is the first of a query.
func (d *desk) number(sql string, args ...any) int64 {
	d.t.Helper()
	rows, err := d.DB.Query(d.t.Context(), sql, args...)
	if err != nil || len(rows) == 0 {
		d.t.Fatalf("%s: %d rows, %v", sql, len(rows), err)
	}
	return rows[0].Int(0)
}

// logs writes a message, not into the index, and returns its entry.
func (d *desk) logs(at time.Time, from string, m tidemark.Message) tidemark.Entry {
	d.t.Helper()
	e := []tidemark.Entry{{ID: tidemark.EntryID(tidemark.NewID(at)), Kind: tidemark.KindMessage, At: at, Origin: tidemark.Origin{From: from}, Tokens: tidemark.Estimate(m), Payload: m.AppendJSON(nil)}}
	if e[0].Origin.From == "" {
		e[0].Origin.From = tidemark.SourceOf(m)
	}
	if err := d.Log.Append(d.t.Context(), d.log, e...); err != nil {
		d.t.Fatal(err)
	}
	return e[0]
}

// says writes what a person says into log and index, and returns its entry.
func (d *desk) says(at time.Time, text string) tidemark.Entry {
	d.t.Helper()
	m := tidemark.NewText(tidemark.User, text)
	e := d.logs(at, "", m)
	stmts, err := d.index.IndexStmts(d.t.Context(), e, m)
	if err == nil && len(stmts) > 0 {
		err = d.DB.Tx(d.t.Context(), stmts)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return e
}

// event writes an event.
func (d *desk) event() {
	d.t.Helper()
	if err := d.DB.Tx(d.t.Context(), []tidemark.Stmt{d.Event(d.log, tidemark.Event{Type: "test", Text: "walnut"})}); err != nil {
		d.t.Fatal(err)
	}
}

// another begins a log of the conversation behind the present one, as a reset does.
func (d *desk) another() {
	d.t.Helper()
	d.log = fmt.Sprint(d.log, "-next")
	if err := d.DB.Tx(d.t.Context(), []tidemark.Stmt{d.Log.CreateStmt(host.Info{ID: d.log, Key: d.Key, Created: morning})}); err != nil {
		d.t.Fatal(err)
	}
}

// lineage is what the conversation may look into.
func (d *desk) line() *host.Lineage {
	d.t.Helper()
	l, err := d.Lineage(d.t.Context(), false)
	if err != nil {
		d.t.Fatal(err)
	}
	return l
}

// upTo is the lineage of a branch that sees its base's log up to a position.
func (d *desk) upTo(seq int64) *host.Lineage {
	return &host.Lineage{Key: d.Key, Logs: fmt.Sprintf(`{%q:%d}`, d.log, seq), UpTo: map[string]int64{d.log: seq}, Own: map[string]bool{}, Keys: []string{string(d.Key)}}
}

// indexed puts rows into the index of words under the conversation, without messages.
func (d *desk) indexed(rows map[int64]string) {
	d.t.Helper()
	var stmts []tidemark.Stmt
	for seq, terms := range rows {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO words(rowid, home, terms) VALUES(?, ?, ?)`, Args: []any{seq, recall.Home(d.Key), terms}})
	}
	slices.SortFunc(stmts, func(a, b tidemark.Stmt) int { return int(a.Args[0].(int64) - b.Args[0].(int64)) })
	for len(stmts) > 0 {
		some := stmts[:min(len(stmts), 500)]
		if err := d.DB.Tx(d.t.Context(), some); err != nil {
			d.t.Fatal(err)
		}
		stmts = stmts[len(some):]
	}
}

// minutes is some time behind the morning.
func minutes(n int) time.Time { return morning.Add(time.Duration(n) * time.Minute) }
