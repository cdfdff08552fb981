package session_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/session"
)

// meanwhile is a database on which something else happens just before the first run begins.
type meanwhile struct {
	tidemark.DB
	once sync.Once
	do   func()
}

func (m *meanwhile) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if strings.HasPrefix(stmts[0].SQL, "INSERT INTO runs") {
		m.once.Do(m.do)
	}
	return m.DB.Tx(ctx, stmts)
}

// TestRunBeginsInTheNewLog: a reset that ends between a run's look at the head and its first row
// must not leave a run that writes into the archived log.
func TestRunBeginsInTheNewLog(t *testing.T) {
	h, _ := newTimed(t, session.Settings{}, noon)
	h.say("before")
	h.stop()
	moved := tidemark.NewID(h.rt.Now())
	old, err := h.Reader.Logs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db := &meanwhile{DB: h.db}
	db.do = func() {
		log, err := host.OpenLog(t.Context(), db.DB)
		if err != nil {
			t.Error(err)
			return
		}
		err = db.DB.Tx(t.Context(), []tidemark.Stmt{
			log.CreateStmt(host.Info{ID: moved, Key: h.key, Previous: old[0], Created: h.rt.Now()}),
			log.RefStmt("head:"+string(h.key), old[0], moved),
			{SQL: `UPDATE heads SET log = ? WHERE key = ?`, Args: []any{moved, string(h.key)}, Want: 1}})
		if err != nil {
			t.Error(err)
		}
	}
	h.db = db
	h.open()
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	r, err := h.Post(t.Context(), session.Input{ID: "after", Message: tidemark.NewText(tidemark.User, "after")})
	if err != nil {
		t.Fatal(err)
	}
	h.idle()
	if err := h.Wake(t.Context()); err != nil { // as the run that moved the head would
		t.Fatal(err)
	}
	h.wait(sub, r.ID)
	var in []string
	for e, err := range h.Reader.All(t.Context(), true) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Origin.Input == "after" {
			in = append(in, e.Log)
		}
	}
	if !slices.Equal(in, []string{moved}) {
		t.Errorf("the input stands in %q, want the new log %s", in, moved)
	}
}
