package agent_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// TestTree: what sessions tell comes back page by page, each node once, the oldest first.
func TestTree(t *testing.T) {
	w := newWorld(t)
	if page, next, err := w.Tree(t.Context(), "", 10); err != nil || len(page) != 0 || next != "" {
		t.Fatalf("an empty tree: %v, %q, %v", page, next, err)
	}
	at := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	key := "agent:" + w.cfg.Name + ":main"
	var nodes []snapshot.Node
	for i := range 25 { // some at one time
		nodes = append(nodes, snapshot.Node{ID: fmt.Sprintf("snap-%02d", i), Kind: snapshot.KindSnapshot, Of: snapshot.OfSession, Name: "n", Session: key, Created: at.Add(time.Duration(i/3) * time.Second), Messages: 1})
	}
	for range 2 {
		if err := w.Snapshots(t.Context(), nodes); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for cursor := ""; ; {
		page, next, err := w.Tree(t.Context(), cursor, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range page {
			got = append(got, n.ID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if len(got) != len(nodes) || got[0] != "snap-00" || got[24] != "snap-24" {
		t.Errorf("pages %q", got)
	}
	if n, err := w.Snapshot(t.Context(), "snap-07"); err != nil || n.ID != "snap-07" {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := w.Snapshot(t.Context(), "snap-99"); !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
	if _, _, err := w.Tree(t.Context(), "x", 4); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
	other := nodes[0]
	other.ID, other.Session = "snap-x", "agent:another:main"
	if err := w.Snapshots(t.Context(), []snapshot.Node{other}); !errors.Is(err, tidemark.ErrForbidden) {
		t.Error(err)
	}
	other.Session, other.Name = key, "a/b"
	if err := w.Snapshots(t.Context(), []snapshot.Node{other}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
}
