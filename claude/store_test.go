package claude

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
)

func TestSnapshot(t *testing.T) {
	w := newWorld(t)
	log := w.talk(idOne, 5)
	s := w.write(idOne, log)
	n, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "first", Description: "d", Tags: []string{"a"}})
	must(t, err)
	if n.Hash != tidemark.HashOf([]byte(log)) || n.Messages != 20 || n.Tokens != 5393 || n.Session != idOne || n.Parent != "" || n.Name != "first" {
		t.Errorf("%+v", n)
	}
	if got := logOf(t, w.store, "first"); got != log {
		t.Error("the log is not what it was")
	}
	// A line that is being written is left out; the log grows, and what was kept does not.
	s = w.write(idOne, log+`{"type":"user","mess`)
	again, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{})
	must(t, err)
	if again.Hash != n.Hash || again.ID == n.ID || !strings.HasPrefix(again.Name, "question 0 1.0 and") {
		t.Errorf("%+v", again)
	}
	// A whole last line without a line break is one.
	s = w.write(idOne, strings.TrimSuffix(log, "\n"))
	whole, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "whole"})
	must(t, err)
	if got := logOf(t, w.store, whole.ID); got+"\n" != log {
		t.Error("the last line is gone")
	}
	noTemps(t, w.store.Home)
}

func TestSnapshotRefuses(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 1))
	for name, o := range map[string]SnapshotOptions{
		"a path": {Name: "../x"}, "control": {Name: "a\x1b[2J"}, "long": {Name: strings.Repeat("x", 101)},
		"tags": {Name: "x", Tags: []string{"a b"}},
	} {
		if _, err := w.store.Snapshot(t.Context(), s, o); !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"constructor", "__proto__", "toString", "日本語 1"} {
		if n, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got, err := w.store.Node(t.Context(), name); err != nil || got.ID != n.ID {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := s
	gone.Path += "x.jsonl"
	if _, err := w.store.Snapshot(t.Context(), gone, SnapshotOptions{Name: "x"}); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("no log: %v", err)
	}
	gone.ID = "../../escape"
	if _, err := w.store.Snapshot(t.Context(), gone, SnapshotOptions{Name: "x"}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("id: %v", err)
	}
	empty := w.write(idTwo, "")
	if _, err := w.store.Snapshot(t.Context(), empty, SnapshotOptions{Name: "x"}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("empty: %v", err)
	}
}

// TestGrowth: of a log that grew, only what is new is kept.
func TestGrowth(t *testing.T) {
	w := newWorld(t)
	log := w.talk(idOne, 4000)
	s := w.write(idOne, log)
	_, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "a"})
	must(t, err)
	before := len(objectsIn(t, w.store))
	s = w.write(idOne, log+w.talk(idOne, 3))
	_, err = w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "b"})
	must(t, err)
	// The last piece, and the table of contents.
	if after := len(objectsIn(t, w.store)); before < 5 || after-before > 3 {
		t.Errorf("%d objects, then %d", before, after)
	}
}

func objectsIn(t *testing.T, s *Store) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.folder(), objectsName, "*", "*"))
	must(t, err)
	return found
}

func TestFind(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 1))
	var nodes []snapshot.Node
	for _, name := range []string{"same", "same", "other"} {
		n, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: name})
		must(t, err)
		nodes = append(nodes, n)
	}
	if n, err := w.store.Node(t.Context(), nodes[1].ID); err != nil || n.ID != nodes[1].ID {
		t.Errorf("by id: %v", err)
	}
	_, err := w.store.Node(t.Context(), "same")
	if !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), nodes[0].ID) || !strings.Contains(err.Error(), nodes[1].ID) {
		t.Errorf("by a name of two: %v", err)
	}
	if n, err := w.store.Node(t.Context(), nodes[2].ID[:len(nodes[2].ID)-1]); err != nil || n.ID != nodes[2].ID {
		t.Errorf("by the beginning of the id: %v, %v", n.ID, err)
	}
	for _, ref := range []string{"", "c", "cc-", "nobody", "../x"} {
		if _, err := w.store.Node(t.Context(), ref); !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

func TestDrop(t *testing.T) {
	w := newWorld(t)
	log := w.talk(idOne, 3000)
	s := w.write(idOne, log)
	a, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "a"})
	must(t, err)
	s = w.write(idOne, log+w.talk(idOne, 1))
	b, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "b"})
	must(t, err)
	killed := filepath.Join(filepath.Dir(objectsIn(t, w.store)[0]), ".new-1")
	must(t, os.WriteFile(killed, []byte("half"), 0o600))
	if n, freed, err := w.store.Drop(t.Context(), "a"); err != nil || n.ID != a.ID || freed == 0 {
		t.Errorf("%v, %d, %v", n, freed, err)
	}
	noTemps(t, w.store.Home)
	if got := logOf(t, w.store, b.ID); got != log+w.talk(idOne, 1) {
		t.Error("the other snapshot lost something")
	}
	if _, _, err := w.store.Drop(t.Context(), "a"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("twice: %v", err)
	}
	_, _, err = w.store.Drop(t.Context(), "b")
	must(t, err)
	if left := objectsIn(t, w.store); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestParallel: twelve at once lose nothing.
func TestParallel(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 50))
	const many = 12
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() {
			own := &Store{Home: w.store.Home, Dir: w.store.Dir}
			if _, err := own.Snapshot(t.Context(), s, SnapshotOptions{Name: fmt.Sprint("snapshot ", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	nodes, err := w.store.Nodes(t.Context())
	must(t, err)
	ids := map[string]bool{}
	for _, n := range nodes {
		ids[n.ID] = true
	}
	if len(ids) != many || len(nodes) != many {
		t.Errorf("%d nodes, %d ids", len(nodes), len(ids))
	}
	noTemps(t, w.store.Home)
}

func TestTornJournal(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 1))
	_, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "a"})
	must(t, err)
	path := filepath.Join(w.store.folder(), journalName)
	good := w.read(path)
	for cut := range len(good) - 1 {
		must(t, os.WriteFile(path, []byte(good+good[:cut+1]), 0o600))
		if nodes, err := w.store.Nodes(t.Context()); err != nil || len(nodes) != 1 {
			t.Fatalf("cut at %d: %d nodes, %v", cut, len(nodes), err)
		}
	}
	// A torn line goes whole, also where it is longer than what is written in its place.
	must(t, os.WriteFile(path, []byte(good+good[:len(good)-1]+strings.Repeat("x", 3*len(good))), 0o600))
	_, err = w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "b"})
	must(t, err)
	nodes, err := w.store.Nodes(t.Context())
	must(t, err)
	if len(nodes) != 2 || nodes[1].Name != "b" || strings.Count(w.read(path), "\n") != 2 {
		t.Errorf("%d nodes", len(nodes))
	}
	// A broken line in the middle is never taken for an empty store, and nothing is written behind it.
	broken := good + "{broken}\n" + good
	must(t, os.WriteFile(path, []byte(broken), 0o600))
	if _, err := w.store.Nodes(t.Context()); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("listing: %v", err)
	}
	if _, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "c"}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("writing: %v", err)
	}
	if w.read(path) != broken {
		t.Error("the journal was written")
	}
}

// TestDamage: what is damaged is said, and not given out.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	s := w.write(idOne, w.talk(idOne, 700))
	_, err := w.store.Snapshot(t.Context(), s, SnapshotOptions{Name: "a"})
	must(t, err)
	objects := objectsIn(t, w.store)
	if len(objects) == 0 {
		t.Fatal("nothing is kept")
	}
	for _, path := range objects {
		raw := w.read(path)
		for name, damaged := range map[string]string{"cut": raw[:len(raw)/2], "empty": "", "flipped": raw[:len(raw)-1] + string(raw[len(raw)-1]^1), "bomb": "\xff\xff\xff\xff\x0f" + raw} {
			must(t, os.WriteFile(path, []byte(damaged), 0o600))
			if err := w.store.Log(t.Context(), "a", &strings.Builder{}); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, os.Remove(path))
		if err := w.store.Log(t.Context(), "a", &strings.Builder{}); !errors.Is(err, tidemark.ErrNotFound) {
			t.Errorf("missing: %v", err)
		}
		must(t, os.WriteFile(path, []byte(raw), 0o600))
	}
	must(t, w.store.Log(t.Context(), "a", &strings.Builder{}))
}

// FuzzJournal: whatever stands in the journal, reading it does not fail in an unknown way, and what it gives can be
// shown.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"op":"snapshot","node":{"id":"a","name":"x"}}` + "\n" + `{"op":"drop","id":"a"}` + "\n"))
	f.Add([]byte("{}\nnull\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		j := &journal{byID: map[string]*record{}}
		if err := j.parse(raw); err != nil {
			if !errors.Is(err, tidemark.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if len(j.records) != len(j.byID) || j.size > int64(len(raw)) {
			t.Fatalf("%d records, %d ids", len(j.records), len(j.byID))
		}
		for _, r := range j.records {
			_, _ = j.find(r.Node.Name)
			_ = j.lineage(r)
		}
	})
}

// BenchmarkNodes lists 20,000 snapshots.
func BenchmarkNodes(b *testing.B) {
	s := &Store{Home: b.TempDir()}
	const many = 20_000
	var records []*record
	for i := range many {
		n := snapshot.Node{ID: fmt.Sprintf("cc-%026d", i), Kind: snapshot.KindSnapshot, Of: snapshot.OfClaude, Name: fmt.Sprint("snapshot ", i), Session: idOne,
			Created: s.now(), Messages: i, Tokens: 1000, Hash: tidemark.HashOf([]byte{byte(i)})}
		records = append(records, &record{Op: opSnapshot, Node: &n, Content: n.Hash, Bytes: 1 << 20, Project: "/home/me/project"})
	}
	must(b, s.write(b.Context(), func(*journal) ([]*record, error) { return records, nil }))
	for b.Loop() {
		if nodes, err := s.Nodes(b.Context()); err != nil || len(nodes) != many {
			b.Fatal(len(nodes), err)
		}
	}
}
