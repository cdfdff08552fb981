//go:build !js

package session_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// room bounds how many pages SQLite may still add to the database: it says then that the disk is full.
func (h *harness) room(pages int64) {
	h.t.Helper()
	all := h.number(`PRAGMA page_count`)
	if pages < 0 {
		all = 1 << 30
	}
	if err := h.db.Tx(h.t.Context(), []tidemark.Stmt{{SQL: fmt.Sprintf(`PRAGMA max_page_count = %d`, all+max(pages, 0))}}); err != nil {
		h.t.Fatal(err)
	}
}

// noise is a long text that is not shorter when it is compressed.
func noise() string {
	return lines(240_000, func(i int) string {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		return hex.EncodeToString(sum[:])
	})
}

// TestDiskFullOfArtifacts: when the disk fills while an artifact is written, whoever writes is told, nothing of the
// message stands, and with room again the turn ends with a whole log.
func TestDiskFullOfArtifacts(t *testing.T) {
	h, c := newTimedAlone(t, session.Settings{}, noon)
	h.room(8)
	_, err := h.Import(t.Context(), func(yield func(replay.Message, error) bool) {
		yield(replay.Message{At: c.Now(), Message: tidemark.NewText(tidemark.User, noise())}, nil)
	}, nil)
	if !errors.Is(err, tidemark.ErrUnavailable) || !strings.Contains(err.Error(), "disk is full") {
		t.Fatalf("import on a full disk: %v", err)
	}
	h.room(-1)
	if n := h.count(`SELECT count(*) FROM entries LIMIT 1`); n != 0 {
		t.Fatalf("%d entries of what was refused", n)
	}
}

// filling is a database on a disk that has room again after some writes that failed.
type filling struct {
	tidemark.DB
	failed atomic.Int64
}

func (f *filling) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	err := f.DB.Tx(ctx, stmts)
	if errors.Is(err, tidemark.ErrUnavailable) && f.failed.Add(1) == 12 {
		return errors.Join(err, f.DB.Tx(ctx, []tidemark.Stmt{{SQL: `PRAGMA max_page_count = 1000000000`}}))
	}
	return err
}

// TestDiskFullInTurn: a disk that fills while a large result is stored, at whatever write, leaves the log whole; with
// room again the turn has ended, once.
func TestDiskFullInTurn(t *testing.T) {
	for _, pages := range []int64{0, 8, 60, 70, 80, 90} {
		h, _ := newTimedAlone(t, session.Settings{}, noon)
		h.say("before")
		h.stop()
		h.idle()
		db := &filling{DB: h.db}
		h.db = db
		h.open()
		h.idle()
		calls := h.model.count()
		h.model.set(func(n int, _ tidemark.Request) (tidemark.Message, error) {
			if n == calls+1 {
				return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "look", nil)}}, nil
			}
			return tidemark.Message{}, nil
		})
		h.agent.call = func(c tidemark.Block) tidemark.Block {
			h.room(pages)
			return tidemark.ToolResult(c.ID, noise(), false)
		}
		in := say("go")
		r, err := h.Post(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		h.idle()
		h.room(-1)
		again, err := h.Post(t.Context(), session.Input{ID: r.ID, Message: in.Message})
		if busy, bad := h.Busy(t.Context()); err != nil || bad != nil || again.State != "done" || busy != "" || db.failed.Load() == 0 {
			t.Errorf("%d pages: the input is %q, %q in work, %d writes failed: %v, %v", pages, again.State, busy, db.failed.Load(), err, bad)
		}
		if got := h.say("after"); !strings.HasPrefix(got, "ok") {
			t.Errorf("%d pages: the next turn: %q", pages, got)
		}
		h.sent()                                                                      // each call has its result
		if n := strings.Count(strings.Join(h.originals(), "|"), "user: go"); n != 1 { // sent checks that each call has its result
			t.Errorf("%d pages: the input is there %d times", pages, n)
		}
	}
}

// refusing is a database that takes nothing down while it is full.
type refusing struct {
	tidemark.DB
	full bool
}

func (r *refusing) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	if r.full {
		return fmt.Errorf("disk is full: %w", tidemark.ErrUnavailable)
	}
	return r.DB.Tx(ctx, stmts)
}

// TestRecallOnFullDisk: where an index that is made anew finds no room, what is in it is found, and the rest told.
func TestRecallOnFullDisk(t *testing.T) {
	h, c := newTimedAlone(t, session.Settings{}, noon)
	h.stop()
	db := &refusing{DB: h.db}
	h.db = db
	h.open()
	h.told(spoken(60, func(i int) string { return fmt.Sprintf("talk of the harbour, tag NEEDLE_%d", i) })...)
	h.exec(`INSERT INTO words(words) VALUES('delete-all')`)
	h.stop()
	h.open()
	h.say("The tag of the pier is PIER_7.")
	db.full = true
	ask := func(query string) (found bool, missing int) {
		t.Helper()
		got, err := h.Recall(t.Context(), search.Wanted{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range got.Filtered {
			if f.Reason == "not indexed yet" {
				missing = f.Count
			}
		}
		return len(got.Results) > 0 && strings.Contains(got.Results[0].Text, query), missing
	}
	if found, missing := ask("PIER_7"); !found || missing != 60 {
		t.Errorf("on a full disk: found %v, %d missing", found, missing)
	}
	db.full = false
	c.advance(time.Minute)
	if found, missing := ask("NEEDLE_3"); !found || missing != 0 {
		t.Errorf("with room again: found %v, %d missing", found, missing)
	}
}
