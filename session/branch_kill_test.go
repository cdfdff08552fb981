package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
)

// doomed opens the session on a database that dies at the n-th write from then on.
func (h *harness) doomed(n int, after bool) *harness {
	h.t.Helper()
	d := &mortal{DB: h.db, left: 1 << 30, after: after, dead: make(chan struct{})}
	o := *h
	o.db, o.Session = d, nil
	o.open()
	d.mu.Lock()
	d.left, d.writes = n, 0
	d.mu.Unlock()
	return &o
}

// wrote is how many writes an act makes before it returns.
func (h *harness) wrote(act func(*harness) error) int {
	h.t.Helper()
	o := h.doomed(1<<30, false)
	if err := act(o); err != nil {
		h.t.Fatal(err)
	}
	d := o.db.(*mortal)
	d.mu.Lock()
	defer d.mu.Unlock()
	o.stop()
	return d.writes
}

// TestKillBranching kills the process before and after each write of a snapshot, a branch and a merge: of each there is
// nothing or all, and it can be made again.
func TestKillBranching(t *testing.T) {
	h := newAlone(t, session.Settings{})
	h.say("a question")
	n := h.snap(snapshots.Options{Name: "base"})
	out, made := h.branch(snapshots.BranchOptions{Snapshot: n.ID, Name: "out"})
	names := 0
	h.stop()
	for _, tc := range []struct {
		name string
		act  func(*harness) error
		rows string // that it makes, one each
	}{
		{"snapshot", func(o *harness) error {
			_, err := o.Snapshot(t.Context(), snapshots.Options{Name: "another"})
			return err
		}, `SELECT count(*) FROM snapshots LIMIT 1`},
		{"branch", func(o *harness) error {
			_, err := o.Branch(t.Context(), snapshots.BranchOptions{Name: fmt.Sprint("b", names), Orientation: "go", Trim: true})
			return err
		}, `SELECT (SELECT count(*) FROM branches) LIMIT 1`},
		{"merge", func(o *harness) error {
			_, err := o.Merge(t.Context(), snapshots.MergeOptions{From: made.Key, Note: fmt.Sprint("note ", names)})
			return err
		}, `SELECT count(*) FROM merges LIMIT 1`},
	} {
		total := h.wrote(tc.act)
		for k := 1; k <= total; k++ {
			for _, after := range []bool{false, true} {
				names++
				was := h.count(tc.rows)
				o := h.doomed(k, after)
				err := tc.act(o)
				o.stop()
				if err != nil && !errors.Is(err, tidemark.ErrDead) {
					t.Errorf("%s, write %d: %v", tc.name, k, err)
				}
				if more := h.count(tc.rows) - was; more > 1 || err == nil && more != 1 {
					t.Errorf("%s, write %d: %d more, %v", tc.name, k, more, err)
				}
				h.whole(fmt.Sprint(tc.name, " ", k, after))
				names++
				next := h.doomed(1<<30, false)
				if err := tc.act(next); err != nil {
					t.Errorf("%s, after write %d: %v", tc.name, k, err)
				}
				next.stop()
			}
		}
	}
	out.sent()
	h.open()
	h.say("and on")
	h.sent()
}

// whole holds that every branch has its log, head, ref and overlays, and every note its entry.
func (h *harness) whole(at string) {
	h.t.Helper()
	for _, r := range []room.Tabler{&snapshots.Room{}, &snapshots.Merges{}} {
		if err := r.Tables().Open(h.t.Context(), h.db); err != nil {
			h.t.Fatal(err)
		}
	}
	for what, sql := range map[string]string{
		"branches without a head":  `SELECT count(*) FROM branches b WHERE NOT EXISTS (SELECT 1 FROM heads h WHERE h.key = b.key) LIMIT 1`,
		"heads without a log":      `SELECT count(*) FROM heads h WHERE NOT EXISTS (SELECT 1 FROM logs l WHERE l.id = h.log AND l.key = h.key) LIMIT 1`,
		"heads without a ref":      `SELECT count(*) FROM heads h WHERE NOT EXISTS (SELECT 1 FROM refs r WHERE r.name = 'head:' || h.key AND r.value = h.log) LIMIT 1`,
		"logs without a head":      `SELECT count(*) FROM logs l WHERE l.base_log <> '' AND l.key NOT LIKE 'import:%' AND NOT EXISTS (SELECT 1 FROM branches b WHERE b.log = l.id) LIMIT 1`,
		"branches of no snapshot":  `SELECT count(*) FROM branches b WHERE NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.id = b.snapshot) LIMIT 1`,
		"branches with no overlay": `SELECT count(*) FROM branches b WHERE orientation <> '' AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.log = b.log AND e.kind = 'overlay') LIMIT 1`,
		"notes without an entry":   `SELECT count(*) FROM merges m WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = m.entry) LIMIT 1`,
	} {
		if n := h.count(sql); n != 0 {
			h.t.Errorf("%s: %d %s", at, n, what)
		}
	}
}

// TestKillCarry kills an import before and after each write: the session is empty or has all, and the same archive can be
// read again.
func TestKillCarry(t *testing.T) {
	from, n := travelled(t)
	raw, want := from.export(n.ID), from.shows()
	base := newAlone(t, from.set)
	base.stop()
	act := func(o *harness) error {
		_, err := o.ImportSnapshot(t.Context(), "", bytes.NewReader(raw))
		return err
	}
	base.key = "agent:main:local:dm:count"
	total := base.wrote(act)
	step := 1
	if runtime.GOOS == "js" {
		step = 3
	}
	for k := 1; k <= total; k += step {
		for _, after := range []bool{false, true} {
			h := newAlone(t, from.set)
			h.stop()
			o := h.doomed(k, after)
			err := act(o)
			o.stop()
			h.open()
			for busy := "?"; busy != ""; { // the next life ends the run of the import
				var err error
				if busy, err = h.Busy(t.Context()); err != nil {
					t.Fatal(err)
				}
				runtime.Gosched()
			}
			nodes, e := h.nodes()
			said := len(h.originals())
			if e != nil || (len(nodes) == 0) != (said == 0) || err == nil && said != n.Messages || said != 0 && said != n.Messages {
				t.Errorf("write %d after=%v: %d nodes, %d messages, %v, %v", k, after, len(nodes), said, err, e)
			}
			if err := act(h); err != nil {
				t.Errorf("write %d after=%v: again: %v", k, after, err)
				continue
			}
			if got := h.shows(); got != want || len(h.originals()) != n.Messages {
				t.Errorf("write %d after=%v: %d messages, it shows\n%.500s", k, after, len(h.originals()), got)
			}
			h.whole(fmt.Sprint("import ", k))
			h.stop()
		}
	}
}
