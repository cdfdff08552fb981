package claude

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestDue: another branch is due from a quarter more on, behind a compaction, and when what is remembered cannot be read:
// it must not silence the hook for good.
func TestDue(t *testing.T) {
	w := newWorld(t)
	h := Hook{Store: w.store}
	path := h.statePath(idOne)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	for _, r := range []struct {
		name, state string
		tokens      tidemark.Tokens
		want        bool
	}{
		{"less than a quarter more", `{"tokens":100000}`, 124_999, false},
		{"a quarter more", `{"tokens":100000}`, 125_000, true},
		{"as it was", `{"tokens":100000}`, 100_000, false},
		{"a little less", `{"tokens":100000}`, 80_000, false},
		{"compacted", `{"tokens":100000}`, 79_999, true},
		{"broken", `{"tokens":`, 100_000, true},
		{"empty", ``, 100_000, true},
	} {
		must(t, os.WriteFile(path, []byte(r.state), 0o600))
		if got := h.due(idOne, r.tokens); got != r.want {
			t.Errorf("%s: due %t", r.name, got)
		}
	}
	must(t, os.Remove(path))
	if !h.due(idOne, 1) {
		t.Error("the first is not due")
	}
}

// TestCarriedPieces: what comes from elsewhere is cut as it was there, logs beside the log too, so that the same content is
// kept once.
func TestCarriedPieces(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 2_000))
	must(t, os.MkdirAll(filepath.Join(s.folder(), "subagents"), 0o700))
	must(t, os.WriteFile(filepath.Join(s.folder(), "subagents", "agent-1.jsonl"), []byte(w.talk(idTwo, 1_500)), 0o600))
	must(t, os.WriteFile(filepath.Join(s.folder(), "out.txt"), bytes.Repeat([]byte("0123456789"), 300_000), 0o600))
	node := w.snap(s, "a")
	var file bytes.Buffer
	must(t, w.store.Export(t.Context(), node.ID, &file))
	there := newWorld(t)
	_, err := there.store.Import(t.Context(), &file)
	must(t, err)
	here, err := w.store.record(t.Context(), node.ID)
	must(t, err)
	carried, err := there.store.record(t.Context(), node.ID)
	must(t, err)
	if here.Content != carried.Content {
		t.Error("the same files are another content")
	}
}

// TestSideBySide: who adds to the store, or makes a branch of what is in it, waits for nobody who does the same.
func TestSideBySide(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 1))
	release, err := w.store.hold(t.Context(), useName, true)
	must(t, err)
	defer release()
	ctx := t.Context() // who waits for the others is told that the store is busy
	node, err := w.store.Snapshot(ctx, s, SnapshotOptions{Name: "a"})
	must(t, err)
	_, err = w.store.Branch(ctx, "a", BranchOptions{Trim: true})
	must(t, err)
	var file bytes.Buffer
	must(t, w.store.Export(ctx, node.ID, &file))
	_, err = w.store.Import(ctx, &file)
	must(t, err)
}
