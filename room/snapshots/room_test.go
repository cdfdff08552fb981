package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// TestRoomForBranches: a branch needs room for itself, and for the snapshot that is taken with it.
func TestRoomForBranches(t *testing.T) {
	full := func(of int) (*rig, snapshot.Node) {
		r := newRig(t)
		r.talks("one", "two")
		n := r.take(Options{Name: "ground"})
		r.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) INSERT INTO snapshots(id, root, log, seq, created, node) SELECT 'snap-' || n, root, log, seq, created, node FROM i, snapshots WHERE snapshots.id = ?`, of-1, n.ID)
		return r, n
	}
	r, _ := full(MaxNodes - 2)
	if _, err := r.room.Branch(t.Context(), BranchOptions{Name: "a"}); err != nil {
		t.Errorf("with its snapshot, where there is room for both: %v", err)
	}
	r, n := full(MaxNodes - 1)
	if _, err := r.room.Branch(t.Context(), BranchOptions{Name: "a"}); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("with its snapshot, where there is room for one: %v", err)
	}
	if _, err := r.room.Branch(t.Context(), BranchOptions{Name: "a", Snapshot: n.ID}); err != nil {
		t.Errorf("the last: %v", err)
	}
	if _, err := r.room.Branch(t.Context(), BranchOptions{Name: "b", Snapshot: n.ID}); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("one more: %v", err)
	}
}

// TestListKinds: snapshots and branches stand in one list page by page; what was removed, and what an import went on from, in none.
func TestListKinds(t *testing.T) {
	r := newRig(t)
	if page, next, err := r.room.List(t.Context(), "", 5, false); err != nil || page == nil || len(page) > 0 || next != "" {
		t.Errorf("of none: %v, %q, %v", page, next, err)
	}
	r.talks("one", "two")
	a, gone := r.take(Options{Name: "a"}), r.take(Options{Name: "gone"})
	_, b := r.branch(BranchOptions{Name: "b", Snapshot: a.ID})
	c := r.take(Options{Name: "c"})
	_, d := r.branch(BranchOptions{Name: "d", Snapshot: c.ID})
	if _, err := r.room.Remove(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	r.exec(`INSERT INTO branches(log, key, snapshot, created, node) VALUES('i', ?, 'x', 1, '')`, string(mine)+"#import")
	r.exec(`UPDATE snapshots SET created = 5`)
	r.exec(`UPDATE branches SET created = 5`) // at one time, as far as the clock tells
	want := []string{a.ID, c.ID}
	slices.Sort(want)
	logs := r.lines(`SELECT key FROM branches WHERE node <> '' ORDER BY log LIMIT 9`)
	want = append(want, strings.Split(logs, "\n")...)
	for _, newest := range []bool{false, true} {
		for limit := 1; limit <= 5; limit++ {
			var got []string
			for cursor := ""; ; {
				page, next, err := r.room.List(t.Context(), cursor, limit, newest)
				if err != nil || len(page) > limit || len(got) > 9 {
					t.Fatal(page, err)
				}
				for _, n := range page {
					got = append(got, n.ID)
				}
				if cursor = next; next == "" {
					break
				}
			}
			if newest {
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("newest %v, %d at a time: %q, want %q of %s and %s", newest, limit, got, want, b.Key, d.Key)
			}
		}
	}
	if page, _, err := r.room.List(t.Context(), "0@0@a@b", 5, false); err != nil || len(page) != 4 {
		t.Errorf("behind a name with a sign: %d, %v", len(page), err)
	}
	r.exec(`UPDATE snapshots SET node = '{' WHERE id = ?`, a.ID)
	if _, _, err := r.room.List(t.Context(), "", 5, false); err == nil || !strings.Contains(err.Error(), "read snapshot "+a.ID) {
		t.Errorf("one that cannot be read: %v", err)
	}
}

// TestBranchOfTaken: a branch of a snapshot that a command took before it was cut off is made of that.
func TestBranchOfTaken(t *testing.T) {
	r := newRig(t)
	r.talks("one", "two")
	if _, err := r.room.Answer(t.Context(), asked("snapshot", "x", true, "same")); err != nil {
		t.Fatal(err)
	}
	if got, err := r.room.Answer(t.Context(), asked("branch", "y", true, "same")); err != nil || !strings.HasPrefix(got, "Branch: agent:main:main#y, from 2 messages") {
		t.Errorf("%q, %v", got, err)
	}
	if got := r.lines(`SELECT count(*) FROM snapshots LIMIT 1`); got != "1" {
		t.Errorf("%s snapshots", got)
	}
	r.did = nil
	r.room.tellBranch(Branch{Key: mine + "#none"}) // whose session is gone
	if !slices.Equal(r.did, []string{"tell", "alarm"}) {
		t.Errorf("did %q", r.did)
	}
	r.exec(`INSERT INTO snapshots(id, root, log, seq, created, node) SELECT id, 'agent:main:aunt', log, seq, created, node FROM snapshots`)
	id := r.lines(`SELECT id FROM snapshots LIMIT 1`)
	if _, err := r.room.Branch(t.Context(), BranchOptions{Snapshot: id, Name: "z"}); err != nil {
		t.Errorf("of one that another conversation has, too: %v", err)
	}
	n := r.take(Options{Name: "wrong"})
	for range 2 {
		if got, err := r.room.Remove(t.Context(), n.ID); err != nil || got.ID != n.ID {
			t.Errorf("removed %+v, %v", got, err)
		}
	}
}

// TestExportOfTower: of a branch of a branch all snapshots before it are told, root first.
func TestExportOfTower(t *testing.T) {
	r, upper, ground, roof := house(t)
	attic, _ := upper.branch(BranchOptions{Snapshot: roof.ID, Name: "attic"})
	attic.talks("up here")
	sky := attic.take(Options{Name: "sky"})
	m, _, lines := opened(t, r.export(sky.ID))
	if len(m.Lineage) != 2 || m.Lineage[0].ID != ground.ID || m.Lineage[1].ID != roof.ID || len(lines) != 8 {
		t.Errorf("lineage %+v, %d lines", m.Lineage, len(lines))
	}
	var more carriedMore
	if err := json.Unmarshal(m.More, &more); err != nil || len(more.Places) != 2 || more.Places[0] != (carriedPlace{ground.ID, lines[2].ID}) || more.Places[1] != (carriedPlace{roof.ID, lines[6].ID}) {
		t.Errorf("places %+v, %v", more.Places, err)
	}
	r.exec(`UPDATE snapshots SET node = '{' WHERE id = ?`, ground.ID)
	if err := r.carry.Export(t.Context(), sky.ID, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "read snapshot "+ground.ID) {
		t.Errorf("behind one that cannot be read: %v", err)
	}
}

// TestImportOntoOthers: an archive of which this store has the beginning goes on from there, and takes nothing from those who have
// said more since.
func TestImportOntoOthers(t *testing.T) {
	r, upper, ground, roof := house(t)
	raw := r.export(roof.ID)
	r.exec(`DELETE FROM entries WHERE log = ?`, upper.current())
	before := r.lines(`SELECT id FROM entries WHERE log = ? ORDER BY seq LIMIT 99`, r.current())
	x := r.on(there)
	if err := x.room.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	r.exec(`INSERT INTO snapshots(id, root, log, seq, created, node) SELECT id, ?, log, seq, created, node FROM snapshots WHERE id = ?`, string(there), ground.ID) // it has that one already
	if _, err := x.imports(raw); err != nil {
		t.Fatal(err)
	}
	if got := r.lines(`SELECT id FROM entries WHERE log = ? ORDER BY seq LIMIT 99`, r.current()); got != before {
		t.Errorf("the one that has them has\n%s\nwant\n%s", got, before)
	}
	if !slices.Equal(x.writes, []int{4}) {
		t.Errorf("writes %v", x.writes)
	}
}

// TestImportBadLines: a line that is none is named by its number, and an entry that does not fit into a row is refused.
func TestImportBadLines(t *testing.T) {
	r := newRig(t)
	for range 65 {
		r.talks("word")
	}
	m, _, lines := opened(t, r.export(r.take(Options{}).ID))
	for n, want := range map[int]string{2: "entry 3: ", 65: "entry 66: "} {
		var out bytes.Buffer
		w, err := snapshot.NewWriter(&out, m)
		for _, e := range lines[:n] {
			if err == nil {
				err = w.Line(carryStream, []byte(room.JSON(e)))
			}
		}
		if err = errors.Join(err, w.Line(carryStream, []byte(`{"id":5}`)), w.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := newRig(t).on(there).imports(out.Bytes()); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("behind %d others: %v", n, err)
		}
	}
	large := tidemark.NewText(tidemark.User, "")
	large = tidemark.NewText(tidemark.User, strings.Repeat("x", tidemark.MaxRow+1-len(large.AppendJSON(nil))))
	e := lines[0]
	e.Payload, e.Chain = large.AppendJSON(nil), tidemark.Chain("", large)
	m.Node.Messages, m.Node.Hash = 1, e.Chain
	if _, err := newRig(t).on(there).imports(packed(t, m, nil, []carriedEntry{e})); !errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes, at most %d", tidemark.MaxRow+1, tidemark.MaxRow)) {
		t.Errorf("a large message: %v", err)
	}
}

// TestImportStopped: a failure of the store is told where an import takes over what another left, and one that was stopped is no
// archive that was changed.
func TestImportStopped(t *testing.T) {
	r, _, _, roof := house(t)
	raw := r.export(roof.ID)
	_, _, lines := opened(t, raw)
	x := newRig(t).on(there)
	x.left("stage1", yours, lines[:3], 0)
	x.store.part, x.store.refuse = "UPDATE logs SET key = ? WHERE key IN", errDown
	if _, err := x.imports(raw); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "take over what another import left") {
		t.Errorf("taking over: %v", err)
	}
	ctx, stop := withStop(t)
	stop()
	x.unfit = tidemark.ErrNotFound
	if _, err := (&carrier{s: x.carry}).viewable(ctx); !errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("stopped while it is looked at: %v", err)
	}
}
