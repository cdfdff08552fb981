package session_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
)

const stagedEntries = `SELECT count(*) FROM entries WHERE log IN (SELECT id FROM logs WHERE key LIKE 'import:agent:main:local:%') LIMIT 1`

// brokenOff is a store into which an archive was read until the connection broke, and the archive. x is the session that
// it was for.
func brokenOff(t *testing.T) (x *harness, raw []byte, shown string) {
	t.Helper()
	set := session.Settings{Window: 2_000_000}
	h := newHarness(t, set)
	if _, err := h.Import(t.Context(), func(yield func(replay.Message, error) bool) {
		for i := range 150 {
			m := tidemark.NewText([]tidemark.Role{tidemark.User, tidemark.Assistant}[i%2], filler(i))
			if !yield(replay.Message{Message: m}, nil) {
				return
			}
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	raw = h.export(h.snap(snapshots.Options{Name: "long"}).ID)
	x, _ = newTimed(t, set, noon)
	x = x.on("agent:main:local:dm:x")
	cut := io.MultiReader(bytes.NewReader(raw[:len(raw)*9/10]), iotest.ErrReader(errors.New("connection reset")))
	if _, err := x.ImportSnapshot(t.Context(), "", cut); err == nil || errors.Is(err, tidemark.ErrInvalid) {
		t.Fatalf("cut off: %v", err)
	}
	if x.count(stagedEntries) == 0 || x.count(`SELECT count(*) FROM due WHERE kind = 'import' AND key = ? LIMIT 1`, string(x.key)) != 1 {
		t.Fatal("nothing was read, or nothing looks after it")
	}
	return x, raw, h.shows()
}

// TestImportBrokenOff: an import that broke off is in nobody's way: the same conversation can be read into its session, or,
// where that is in use by now, into another, and what was read is not stored twice.
func TestImportBrokenOff(t *testing.T) {
	for _, used := range []bool{false, true} {
		x, raw, shown := brokenOff(t)
		to := x
		if used {
			x.say("one word")
			x.idle()
			if _, err := x.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); !errors.Is(err, tidemark.ErrConflict) {
				t.Errorf("into a session that is in use: %v", err)
			}
			to = x.on("agent:main:local:dm:y")
		}
		staged := x.count(`SELECT max(seq) FROM entries WHERE log IN (SELECT id FROM logs WHERE key LIKE 'import:agent:main:local:%') LIMIT 1`)
		if _, err := to.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); err != nil {
			t.Fatalf("used %v: %v", used, err)
		}
		if to.shows() != shown {
			t.Errorf("used %v: it shows something else", used)
		}
		if n := x.count(`SELECT count(*) FROM entries e JOIN logs l ON l.id = e.log WHERE l.key = ? AND e.seq <= ? LIMIT 1`, string(to.key), staged); n == 0 {
			t.Errorf("used %v: it was read from the beginning", used)
		}
		if n := x.count(`SELECT count(*) FROM logs WHERE key LIKE 'import:agent:main:local:%' LIMIT 1`); n != 0 {
			t.Errorf("used %v: %d logs are left", used, n)
		}
		if n := x.count(`SELECT count(*) FROM due WHERE kind = 'import' AND key = ? LIMIT 1`, string(to.key)); n != 0 {
			t.Errorf("used %v: there is nothing to look after", used)
		}
		x.idle()
	}
}

// TestImportBesideAnother: what an import in work has read is not taken from it.
func TestImportBesideAnother(t *testing.T) {
	x, raw, shown := brokenOff(t)
	x.exec(`INSERT INTO runs(id, key, log, owner, state, started, updated) SELECT 'other', key, log, 'z', 'calling', 0, 0 FROM heads WHERE key = ?`, string(x.key))
	y := x.on("agent:main:local:dm:y")
	staged := x.count(stagedEntries)
	if _, err := y.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); !errors.Is(err, tidemark.ErrBusy) || !strings.Contains(err.Error(), string(x.key)) {
		t.Errorf("beside it: %v", err)
	}
	x.ring("import")
	if at := x.count(`SELECT coalesce(max(at), 0) FROM due WHERE kind = 'import' AND key = ? LIMIT 1`, string(x.key)); x.count(stagedEntries) != staged || at == 0 {
		t.Errorf("%d entries of %d are left, and looked after at %s", x.count(stagedEntries), staged, time.UnixMilli(at))
	}
	x.exec(`UPDATE runs SET state = 'failed' WHERE id = 'other'`)
	if _, err := y.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); err != nil || y.shows() != shown {
		t.Errorf("behind it: %v", err)
	}
}

// TestImportForgotten: what an import left goes some day, and the archive can be read in behind that.
func TestImportForgotten(t *testing.T) {
	x, raw, shown := brokenOff(t)
	x.idle()
	rows := x.count(`SELECT count(*) FROM entries LIMIT 1`) - x.count(stagedEntries)
	x.ring("import")
	if n := x.count(`SELECT count(*) FROM entries LIMIT 1`); n != rows {
		t.Errorf("%d entries, want %d", n, rows)
	}
	if n := x.count(`SELECT (SELECT count(*) FROM logs WHERE key LIKE 'import:agent:main:local:%') + (SELECT count(*) FROM due WHERE kind = 'import' AND key LIKE 'agent:main:local:%') LIMIT 1`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if _, err := x.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); err != nil || x.shows() != shown {
		t.Errorf("behind it: %v", err)
	}
}

// TestImportAstray: where only later parts of what an import read are left, the second try is right.
func TestImportAstray(t *testing.T) {
	x, raw, shown := brokenOff(t)
	x.exec(`DELETE FROM entries WHERE seq = (SELECT min(seq) FROM entries WHERE log IN (SELECT id FROM logs WHERE key LIKE 'import:agent:main:local:%'))`)
	if _, err := x.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("first try: %v", err)
	}
	if _, err := x.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); err != nil || x.shows() != shown {
		t.Errorf("second try: %v", err)
	}
}

// TestImportBesideTurn: what is said in a session just before an archive is read into it is not lost.
func TestImportBesideTurn(t *testing.T) {
	h, n := travelled(t)
	raw := h.export(n.ID)
	for k, met := 1, true; met; k++ {
		met = false
		o := newHarness(t, h.set)
		o.stop()
		m := &beside{DB: o.db}
		o.db = m
		o.open()
		said := false
		m.left, m.act = k, func() {
			met = true
			if busy, err := o.Busy(t.Context()); err == nil && busy == "" {
				o.say("a word")
				said = true
			}
		}
		_, err := o.ImportSnapshot(context.WithValue(t.Context(), counted{}, true), "", bytes.NewReader(raw))
		if !said {
			break // it has begun, and what is said waits
		}
		if !errors.Is(err, tidemark.ErrConflict) || len(o.originals()) != 2 {
			t.Errorf("before query %d: %v, and the session has %q", k, err, o.originals())
		}
		o.stop()
	}
}

// TestSnapshotToldByEach: of two conversations in one store that have a snapshot each tells the agent, also when it is away.
func TestSnapshotToldByEach(t *testing.T) {
	h, _ := newTimed(t, session.Settings{}, noon)
	h.say("hello")
	h.idle()
	h.stop()
	away := &telling{fakeAgent: h.agent, nodes: map[string]bool{}}
	open := func(key tidemark.Key) *session.Session {
		s, err := session.Open(t.Context(), session.Config{Key: key, DB: h.db, Blobs: h.blobs, Provider: h.model, Agent: away, Runtime: h.rt,
			Settings: session.Settings{Model: "test"}, Strategies: []compaction.Strategy{compaction.Summary{}}, Rooms: h.rooms()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := open(h.key), open("agent:main:local:dm:b")
	h.agent.mu.Lock()
	h.agent.fail = tidemark.ErrUnavailable
	h.agent.mu.Unlock()
	n, err := roomOf[*snapshots.Room](t, a).Take(t.Context(), snapshots.Options{})
	var raw bytes.Buffer
	if err = errors.Join(err, roomOf[*snapshots.Carry](t, a).Export(t.Context(), n.ID, &raw)); err != nil {
		t.Fatal(err)
	}
	if _, err := roomOf[*snapshots.Carry](t, b).Import(t.Context(), "", &raw); err != nil {
		t.Fatal(err)
	}
	if _, err := roomOf[*snapshots.Room](t, a).Remove(t.Context(), n.ID); err != nil {
		t.Fatal(err)
	}
	h.idle()
	if n := h.count(`SELECT count(DISTINCT key) FROM outbox WHERE kind = 'snapshot' AND id LIKE 'snapshot:%' LIMIT 1`); n != 2 {
		t.Errorf("%d of 2 conversations tell of it: %q", n, h.outbox())
	}
}

// ring makes something due now and wakes the session.
func (h *harness) ring(kind string) {
	h.t.Helper()
	now := tidemark.Stmt{SQL: `UPDATE due SET at = 0 WHERE kind = ? AND key = ?`, Args: []any{kind, string(h.key)}, Want: 1}
	if err := h.db.Tx(h.t.Context(), []tidemark.Stmt{now}); err != nil {
		h.t.Fatal(err)
	}
	if err := h.Wake(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}
