package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// TestTree: what sessions tell comes back page by page, each node once, the oldest first.
func TestTree(t *testing.T) {
	w := newWorld(t)
	if page, next, err := w.tree(t, "", 10, false); err != nil || len(page) != 0 || next != "" {
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
		page, next, err := w.tree(t, cursor, 4, false)
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
	if _, _, err := w.tree(t, "x", 4, false); !errors.Is(err, tidemark.ErrInvalid) {
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

// tree is a page of the tree, read.
func (w *world) tree(t *testing.T, cursor string, limit int, newest bool) (page []snapshot.Node, next string, err error) {
	t.Helper()
	raw, next, err := w.Tree(t.Context(), cursor, limit, newest)
	for _, r := range raw {
		var n snapshot.Node
		if err := json.Unmarshal(r, &n); err != nil {
			t.Fatal(err)
		}
		page = append(page, n)
	}
	return page, next, err
}

// TestTreeNewest: the other way round a tree is the same.
func TestTreeNewest(t *testing.T) {
	w := newWorld(t)
	at := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	var nodes []snapshot.Node
	for i := range 25 {
		nodes = append(nodes, aNode(w, fmt.Sprintf("snap-%02d", i), "main", at.Add(time.Duration(i/3)*time.Second)))
	}
	if err := w.Snapshots(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	var got []string
	for cursor := ""; ; {
		page, next, err := w.tree(t, cursor, 4, true)
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
	if len(got) != 25 || got[0] != "snap-24" || got[24] != "snap-00" || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("pages %q", got)
	}
}

// aNode is a snapshot of a session of an agent.
func aNode(w *world, id, session string, at time.Time) snapshot.Node {
	return snapshot.Node{ID: id, Kind: snapshot.KindSnapshot, Of: snapshot.OfSession, Name: "n", Session: "agent:" + w.cfg.Name + ":" + session, Created: at, Messages: 1}
}

// TestTreeGone: what was removed is in no list whatever is heard first, of the session that it was of alone: another that read it in has it still.
func TestTreeGone(t *testing.T) {
	at := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name string
		told string // in this order: m made, r removed; M and R in another session
		want string // session that it is of in the end, "" for none
	}{
		{"removed", "mr", ""}, {"removed first", "rm", ""}, {"told again", "mrmr", ""}, {"made", "mm", "main"},
		{"imported elsewhere", "mM", "main"}, {"removed elsewhere", "mMR", "main"}, {"imported behind its end", "mrM", "main:x"},
		{"and told of again", "mrMmr", "main:x"}, {"both removed", "mrMR", ""},
		{"removed where it was made", "mMr", "main:x"}, {"removed in both", "mMrR", ""}, {"told first elsewhere", "Mm", "main:x"}, {"elsewhere, removed there", "MmR", "main"},
		{"removed before it was told", "mRM", "main"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.Snapshots(t.Context(), []snapshot.Node{aNode(w, "snap-2", "main", at)}); err != nil {
				t.Fatal(err)
			}
			for _, c := range row.told {
				n := aNode(w, "snap-1", "main", at)
				if c == 'M' || c == 'R' {
					n = aNode(w, "snap-1", "main:x", at)
				}
				n.Gone = c == 'r' || c == 'R'
				if err := w.Snapshots(t.Context(), []snapshot.Node{n}); err != nil {
					t.Fatal(err)
				}
			}
			page, _, err := w.tree(t, "", 10, false)
			beside := len(page)
			page = slices.DeleteFunc(page, func(n snapshot.Node) bool { return n.ID == "snap-2" })
			if err != nil || beside != len(page)+1 || len(page) > 1 || (len(page) == 1) != (row.want != "") {
				t.Fatalf("tree %+v, %v", page, err)
			}
			n, err := w.Snapshot(t.Context(), "snap-1")
			if row.want == "" {
				if !errors.Is(err, tidemark.ErrNotFound) {
					t.Errorf("%+v, %v", n, err)
				}
				return
			}
			if err != nil || n.Session != "agent:"+w.cfg.Name+":"+row.want || page[0].Session != n.Session {
				t.Errorf("%+v, %v", n, err)
			}
		})
	}
}
