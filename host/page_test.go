package host_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
)

// weighed notes the largest page that was read.
type weighed struct {
	tidemark.DB
	most int
}

func (w *weighed) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	rows, err := w.DB.Query(ctx, sql, args...)
	n := 0
	for _, r := range rows {
		for i := range r {
			n += len(r.Text(i))
		}
	}
	w.most = max(w.most, n)
	return rows, err
}

// TestPagesOfLargeRows: however entries are read, a page of the largest rows fits through a Worker.
func TestPagesOfLargeRows(t *testing.T) {
	const entries, payload, most = 20, tidemark.MaxRow - 2000, 16 << 20
	db := &weighed{DB: hosttest.DB(t)}
	log, err := host.OpenLog(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_763_700_000_000)
	if err := db.Tx(t.Context(), []tidemark.Stmt{log.CreateStmt(host.Info{ID: "l", Key: "agent:main:main", Created: now})}); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", payload)
	var seqs []int64
	for range entries {
		e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindMessage, At: now,
			Payload: tidemark.NewText(tidemark.User, text).AppendJSON(nil)}
		if err := log.Append(t.Context(), "l", e); err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, int64(len(seqs)+1))
	}
	for name, read := range map[string]func() (int, error){
		"payloads": func() (int, error) { got, err := log.Payloads(t.Context(), seqs); return len(got), err },
		"walk": func() (n int, err error) {
			for _, e := range log.Walk(t.Context(), "l", 0) {
				if n++; e != nil {
					return n, e
				}
			}
			return n, nil
		},
	} {
		db.most = 0
		if n, err := read(); n != entries || err != nil || db.most > most {
			t.Errorf("%s: %d entries, %v, a page of %d bytes, at most %d", name, n, err, db.most, most)
		}
	}
}
