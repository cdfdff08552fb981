package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// ids are those of some nodes.
func ids(nodes []snapshot.Node) (out []string) {
	for _, n := range nodes {
		out = append(out, n.ID)
	}
	return out
}

// TestSnapshotPages: a list comes page by page, each node once, in both orders, from any session of the conversation; a
// cursor that no page gave is refused.
func TestSnapshotPages(t *testing.T) {
	h := newHarness(t, session.Settings{})
	if page, next, err := h.Snapshots(t.Context(), "", 5, false); err != nil || page == nil || len(page) != 0 || next != "" {
		t.Errorf("none: %v, %q, %v", page, next, err)
	}
	h.say("a beginning")
	var want []string
	for i := range 9 { // at one time, as far as the clock tells
		n := h.snap(snapshots.Options{Name: fmt.Sprint("n", i)})
		want = append(want, n.ID)
		if i%3 == 0 {
			b, made := h.branch(snapshots.BranchOptions{Snapshot: n.ID})
			want = append(want, string(made.Key))
			b.say("on")
		}
	}
	for _, newest := range []bool{false, true} {
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []string
			for cursor := ""; ; {
				page, next, err := h.on(h.key+"#n0").Snapshots(t.Context(), cursor, limit, newest)
				if err != nil || len(page) > limit {
					t.Fatalf("page of %d, %v", len(page), err)
				}
				got = append(got, ids(page)...)
				if cursor = next; next == "" {
					break
				}
			}
			if newest {
				slices.Reverse(got)
			}
			sorted := slices.Sorted(slices.Values(got))
			if len(got) != len(want) || !slices.Equal(sorted, slices.Sorted(slices.Values(want))) {
				t.Fatalf("limit %d, newest %v: %d of %d nodes: %q", limit, newest, len(got), len(want), got)
			}
			all, err := h.nodes()
			if err != nil || !slices.Equal(ids(all), got) {
				t.Errorf("limit %d, newest %v: another order: %q, %v", limit, newest, got, err)
			}
		}
	}
	for _, bad := range []string{"x", "@", "1", "1@0", "1@2@x", "x@0@y", "1@@y"} {
		if _, _, err := h.Snapshots(t.Context(), bad, 5, false); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

// TestRemoveSnapshot: what is removed is in no list, nothing begins at it, and it costs no message; what a session began
// at stays, and nothing brings back what is gone.
func TestRemoveSnapshot(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.say("a heron")
	keep, n := h.snap(snapshots.Options{Name: "keep"}), h.snap(snapshots.Options{Name: "wrong"})
	raw := h.export(n.ID)
	h.branch(snapshots.BranchOptions{Snapshot: keep.ID, Name: "b"})
	shown := h.shows()
	for range 2 {
		if got, err := h.RemoveSnapshot(t.Context(), n.ID); err != nil || got.ID != n.ID || got.Gone {
			t.Fatalf("removed %+v, %v", got, err)
		}
	}
	nodes, err := h.nodes()
	if err != nil || len(nodes) != 2 || slices.Contains(ids(nodes), n.ID) || h.shows() != shown {
		t.Errorf("nodes %q, %v", ids(nodes), err)
	}
	if _, err := h.SnapshotNode(t.Context(), n.ID); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("asked for: %v", err)
	}
	if _, err := h.Branch(t.Context(), snapshots.BranchOptions{Snapshot: n.ID}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("branched: %v", err)
	}
	if err := h.ExportSnapshot(t.Context(), n.ID, &bytes.Buffer{}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("exported: %v", err)
	}
	for id, want := range map[string]error{keep.ID: tidemark.ErrConflict, string(h.key) + "#b": tidemark.ErrInvalid, "snap-x": tidemark.ErrNotFound, "": tidemark.ErrNotFound} {
		if _, err := h.RemoveSnapshot(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("remove %q: %v, want %v", id, err, want)
		}
	}
	if _, err := h.RemoveSnapshot(t.Context(), keep.ID); err == nil || !strings.Contains(err.Error(), string(h.key)+"#b") {
		t.Errorf("it does not say what began there: %v", err)
	}
	o := h.on("agent:main:local:dm:elsewhere") // in the same store
	if got, err := o.ImportSnapshot(t.Context(), "", bytes.NewReader(raw)); err != nil || got.Again {
		t.Errorf("import behind it: %+v, %v", got, err)
	}
	if _, err := o.RemoveSnapshot(t.Context(), n.ID); !errors.Is(err, tidemark.ErrConflict) {
		t.Errorf("remove what a session goes on from: %v", err)
	}
	if _, err := h.SnapshotNode(t.Context(), n.ID); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("an import elsewhere brought it back: %v", err)
	}
}

// TestSnapshotRoom: a conversation has a bound of snapshots, a lower one for people who are not its owner, and removing
// one makes room.
func TestSnapshotRoom(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	h.stop()
	h.key = "agent:main:fake:dm:ann"
	h.open()
	h.say("hello")
	first := h.snap(snapshots.Options{})
	fill := func(n int) { // rows as others made them
		err := h.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?)
			INSERT INTO snapshots(id, root, log, seq, created, node) SELECT 'snap-' || n, root, log, seq, created, node FROM i, snapshots WHERE snapshots.id = ? ON CONFLICT DO NOTHING`,
			Args: []any{n, first.ID}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	ask := func(owner bool) string {
		t.Helper()
		asked++
		in := ordered(ann, fmt.Sprint("ask", asked), "/snapshot more")
		in.Origin.Owner = owner
		h.finish(in)
		h.idle()
		return c.Texts()[len(c.Texts())-1]
	}
	fill(snapshots.GuestNodes - 2)
	if got := ask(false); !strings.HasPrefix(got, "Snapshot: more") {
		t.Errorf("the last but one: %s", got)
	}
	if got := ask(false); !strings.Contains(got, "only its owner") {
		t.Errorf("one too many: %s", got)
	}
	if got := ask(true); !strings.HasPrefix(got, "Snapshot: more") {
		t.Errorf("the owner: %s", got)
	}
	fill(snapshots.MaxNodes - 4) // beside the first and the two that were asked for
	if _, err := h.Trim(t.Context(), snapshots.BranchOptions{}); !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("a snapshot and its branch where there is room for one: %v", err)
	}
	last := h.snap(snapshots.Options{})
	for what, err := range map[string]error{
		"snapshot": func() error { _, err := h.Snapshot(t.Context(), snapshots.Options{}); return err }(),
		"branch":   func() error { _, err := h.Branch(t.Context(), snapshots.BranchOptions{Snapshot: last.ID}); return err }(),
		"trim":     func() error { _, err := h.Trim(t.Context(), snapshots.BranchOptions{}); return err }(),
	} {
		if !errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), "remove a snapshot") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := h.RemoveSnapshot(t.Context(), last.ID); err != nil {
		t.Fatal(err)
	}
	h.snap(snapshots.Options{})
}
