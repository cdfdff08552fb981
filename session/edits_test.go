package session_test

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// overlayReader counts the overlays that are read.
type overlayReader struct {
	tidemark.DB
	read atomic.Int64
}

func (r *overlayReader) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	rows, err := r.DB.Query(ctx, sql, args...)
	if strings.Contains(sql, "kind = 'overlay'") {
		r.read.Add(int64(len(rows)))
	}
	return rows, err
}

// TestStandingEdits: a view reads the overlays that came since the one before, and is what a new life makes of all
// of them: through compactions, undos, and undos of what lies deeper.
func TestStandingEdits(t *testing.T) {
	db := &overlayReader{}
	h := newHarness(t, small)
	h.stop()
	db.DB, h.db = h.db, db
	h.open()
	same := func(what string) session.View {
		t.Helper()
		v, err := h.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.stop()
		h.open()
		all, err := h.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(texts(v.Messages()), texts(all.Messages())) || !reflect.DeepEqual(v.Shown, all.Shown) || v.Until != all.Until || v.Size != all.Size {
			t.Fatalf("%s: kept %+v\nof all %+v", what, v.Shown, all.Shown)
		}
		return v
	}
	var shown []tidemark.EntryID
	for i := range 4 {
		h.fill(i + 1)
		v := same("compaction")
		shown = append(shown, v.Shown[0].Overlay)
	}
	h.say("warm")
	if _, err := h.View(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.read.Store(0)
	if _, err := h.View(t.Context()); err != nil || db.read.Load() > 0 {
		t.Errorf("%d overlays read that were read before, %v", db.read.Load(), err)
	}
	for i := len(shown) - 1; i >= 0; i-- {
		before, err := h.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Undo(t.Context(), shown[i]); err != nil {
			t.Fatal(err)
		}
		after := same("undo")
		if len(texts(after.Messages())) <= len(texts(before.Messages())) {
			t.Errorf("undo of %s brings nothing back", shown[i])
		}
	}
	if got, want := texts(h.sent()), h.originals(); len(got) != len(want) {
		t.Errorf("%d messages in view, %d in the log", len(got), len(want))
	}
}
