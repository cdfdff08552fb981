package session_test

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/room/task"
)

// TestBranchPins: the pins of a branch are those of its snapshot, and they are what its trim leaves whole: not those of
// the session that was asked, nor those of now.
func TestBranchPins(t *testing.T) {
	d := worked(t)
	owner := tidemark.Origin{From: tidemark.FromPerson, Owner: true}
	v, err := d.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var pin, behind tidemark.EntryID // a result, and the reply to it
	for _, it := range v.Items {
		switch {
		case pin == "" && len(it.Message.Results()) > 0:
			pin = it.ID
		case pin != "" && behind == "" && it.Message.Role == tidemark.Assistant:
			behind = it.ID
		}
	}
	change := func(h *harness, c task.Change) {
		t.Helper()
		if _, err := h.ChangeTask(t.Context(), c, owner); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(name string, from *harness, id string) {
		t.Helper()
		b, _ := from.branch(snapshots.BranchOptions{Snapshot: id, Trim: true, Name: name})
		if n := b.count(`SELECT count(*) FROM marks WHERE key = ? AND pinned > 0 LIMIT 1`, string(b.key)); n != 1 {
			t.Errorf("%s: %d pins, want 1", name, n)
		}
		v, err := b.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		whole, stubs := false, 0
		for _, it := range v.Items {
			whole = whole || it.ID == pin && len(it.Stubbed) == 0
			stubs += len(it.Stubbed)
		}
		if !whole || name != "early" && stubs == 0 {
			t.Errorf("%s: the pinned result is whole: %v, %d stubs of others", name, whole, stubs)
		}
	}
	change(d.harness, task.Change{Pin: []tidemark.EntryID{pin}})
	n := d.snap(snapshots.Options{Name: "pinned"})
	early := d.snap(snapshots.Options{Name: "earlier", At: behind})
	holds("now", d.harness, n.ID)
	holds("early", d.harness, early.ID)
	change(d.harness, task.Change{Unpin: []tidemark.EntryID{pin}})
	holds("later", d.harness, n.ID)
	own, _ := d.branch(snapshots.BranchOptions{Name: "own"})
	change(own, task.Change{Pin: []tidemark.EntryID{pin}})
	m := own.snap(snapshots.Options{Name: "of own"})
	holds("by way of the root", d.harness, m.ID)
	holds("by way of itself", own, m.ID)
}
