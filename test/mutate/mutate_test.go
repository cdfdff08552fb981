package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

const example = `package example

import (
	"errors"
	"strings"
)

const find = "SELECT n FROM t WHERE key = ? AND n > ? LIMIT 1"

type box struct {
	n   int
	log struct{ Logger interface{ Warn(string) } }
}

func (b *box) add(list []string, most int) (int, error) {
	for _, s := range list {
		if s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		if b.n >= most && most > 0 {
			break
		}
		b.n += len(s) + 1
		list = append(list, find)
		strings.Clone(s)
	}
	if b.n > 99 {
		b.log.Logger.Warn("large")
	} else if b.n == 98 {
		b.log.Logger.Warn("nearly")
	}
	switch {
	case b.n == 97:
		return b.n, nil
	case b.n == 96:
		b.n--
	}
	if b.n < 0 {
		return 7, errors.New("none")
	}
	b.n = most - 2
	return b.n, nil
}
`

// parse types the example without what the compiler exported.
func parse(t *testing.T) *source {
	t.Helper()
	l, err := newLoader(".", "example", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &source{name: "example", fset: token.NewFileSet()}
	tree, err := parser.ParseFile(p.fset, "/example/example.go", example, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	p.files = []file{{path: "/example/example.go", text: []byte(example), tree: tree, start: p.fset.File(tree.FileStart).Base()}}
	if err := p.check("example", []*ast.File{tree}, l.open); err != nil {
		t.Fatal(err)
	}
	return p
}

// Each kind is found, and all faults together are a program, as each alone is.
func TestSites(t *testing.T) {
	p := parse(t)
	l, err := newLoader(".", "example", nil)
	if err != nil {
		t.Fatal(err)
	}
	found, kinds := p.sites(), map[string]int{}
	for i, f := range found {
		f.id = i + 1
		kinds[f.kind]++
		if strings.HasPrefix(f.text, "7 in") {
			t.Errorf("%s stands beside an error", f)
		}
		if f.kind != "return" && (strings.Contains(f.text, "b.n > 99") || strings.Contains(f.text, "b.n == 98")) {
			t.Errorf("%s decides about the log alone", f)
		}
		if strings.HasPrefix(f.text, "before case") {
			t.Errorf("%s stands behind the end of another case", f)
		}
		if err := p.compiles([]*fault{f}, l); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, k := range allKinds {
		if kinds[k] == 0 {
			t.Errorf("no fault of the kind %s", k)
		}
	}
	if err := p.compiles(found, l); err != nil {
		t.Errorf("all of them: %v", err)
	}
	text := p.rendered(found)["/example/example.go"]
	for _, want := range []string{"var find = mutantPick(", `(key = ? OR 1)`, `(n > ? OR 1)`, ", true)", ", false)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// What is drawn depends on the seed and the package alone, and has all kinds.
func TestDraw(t *testing.T) {
	all := parse(t).sites()
	names := func(l []*fault) (out []string) {
		for _, f := range l {
			out = append(out, f.String())
		}
		return out
	}
	a, b := names(draw(1, "example", all, 12)), names(draw(1, "example", all, 12))
	if len(a) != 12 || !slices.Equal(a, b) {
		t.Errorf("%d faults; the same again: %v", len(a), slices.Equal(a, b))
	}
	kinds := map[string]bool{}
	for _, f := range draw(7, "example", all, len(allKinds)) {
		kinds[f.kind] = true
	}
	if len(kinds) != len(allKinds) {
		t.Errorf("kinds %v", kinds)
	}
	if n := len(draw(1, "example", all, 10000)); n != len(all) {
		t.Errorf("%d of %d", n, len(all))
	}
}

func TestLoose(t *testing.T) {
	for sql, want := range map[string][]string{
		`UPDATE t SET a = ?, b = 1 WHERE key = ? AND e.n <= ?`:                                      {"key = ?", "e.n <= ?"},
		`SELECT 1 FROM a JOIN b ON b.id = a.id WHERE (x = 'y' OR kind LIKE ?) AND done = 0 LIMIT ?`: {"b.id = a.id", "x = 'y'", "kind LIKE ?", "done = 0"},
		`INSERT INTO t(a, b) VALUES (?, ?) ON CONFLICT(a) DO UPDATE SET b = excluded.b`:             nil,
		`CREATE INDEX i ON t(a) WHERE done = 0`:                                                     nil,
		`in line 1, or it is the log of another`:                                                    nil,
		`SELECT a WHERE n = max(1, 2) AND m >= ? - 1`:                                               nil,
	} {
		got, statements := loose(sql)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
		for i, s := range statements {
			if !strings.Contains(s, "("+want[i]+" OR 1)") {
				t.Errorf("%s: %s", want[i], s)
			}
		}
	}
}

func TestHarmless(t *testing.T) {
	h, err := parseHarmless("list", "# why\n\np.f\tsql\tn = ?\tone row only\n")
	if err != nil || h[(&fault{pkg: "p", fn: "f", kind: "sql", text: "n = ?"}).String()] != "one row only" {
		t.Errorf("%v, %v", h, err)
	}
	for _, bad := range []string{"p.f\tsql\tn = ?\n", "p.f\tsql\tn = ?\t \n", "p.f sql n = ? reason\n"} {
		if _, err := parseHarmless("list", bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	var told strings.Builder
	h.stale(&told, "p", nil)
	if !strings.Contains(told.String(), "p.f\tsql\tn = ?") {
		t.Errorf("stale entries: %q", told.String())
	}
}

// TestListIsOfNow: what is named harmless stands in the code still, or its faults would count as survivors again.
func TestListIsOfNow(t *testing.T) {
	root, module, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	judged, err := readHarmless("harmless.txt")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	for k := range judged {
		name, _, _ := strings.Cut(k, ".")
		packages[name] = true
	}
	names := slices.Sorted(maps.Keys(packages))
	l, err := newLoader(root, module, names)
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for _, name := range names {
		p, err := l.load(name)
		if err != nil {
			t.Fatal(err)
		}
		judged.stale(&told, name, p.sites())
	}
	if told.Len() > 0 {
		t.Error(told.String())
	}
}

// What only took too long is shown apart, and what is named harmless is counted beside what was planted.
func TestReport(t *testing.T) {
	var told strings.Builder
	c := campaign{w: &told, packages: []string{"p", "q"}, named: map[string]int{"p": 3}}
	share := c.report([]*fault{
		{pkg: "p", kind: "sql", killer: "p.TestIt"}, {pkg: "p", kind: "sql", killer: "p." + late},
		{pkg: "p", kind: "bound"}, {pkg: "q", kind: "bound", killer: "q.TestIt"},
	})
	want := "survived\tp.\tbound\t\t, 0 tests reach it\n" +
		"p\t3 planted, 2 noticed (1 by the limit of time), 1 survived, 3 more named harmless\n" +
		"q\t1 planted, 1 noticed (0 by the limit of time), 0 survived, 0 more named harmless\n" +
		"bound\t2 planted, 1 noticed (0 by the limit of time), 1 survived\n" +
		"sql\t2 planted, 2 noticed (1 by the limit of time), 0 survived\n" +
		"all\t4 planted, 3 noticed (1 by the limit of time), 1 survived (75 %), seed 0\n"
	if share != 75 || told.String() != want {
		t.Errorf("%d %%:\n%s\nwant\n%s", share, told.String(), want)
	}
}
