package claude

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// exported is a snapshot of a branch of a snapshot, as an archive.
func exported(t *testing.T, w *world) (snapshot.Node, string, []byte) {
	t.Helper()
	s := w.write(idOne, w.talk(idOne, 700))
	must(t, os.MkdirAll(filepath.Join(s.folder(), "tool-results"), 0o700))
	must(t, os.WriteFile(filepath.Join(s.folder(), "tool-results", "a.txt"), []byte("output"), 0o600))
	w.snap(s, "root")
	b, err := w.store.Branch(t.Context(), "root", BranchOptions{})
	must(t, err)
	child := w.snap(w.session(b.Session), "child")
	var file bytes.Buffer
	must(t, w.store.Export(t.Context(), child.ID, &file))
	return child, w.read(b.Log), file.Bytes()
}

// TestCarry: a snapshot that comes to another machine is the same, knows where it comes from, and can be branched.
func TestCarry(t *testing.T) {
	node, log, file := exported(t, newWorld(t))
	there := newWorld(t)
	got, err := there.store.Import(t.Context(), bytes.NewReader(file))
	must(t, err)
	if got.ID != node.ID || got.Hash != node.Hash || got.Parent != node.Parent || !got.Created.Equal(node.Created) {
		t.Errorf("%+v, want %+v", got, node)
	}
	if logOf(t, there.store, "child") != log {
		t.Error("the log is another")
	}
	again, err := there.store.Import(t.Context(), bytes.NewReader(file))
	if err != nil || again.ID != node.ID {
		t.Errorf("twice: %v", err)
	}
	nodes, err := there.store.Nodes(t.Context())
	must(t, err)
	if len(nodes) != 2 || nodes[0].Name != "root" || nodes[1].Parent != nodes[0].ID {
		t.Errorf("%+v", nodes)
	}
	// Of its parent only the name came.
	if _, err := there.store.Branch(t.Context(), "root", BranchOptions{Dir: there.project}); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a name without content: %v", err)
	}
	b, err := there.store.Branch(t.Context(), "child", BranchOptions{Dir: there.project})
	must(t, err)
	coherent(t, there.read(b.Log), b.Session)
	if got := there.read(filepath.Join(strings.TrimSuffix(b.Log, logSuffix), "tool-results", "a.txt")); got != "output" {
		t.Errorf("%q", got)
	}
	if second := there.snap(there.session(b.Session), "grandchild"); second.Parent != node.ID {
		t.Errorf("parent %q", second.Parent)
	}
	// What came is given on as it came.
	var on bytes.Buffer
	must(t, there.store.Export(t.Context(), node.ID, &on))
	third := newWorld(t)
	if got, err := third.store.Import(t.Context(), &on); err != nil || got.Hash != node.Hash {
		t.Errorf("carried on: %v", err)
	}
}

// TestContentComesLater: what came as a name gets its content from its own archive.
func TestContentComesLater(t *testing.T) {
	w := newWorld(t)
	_, _, file := exported(t, w)
	there := newWorld(t)
	_, err := there.store.Import(t.Context(), bytes.NewReader(file))
	must(t, err)
	var root bytes.Buffer
	must(t, w.store.Export(t.Context(), "root", &root))
	_, err = there.store.Import(t.Context(), &root)
	must(t, err)
	if logOf(t, there.store, "root") != w.read(w.path(idOne)) {
		t.Error("the log is another")
	}
	if nodes, err := there.store.Nodes(t.Context()); err != nil || len(nodes) != 2 {
		t.Errorf("%d nodes, %v", len(nodes), err)
	}
}

// TestHostileArchives: what is not whole, or says what it must not, leaves nothing that is listed.
func TestHostileArchives(t *testing.T) {
	w := newWorld(t)
	node, _, file := exported(t, w)
	archive := func(m snapshot.Manifest, log string, sides ...string) []byte {
		var b bytes.Buffer
		a, err := snapshot.NewWriter(&b, m)
		if err != nil {
			return nil
		}
		must(t, a.Log(int64(len(log)), strings.NewReader(log)))
		for _, path := range sides {
			must(t, a.Side(path, 1, strings.NewReader("x")))
		}
		must(t, a.Close())
		return b.Bytes()
	}
	good := snapshot.Node{ID: "cc-x", Kind: snapshot.KindSnapshot, Of: snapshot.OfClaude, Name: "n", Session: idTwo, Hash: tidemark.HashOf([]byte("{}\n"))}
	with := func(change func(n *snapshot.Node)) snapshot.Manifest {
		n := good
		change(&n)
		return snapshot.Manifest{Kind: snapshot.OfClaude, Node: n}
	}
	for name, raw := range map[string][]byte{
		"cut off":         file[:len(file)-20],
		"nothing":         {},
		"other hash":      archive(with(func(*snapshot.Node) {}), "{} \n"),
		"no hash":         archive(with(func(n *snapshot.Node) { n.Hash = "" }), "{}\n"),
		"session":         archive(snapshot.Manifest{Kind: snapshot.OfSession, Node: good}, ""),
		"id of a session": archive(with(func(n *snapshot.Node) { n.ID = idOne }), "{}\n"),
		"id with a path":  archive(with(func(n *snapshot.Node) { n.ID = "cc-../x" }), "{}\n"),
		"session's path":  archive(with(func(n *snapshot.Node) { n.Session = "../../x" }), "{}\n"),
		"a branch":        archive(with(func(n *snapshot.Node) { n.Kind = snapshot.KindBranch }), "{}\n"),
		"another content": archive(with(func(n *snapshot.Node) { n.ID = node.ID }), "{}\n"),
	} {
		if name == "session" {
			var b bytes.Buffer
			a, err := snapshot.NewWriter(&b, snapshot.Manifest{Kind: snapshot.OfSession, Node: good})
			must(t, err)
			must(t, a.Close())
			raw = b.Bytes()
		}
		before, err := w.store.Nodes(t.Context())
		must(t, err)
		if _, err := w.store.Import(t.Context(), bytes.NewReader(raw)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := w.store.Nodes(t.Context()); err != nil || len(after) != len(before) {
			t.Errorf("%s: listed, %v", name, err)
		}
	}
	if _, err := w.store.Import(t.Context(), bytes.NewReader(archive(with(func(*snapshot.Node) {}), "{}\n", "a/b.txt"))); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// TestCircle: ancestors that go round are followed once.
func TestCircle(t *testing.T) {
	w := newWorld(t)
	w.snap(w.write(idOne, w.talk(idOne, 1)), "a")
	path := filepath.Join(w.store.folder(), journalName)
	node, err := w.store.Node(t.Context(), "a")
	must(t, err)
	must(t, os.WriteFile(path, []byte(strings.Replace(w.read(path), `"name":"a"`, `"name":"a","parent":"`+node.ID+`"`, 1)), 0o600))
	must(t, w.store.Export(t.Context(), "a", io.Discard))
}
