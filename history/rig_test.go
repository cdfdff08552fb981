package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/blocks"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/lineage"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

var errFaulty = errors.New("the disk is gone")

// faulty is a database that refuses what has some text in it.
type faulty struct {
	tidemark.DB
	text  string // empty: it refuses nothing
	marks int    // overlays that were read
}

func (f *faulty) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	if f.text != "" && strings.Contains(sql, f.text) {
		return nil, errFaulty
	}
	rows, err := f.DB.Query(ctx, sql, args...)
	if strings.Contains(sql, "kind = 'overlay'") {
		f.marks += len(rows)
	}
	return rows, err
}

// failingGet is a bucket that gives nothing.
type failingGet struct{ tidemark.Blobs }

func (failingGet) Get(context.Context, string) (tidemark.Object, io.ReadCloser, error) {
	return tidemark.Object{}, nil, errFaulty
}

// rig is a reader of a conversation, and what writes the log that it reads.
type rig struct {
	*Reader
	t    *testing.T
	db   *faulty
	log  string // in which the conversation stands; where the database refuses "current", nobody knows it
	now  time.Time
	most int64 // bytes of a view
}

// noon is when the clock of a rig stands still.
const noon int64 = 1_773_144_000_000 // 2026-03-10T12:00:00Z

// newRig is the main conversation in a database of its own, in the log "main".
func newRig(t *testing.T) *rig {
	t.Helper()
	db := &faulty{DB: hosttest.DB(t)}
	log, err := host.OpenLog(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	made := &room.Made{DB: db}
	tables := room.Tables{Space: "session_artifacts", Steps: blocks.Tables}
	store := &blocks.Store{DB: db, Blobs: tidemarktest.NewBlobs(), Open: func(ctx context.Context) error { return made.Open(ctx, tables) },
		There: func(ctx context.Context) (bool, error) { return made.Has(ctx, tables) }}
	r := &rig{Reader: &Reader{Log: log, Blocks: store, Runtime: tidemarktest.NewRuntime(t)}, t: t, db: db}
	return r.opened("agent:main:main", host.Info{ID: "main"})
}

// opened is a conversation in the same database, in a log that is made.
func (r *rig) opened(key tidemark.Key, i host.Info) *rig {
	r.t.Helper()
	out := &rig{t: r.t, db: r.db, now: time.UnixMilli(noon).UTC(), most: 64 << 20}
	store := *r.Blocks
	store.Key = key
	out.Reader = &Reader{Key: key, Log: r.Log, Blocks: &store, Lineage: &lineage.Lineage{Key: key, DB: r.db, Log: r.Log}, Runtime: r.Runtime,
		Current: func(context.Context) (string, error) {
			if r.db.text == "current" {
				return "", errFaulty
			}
			return out.log, nil
		}, ViewBytes: func() int64 { return out.most }, Zone: func() *time.Location { return time.UTC }}
	out.begins(i)
	return out
}

// begins has the conversation stand in a new log.
func (r *rig) begins(i host.Info) {
	r.t.Helper()
	i.Key, i.Created = r.Key, time.UnixMilli(1)
	r.does(r.Log.CreateStmt(i))
	r.log = i.ID
}

func (r *rig) does(stmts ...tidemark.Stmt) {
	r.t.Helper()
	if err := r.db.Tx(r.t.Context(), stmts); err != nil {
		r.t.Fatal(err)
	}
}

// appends logs an entry and returns it as it is stored.
func (r *rig) appends(e tidemark.Entry) tidemark.Entry {
	r.t.Helper()
	e.At = r.now
	if e.ID == "" {
		e.ID = tidemark.EntryID(tidemark.NewID(e.At))
	}
	err := r.Log.Append(r.t.Context(), r.log, e)
	if err == nil {
		e, err = r.Log.Entry(r.t.Context(), e.ID)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// says logs a message.
func (r *rig) says(m tidemark.Message) tidemark.Entry {
	r.t.Helper()
	stored, err := r.Blocks.Spill(r.t.Context(), m)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.appends(tidemark.Entry{Kind: tidemark.KindMessage, Tokens: tidemark.Estimate(m), Origin: tidemark.Origin{From: tidemark.SourceOf(m)}, Payload: stored.AppendJSON(nil)})
}

// person logs what somebody said.
func (r *rig) person(text string) tidemark.Entry {
	r.t.Helper()
	return r.says(tidemark.NewText(tidemark.User, text))
}

// acts logs an overlay or an event.
func (r *rig) acts(kind tidemark.Kind, v any) tidemark.Entry {
	r.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.appends(tidemark.Entry{Kind: kind, Origin: tidemark.Origin{From: tidemark.FromSystem}, Payload: raw})
}

// seqs are the positions of entries.
func seqs(list []tidemark.Entry) string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = fmt.Sprint(e.Seq)
	}
	return strings.Join(out, " ")
}
