package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }

func snap(id, parent string, age int) Node {
	return Node{ID: id, Kind: KindSnapshot, Of: OfSession, Name: id, Session: "main", Parent: parent, Created: at(age)}
}

func branch(id, parent string, age int) Node {
	return Node{ID: id, Kind: KindBranch, Of: OfSession, Name: "try " + id, Session: id, Parent: parent, Created: at(age)}
}

func TestTreeText(t *testing.T) {
	named := snap("a", "", 300)
	named.Messages, named.Tokens, named.Tags = 120, 84_000, []string{"release"}
	one := snap("b", "a", 5)
	one.Messages = 1
	trimmed := branch("main#x", "a", 120)
	trimmed.Trimmed, trimmed.Messages, trimmed.Tokens = true, 120, 9_000 // of its beginning: not drawn
	old := snap("z", "gone", 60*24*31)
	for _, c := range []struct {
		name  string
		nodes []Node
		to    int
		want  string
	}{
		{"nothing", nil, 0, ""},
		{"branches before snapshots, by age", []Node{one, snap("c", "a", 200), named, trimmed, branch("main#y", "a", 1), snap("d", "c", 0)}, 0,
			`a (snapshot 5h ago, 120 msgs, 84k tokens) #release
├── try main#x → main#x (branch 2h ago, trimmed)
├── try main#y → main#y (branch 1m ago)
├── c (snapshot 3h ago)
│   └── d (snapshot just now)
└── b (snapshot 5m ago, 1 msg)
`},
		{"a lost parent, and a date", []Node{old, snap("n", "z", 60*24*29)}, 0, `z (snapshot 2026-01-29) (its parent is not here)
└── n (snapshot 29d ago)
`},
		{"circles", []Node{snap("p", "q", 9), snap("q", "p", 8), snap("r", "q", 1), snap("s", "s", 10)}, 0,
			`s (snapshot 10m ago) (it is its own ancestor: the circle is cut here)
p (snapshot 9m ago) (it is its own ancestor: the circle is cut here)
└── q (snapshot 8m ago)
    └── r (snapshot 1m ago)
`},
		{"levels", []Node{snap("a", "", 9), snap("b", "a", 8), snap("c", "b", 7), snap("d", "c", 6), snap("e", "", 1)}, 2,
			`a (snapshot 9m ago)
└── b (snapshot 8m ago) (+2 below)
e (snapshot 1m ago)
`},
		{"twice", []Node{snap("a", "", 9), snap("a", "", 8)}, 0, "a (snapshot 9m ago)\n(listed twice, drawn once: 1)\n"},
		{"a name that would drive a terminal", []Node{{ID: "a", Kind: KindSnapshot, Name: "\x1b[2J\u202e", Created: at(0)}}, 0, "\ufffd[2J\ufffd (snapshot just now)\n"},
	} {
		var got strings.Builder
		if err := Grow(c.nodes).To(c.to).Text(&got, TextOptions{Now: func() time.Time { return noon }}); err != nil {
			t.Fatal(err)
		}
		if got.String() != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got.String(), c.want)
		}
	}
}

// size is smaller where the tests are slow.
func treeSize(n int) int {
	if runtime.GOOS == "js" {
		return n / 20
	}
	return n
}

func chain(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		parent := ""
		if i > 0 {
			parent = fmt.Sprintf("snap-%06d", i-1)
		}
		nodes[i] = snap(fmt.Sprintf("snap-%06d", i), parent, n-i)
	}
	return nodes
}

func wide(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = snap(fmt.Sprintf("snap-%06d", i), "snap-000000", n-i)
	}
	nodes[0].Parent = ""
	return nodes
}

func flat(n int) []Node {
	nodes := wide(n)
	for i := range nodes {
		nodes[i].Parent = ""
	}
	return nodes
}

func TestTreeOfManyIsFlat(t *testing.T) {
	n := treeSize(20_000)
	for name, nodes := range map[string][]Node{"chain": chain(n), "wide": wide(n), "flat": flat(n)} {
		tree := Grow(nodes)
		raw, err := json.Marshal(tree.Rows)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var back []Row
		if err := json.Unmarshal(raw, &back); err != nil || len(back) != n {
			t.Errorf("%s: %d rows back, want %d: %v", name, len(back), n, err)
		}
		var text bytes.Buffer
		if err := tree.Text(&text, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text.Bytes(), []byte{'\n'}); lines != n {
			t.Errorf("%s: %d lines, want %d", name, lines, n)
		}
		const most = 400
		if text.Len() > n*most {
			t.Errorf("%s: a drawing of %d bytes", name, text.Len())
		}
	}
}

// TestTreeLaws grows trees of random parents, lost ones and circles among them.
func TestTreeLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + rng.IntN(40)
		nodes := make([]Node, n)
		for i := range nodes {
			nodes[i] = snap(fmt.Sprint(i), fmt.Sprint(rng.IntN(n+n/3+1)), rng.IntN(5))
			if rng.IntN(3) == 0 {
				nodes[i].Kind = KindBranch
			}
			if rng.IntN(4) == 0 {
				nodes[i].Parent = ""
			}
		}
		holds(t, nodes)
	}
}

// holds checks what is true of any tree: every node is there once, below its parent unless it says why not, and the
// order of the input does not count.
func holds(t *testing.T, nodes []Node) {
	t.Helper()
	rows := Grow(nodes).Rows
	var path []Row
	seen := map[string]bool{}
	for i, r := range rows {
		if seen[r.ID] {
			t.Fatalf("%s is there twice", r.ID)
		}
		seen[r.ID] = true
		if r.Depth > len(path) {
			t.Fatalf("row %d is at depth %d below one at %d", i, r.Depth, len(path)-1)
		}
		path = append(path[:r.Depth], r)
		rooted := r.Depth == 0 && (r.Parent == "" || r.Lost || r.Cut)
		if !rooted && (r.Depth == 0 || path[r.Depth-1].ID != r.Parent) {
			t.Fatalf("row %d, %s, is not below its parent %s", i, r.ID, r.Parent)
		}
	}
	if len(seen) != len(nodes) {
		t.Fatalf("%d of %d nodes", len(seen), len(nodes))
	}
	turned := slices.Clone(nodes)
	slices.Reverse(turned)
	if again := Grow(turned).Rows; fmt.Sprint(again) != fmt.Sprint(rows) {
		t.Fatalf("another order of the input gives another tree:\n%v\n%v", rows, again)
	}
}

func FuzzGrow(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0, 0, 7, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 200
		var nodes []Node
		for i, b := range data[:min(len(data), most)] {
			nodes = append(nodes, snap(fmt.Sprint(i), fmt.Sprint(b), int(b)%7))
		}
		holds(t, nodes)
	})
}

func TestFind(t *testing.T) {
	second := snap("snap-bbbbbbb1", "", 1)
	second.Name = "twin"
	third := snap("snap-bbbbbbb2", "", 1)
	third.Name = "twin"
	made := branch("main#before", "snap-aaaaaaa", 1)
	made.Name = "before"
	first := snap("snap-aaaaaaa", "", 1)
	first.Name = "before"
	nodes := []Node{made, first, second, third}
	for _, c := range []struct {
		ref, want string
		err       error
		says      string
	}{
		{"snap-bbbbbbb2", "snap-bbbbbbb2", nil, ""},
		{"before", "snap-aaaaaaa", nil, ""},
		{"main#before", "main#before", nil, ""},
		{"snap-a", "snap-aaaaaaa", nil, ""},
		{"twin", "", tidemark.ErrConflict, "snap-bbbbbbb1"},
		{"snap-b", "", tidemark.ErrConflict, "snap-bbbbbbb2"},
		{"snap", "", tidemark.ErrNotFound, "snap"},
		{"", "", tidemark.ErrNotFound, ""},
	} {
		got, err := Find(nodes, c.ref)
		if got.ID != c.want || !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %s, %v; want %s, %v", c.ref, got.ID, err, c.want, c.err)
		}
	}
}

// TestSeveral: of many that may be meant the first twenty are listed, and how many more there are.
func TestSeveral(t *testing.T) {
	for n, want := range map[int]string{2: "", 20: "", 21: "\n… and 1 more\n", 23: "\n… and 3 more\n"} {
		nodes := make([]Node, n)
		for i := range nodes {
			nodes[i] = snap(fmt.Sprintf("snap-cccccc%02d", i), "", i)
		}
		_, err := Find(nodes, "snap-c")
		if err == nil {
			t.Fatal("none is meant more than the others")
		}
		if got := err.Error(); strings.Count(got, "snap-cccccc") != min(n, 20) || want == "" && strings.Contains(got, "more") || !strings.Contains(got, want) {
			t.Errorf("of %d: %s", n, got)
		}
	}
}

// TestTreeDeep: behind as many lines as a terminal may have, the depth is a number.
func TestTreeDeep(t *testing.T) {
	var b strings.Builder
	if err := Grow(chain(maxIndent+3)).Text(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i, line := range lines {
		_, deep, cut := strings.Cut(line, "⋯ ")
		if cut != (i > maxIndent) || cut && !strings.HasPrefix(deep, fmt.Sprint(i, " └── ")) || strings.Count(line, "    ") != max(min(i, maxIndent)-1, 0) {
			t.Errorf("line %d: %s", i, line)
		}
	}
	if len(lines) != maxIndent+3 {
		t.Errorf("%d lines", len(lines))
	}
}

// TestBadName: a name of others is told short, and as text.
func TestBadName(t *testing.T) {
	for name, want := range map[string]string{"a": `"a"`, "é": `"é"`, "a\xffb": `"a?b"`, strings.Repeat("x", 100): `x"`, strings.Repeat("x", 101): `x…"`, strings.Repeat("x", 99) + "é": `x…"`} {
		if got := badName(name, "no").Error(); !strings.Contains(got, want) {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[tidemark.Tokens]string{0: "0", 999: "999", 1000: "1k", 8449: "8.4k", 9949: "9.9k", 9950: "10k", 84_000: "84k", 999_499: "999k", 999_500: "1M", 1_240_000: "1.2M"} {
		if got := Short(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func BenchmarkTree(b *testing.B) {
	for _, c := range []struct {
		name  string
		nodes []Node
	}{{"chain-12000", chain(12_000)}, {"chain-20000", chain(20_000)}, {"wide-20000", wide(20_000)}, {"flat-20000", flat(20_000)}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := Grow(c.nodes).Text(io.Discard, TextOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
