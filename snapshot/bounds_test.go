package snapshot

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
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
		"no name": {func(n *Node) { n.Name = "" }, false}, "description": {func(n *Node) { n.Description = "\x1b" }, false}, "a good description": {func(n *Node) { n.Description = "a\nb" }, true}, "tags": {func(n *Node) { n.Tags = []string{"a b"} }, false}, "good tags": {func(n *Node) { n.Tags = []string{"a", "b"} }, true},
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
	for dirs := range 80 {
		for _, leaf := range []string{"f", strings.Repeat("f", 99), strings.Repeat("f", 100), strings.Repeat("f", 101)} {
			name := strings.Repeat("abc/", dirs) + leaf
			prefix, rest := splitName(name)
			fits := len(leaf) <= 100 && (len(name) <= 100 || 4*dirs-1-max(0, 4*((101-1-len(leaf))/4)) <= 155)
			if (rest != "") != fits || fits && (len(rest) > 100 || len(prefix) > 155 || prefix != "" && prefix+"/"+rest != name || prefix == "" && rest != name) {
				t.Fatalf("%d folders and %d: %q, %q", dirs, len(leaf), prefix, rest)
			}
			if h, err := tarHeader(name, 1); err == nil {
				if got, err := tar.NewReader(bytes.NewReader(h)).Next(); err != nil || got.Name != name {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
			}
		}
	}
	if h[tarType] != '0' { // so does this one
		t.Errorf("type %q", h[tarType])
	}
	if at := string(h[tarTime : tarTime+12]); at != "00000000000\x00" { // an empty field is read as 0, too, and not by all
		t.Errorf("time %q", at)
	}
}

// TestWordBounds: what names, descriptions and tags may be, at each bound.
func TestWordBounds(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	for name, ok := range map[string]bool{"": false, "a": true, long(MaxName): true, long(MaxName + 1): false, "a\xff": false, " a": false, "a ": false, "a b": true, ".": false, "..": false, ".a": true, "a-b_c.d": true, "a/b": false,
		"a\tb": false, "e\u0301": true, "½": true, "a:b": false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for text, ok := range map[string]bool{"": true, long(MaxDescription): true, long(MaxDescription + 1): false, "a\xff": false, "a\n\tb": true, "a\rb": false, "a\x1bb": false} {
		if err := CheckDescription(text); (err == nil) != ok {
			t.Errorf("description %.10q: %v", text, err)
		}
	}
	many := make([]string, MaxTags+1)
	for i := range many {
		many[i] = strings.Repeat("t", i+1)
	}
	for _, c := range []struct {
		tags []string
		ok   bool
	}{{nil, true}, {many[:MaxTags], true}, {many, false}, {[]string{""}, false}, {[]string{long(MaxTag)}, true}, {[]string{long(MaxTag + 1)}, false}, {[]string{"a b"}, false}, {[]string{"a,b"}, false}, {[]string{"a\x1b"}, false},
		{[]string{"a\xff"}, false}, {[]string{"a", "b", "a"}, false}, {[]string{"a", "b", "b"}, false}, {[]string{"a", "b", "c"}, true}} {
		if err := CheckTags(c.tags); (err == nil) != c.ok {
			t.Errorf("tags %.40q: %v", c.tags, err)
		}
	}
}

// TestAges: how long ago something was, at each bound.
func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "just now", time.Minute - 1: "just now", time.Minute: "1m ago", time.Hour - 1: "59m ago", time.Hour: "1h ago", 24*time.Hour - 1: "23h ago", 24 * time.Hour: "1d ago", 30*24*time.Hour - 1: "29d ago",
		30 * 24 * time.Hour: "2026-01-30", -24 * time.Hour: "just now", -24*time.Hour - 1: "2026-03-02",
	} {
		if got := Age(noon.Add(-d), noon); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	if got := Age(time.Time{}, noon); got != "at an unknown time" {
		t.Error(got)
	}
}

// TestDrawnNodes: a node with all that can be said of it, and with little.
func TestDrawnNodes(t *testing.T) {
	full := snap("a", "", 1)
	full.Name, full.Messages, full.Tokens, full.Trimmed, full.Tags = "full", 2, 1, true, []string{"x", "y"}
	tokens := snap("b", "a", 1)
	tokens.Tokens = 999
	own := branch("s", "b", 1)
	other := branch("s2", "b", 2)
	other.ID = "id2"
	var b strings.Builder
	if err := Grow([]Node{full, tokens, own, other}).Text(&b, TextOptions{Now: func() time.Time { return noon }, IDs: true}); err != nil {
		t.Fatal(err)
	}
	if want := "full (snapshot 1m ago, 2 msgs, 1 tokens, trimmed) #x #y  a\n└── b (snapshot 1m ago, 999 tokens)  b\n    ├── try s2 → s2 (branch 2m ago)  id2\n    └── try s → s (branch 1m ago)\n"; b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := Grow([]Node{full, tokens}).To(1).Text(&b, TextOptions{Now: func() time.Time { return noon }}); err != nil || !strings.Contains(b.String(), "(+1 below)") {
		t.Errorf("%s, %v", b.String(), err)
	}
}

// TestExactLimits: an archive that is as large as may be is read, and one less of anything refuses it.
func TestExactLimits(t *testing.T) {
	good := sessionArchive(t)
	r, err := NewReader(bytes.NewReader(good), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var members int
	var most, total int64
	for {
		m, err := r.Next()
		if err != nil {
			break
		}
		members, most, total = members+1, max(most, m.Size), total+m.Size
	}
	raw, err := json.Marshal(r.Manifest())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		limits Limits
		ok     bool
	}{
		"members": {Limits{Members: members + 1}, true}, "one member less": {Limits{Members: members}, false},
		"a member": {Limits{Member: most}, true}, "a byte of it less": {Limits{Member: most - 1}, false},
	} {
		if _, err := readAll(bytes.NewReader(good), c.limits); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	first := total + int64(sort.Search(2*len(raw)+200, func(n int) bool {
		_, err := readAll(bytes.NewReader(good), Limits{Total: total + int64(n)})
		return err == nil
	}))
	if over := first - total; over < int64(len(raw))-100 || over > int64(len(raw))+100 {
		t.Errorf("%d bytes of members are read within %d, the manifest has %d", total, first, len(raw))
	}
}

// TestLineageBound: of a lineage that is longer than may be the newest are kept, and how many were left out is told.
func TestLineageBound(t *testing.T) {
	for _, over := range []int{0, 1, 2} {
		m := sessionManifest()
		m.LineageOmitted, m.Lineage = 2, nil
		for i := range MaxLineage + over {
			m.Lineage = append(m.Lineage, testNode(fmt.Sprintf("snap-%d", i)))
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(&out, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Manifest(); len(got.Lineage) != MaxLineage+min(over, 0) || got.LineageOmitted != 2+max(over, 0) || got.Lineage[0].ID != m.Lineage[max(over, 0)].ID {
			t.Errorf("%d over: %d, %d left out", over, len(got.Lineage), got.LineageOmitted)
		}
	}
}

// TestPartBound: lines are gathered into parts of at most maxPart bytes, and a longer line has one of its own.
func TestPartBound(t *testing.T) {
	for _, c := range []struct {
		lines []int
		parts string
	}{{[]int{maxPart - 1}, "1"}, {[]int{maxPart}, "1"}, {[]int{1, maxPart - 3}, "1"}, {[]int{1, maxPart - 2}, "2"}, {[]int{maxPart / 2, maxPart / 2, 1}, "2"}, {[]int{1, 2 * maxPart, 1}, "3"}} {
		var out bytes.Buffer
		w, err := NewWriter(&out, sessionManifest())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range c.lines {
			if err := w.Line("log", bytes.Repeat([]byte("x"), n)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(&out, Limits{})
		if err != nil || fmt.Sprint(len(got)) != c.parts {
			t.Errorf("%v: %d parts, want %s, %v", c.lines, len(got), c.parts, err)
		}
	}
}

// TestMemberNames: which names a member may have, letter by letter.
func TestMemberNames(t *testing.T) {
	hash := strings.Repeat("0", 32) + strings.Repeat("f", 32)
	for c := range 256 {
		digit := c >= '0' && c <= '9'
		hex := digit || c >= 'a' && c <= 'f'
		with := func(s string, at int) string { return s[:at] + string([]byte{byte(c)}) + s[at+1:] }
		for _, at := range []int{0, 31, 63} {
			if isHash(with(hash, at)) != hex {
				t.Errorf("hash %q", with(hash, at))
			}
		}
		for at := 4; at < 10; at++ {
			if _, err := nameMember(with("log/000001.jsonl", at)); (err == nil) != digit {
				t.Errorf("%q: %v", with("log/000001.jsonl", at), err)
			}
		}
	}
	for name, ok := range map[string]bool{hash[1:]: false, hash + "0": false, "": false} {
		if isHash(name) != ok {
			t.Errorf("hash %q", name)
		}
	}
	for name, ok := range map[string]bool{"log/00001.jsonl": false, "log/0000001.jsonl": false, "log/000001": false, "Log/000001.jsonl": false, "/000001.jsonl": false, "blobs/" + hash: true, "blobs/" + hash[1:]: false,
		strings.Repeat("a", 20) + "/000001.jsonl": true, strings.Repeat("a", 21) + "/000001.jsonl": false} {
		if _, err := nameMember(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestLinesBound: a line as long as may be is read, a longer one is refused; behind its end an archive has nothing more.
func TestLinesBound(t *testing.T) {
	for most, want := range map[int]string{7: "7 7 ", 8: "7 7 ", 6: "error"} {
		r, err := NewReader(bytes.NewReader(sessionArchive(t)), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := r.Next(); err != nil || m.Stream != "log" {
			t.Fatal(m, err)
		}
		got := ""
		for line, err := range r.Lines(most) {
			if err != nil {
				got = "error"
				break
			}
			got += fmt.Sprint(len(line), " ")
		}
		if got != want {
			t.Errorf("within %d: %s, want %s", most, got, want)
		}
		if want == "error" {
			continue
		}
		for err == nil {
			_, err = r.Next()
		}
		if _, again := r.Next(); !errors.Is(err, io.EOF) || !errors.Is(again, io.EOF) {
			t.Errorf("%v, then %v", err, again)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("behind the end %d, %v", n, err)
		}
	}
	w, err := NewWriter(io.Discard, sessionManifest())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.Line("log", nil), w.Blob(hashOf(""), 0, strings.NewReader("")), w.Close()} {
		if !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("behind its end: %v", err)
		}
	}
}

// TestLabels: a title of any length makes a name with room for a number behind it, and a label with its number is a name.
func TestLabels(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	for title, want := range map[string]string{
		"": "", "...": "", "a/b:\tc\xff": "a b c", long(MaxName - 12): long(MaxName - 12), long(MaxName - 11): long(MaxName - 12), long(MaxName + 50): long(MaxName - 12),
		long(MaxName-13) + " b": long(MaxName - 13),
	} {
		if got := Label(title); got != want {
			t.Errorf("title %q: %q, want %q", title, got, want)
		}
	}
	for label, want := range map[string]string{"a": "a-2", long(MaxName - 2): long(MaxName-2) + "-2", long(MaxName - 1): long(MaxName-2) + "-2", long(MaxName-3) + " b": long(MaxName-3) + "-2"} {
		if got := Numbered(label, "-2"); got != want || CheckName(got) != nil {
			t.Errorf("label %q: %q, want %q", label, got, want)
		}
	}
}

// TestSlugs: what a key has of a label: 100 bytes, and never a dash or a dot at its ends.
func TestSlugs(t *testing.T) {
	const most = 100
	for label, want := range map[string]string{
		"": "", "é": "", "AZaz09_.-x": "azaz09_.-x", "@[`{/:": "", "a b/é c": "a-b-c", "ab / cde": "ab-cde", " a ": "a", "-a.": "a", strings.Repeat("a", most): strings.Repeat("a", most),
		strings.Repeat("a", most+1): strings.Repeat("a", most), strings.Repeat("A", most-1) + " b": strings.Repeat("a", most-1) + "-b", strings.Repeat("a", 3*most): strings.Repeat("a", most),
	} {
		if got := Slug(label); got != want {
			t.Errorf("label %.120q: %q, want %q", label, got, want)
		}
	}
}
