package snapshot

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
)

// TestPathLetters: of what the path of a side file may be made.
func TestPathLetters(t *testing.T) {
	for c := range rune(256) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == '/'
		if err := checkPath("a" + string([]byte{byte(c)}) + "b"); (err == nil) != ok {
			t.Errorf("%q: %v", c, err)
		}
	}
	for path, ok := range map[string]bool{"": false, "a": true, "a/": false, "/a": false, ".a": false, "a.": false, "a/.b": false, "a./b": false, "a..b": true,
		strings.TrimSuffix(strings.Repeat("a/", maxSide), "/"): true, strings.TrimSuffix(strings.Repeat("a/", maxSide+1), "/"): false} {
		if err := checkPath(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestNodeBounds: each field of a node that comes from outside is held to its bound, by itself.
func TestNodeBounds(t *testing.T) {
	good := func() Node { return Node{ID: "a", Kind: KindSnapshot, Of: OfSession, Session: "s", Name: "n"} }
	long, odd := strings.Repeat("x", maxID+1), "a\x1bb"
	for name, c := range map[string]struct {
		change func(*Node)
		ok     bool
	}{
		"as it is": {func(*Node) {}, true}, "no id": {func(n *Node) { n.ID = "" }, false},
		"longest id": {func(n *Node) { n.ID = long[1:] }, true}, "long id": {func(n *Node) { n.ID = long }, false}, "odd id": {func(n *Node) { n.ID = odd }, false}, "id of no text": {func(n *Node) { n.ID = "\xff" }, false},
		"longest session": {func(n *Node) { n.Session = long[1:] }, true}, "long session": {func(n *Node) { n.Session = long }, false}, "odd session": {func(n *Node) { n.Session = odd }, false}, "session of no text": {func(n *Node) { n.Session = "\xff" }, false}, "no session": {func(n *Node) { n.Session = "" }, true},
		"longest parent": {func(n *Node) { n.Parent = long[1:] }, true}, "long parent": {func(n *Node) { n.Parent = long }, false}, "odd parent": {func(n *Node) { n.Parent = odd }, false},
		"branch": {func(n *Node) { n.Kind = KindBranch }, true}, "of Claude Code": {func(n *Node) { n.Of = OfClaude }, true}, "kind": {func(n *Node) { n.Kind = "x" }, false}, "of": {func(n *Node) { n.Of = "x" }, false},
		"messages": {func(n *Node) { n.Messages = -1 }, false}, "tokens": {func(n *Node) { n.Tokens = -1 }, false}, "hash": {func(n *Node) { n.Hash = "x" }, false},
	} {
		n := good()
		c.change(&n)
		if err := n.Check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTarHeader: the header is one that tar reads, of a file without an owner and of the first second of all.
func TestTarHeader(t *testing.T) {
	h, err := tarHeader("a/b", 1234)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tar.NewReader(bytes.NewReader(h)).Next()
	if err != nil || got.Name != "a/b" || got.Size != 1234 || got.Mode != 0o644 || got.Typeflag != tar.TypeReg || got.ModTime.Unix() != 0 || got.Uid != 0 || got.Format != tar.FormatUSTAR {
		t.Errorf("%+v, %v", got, err)
	}
	if at := string(h[tarTime : tarTime+12]); at != "00000000000\x00" { // an empty field is read as 0, too, and not by all
		t.Errorf("time %q", at)
	}
}
