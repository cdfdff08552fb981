package lint

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// std has the export data of what the snippets import.
var std = sync.OnceValues(func() (exports, error) {
	listed, err := List(".", Native, true, "bufio", "context", "embed", "errors", "io", "iter", "log", "maps", "net/http",
		"os", "regexp", "slices", "sort", "strings", "sync", "sync/atomic", "time")
	ex := exports{}
	for _, l := range listed {
		ex[l.ImportPath] = l.Export
	}
	return ex, err
})

// snippet type-checks one file, as package session of ours.
func snippet(t *testing.T, src string) *Package {
	t.Helper()
	ex, err := std()
	if err != nil {
		t.Fatal(err)
	}
	p := &Package{Path: Module + "/session", Fset: token.NewFileSet()}
	f, err := parser.ParseFile(p.Fset, "/m/session/x.go", "package session\n"+src, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Files = []*ast.File{f}
	p.check(importer.ForCompiler(p.Fset, "gc", ex.lookup))
	return p
}

// TestBansBite feeds each ban a line that breaks it.
func TestBansBite(t *testing.T) {
	for _, r := range append(append([]breach{}, callBreaches...), stateBreaches...) {
		t.Run(r.rule+" "+r.name, func(t *testing.T) {
			fs := Discipline("/m", []*Package{snippet(t, r.src)})
			if !has(fs, r.rule, r.name) {
				t.Errorf("no finding for\n%s\nonly\n%s", r.src, Report(fs))
			}
		})
	}
	for _, b := range append(append([]ban{}, calls...), imports...) {
		if b.why == "" || b.instead == "" {
			t.Errorf("ban of %v lacks its reason or its way out", b.names)
		}
	}
}

// TestEveryBanHasASnippet keeps the snippets complete.
func TestEveryBanHasASnippet(t *testing.T) {
	for _, b := range calls {
		for _, n := range b.names {
			if !slices.ContainsFunc(callBreaches, func(r breach) bool { return r.rule == b.rule && r.name == n }) {
				t.Errorf("no snippet for %s", n)
			}
		}
	}
}

func TestImportBansBite(t *testing.T) {
	for _, b := range imports {
		for _, path := range b.names {
			t.Run(path, func(t *testing.T) {
				p := snippet(t, `import _ "`+path+`"`)
				if fs := Discipline("/m", []*Package{p}); !has(fs, ruleImport, path) {
					t.Errorf("no finding, only\n%s", Report(fs))
				}
			})
		}
	}
}

// TestBansSpare holds what the rules must let pass.
func TestBansSpare(t *testing.T) {
	rows := []struct{ name, src string }{
		{"sentinel", `import "errors"; var ErrX = errors.New("x")`},
		{"pattern", `import "regexp"; var re = regexp.MustCompile("a+"); func f(s string) bool { return re.MatchString(s) }`},
		{"replacer", `import "strings"; var r = strings.NewReplacer("a", "b")`},
		{"embedded files", `import "embed"; var files embed.FS`},
		{"table", `var names = map[string][]string{"a": {"b"}}; func f(k string) []string { return names[k] }`},
		{"table of functions", `var ops = map[string]func(int) int{"neg": func(n int) int { n = -n; return n }}`},
		{"table made by a function", `var t = func() map[int]int { m := map[int]int{}; m[1] = 2; return m }()`},
		{"local of the same name", `var n = 1; func f() int { n := 2; n++; return n }`},
		{"field of the same name", `var n = 1; type t struct { n int }; func (x *t) f() { x.n = 2 }`},
		{"interface assertion", `import "io"; type r struct{}; func (*r) Read([]byte) (int, error) { return 0, nil }; var _ io.Reader = (*r)(nil)`},
		{"own method named Sleep", `type clock struct{}; func (clock) Sleep(int) {}; func f(c clock) { c.Sleep(1) }`},
		{"duration", `import "time"; const d = time.Second; var at = time.Unix(0, 0)`},
		{"cancel", `import "context"; func f(c context.Context) { _, end := context.WithCancel(c); end() }`},
		{"round tripper", `import "net/http"; type t struct { rt http.RoundTripper }`},
		{"sort of a copy", `import "slices"; var l = []int{2, 1}; func f() []int { c := slices.Clone(l); slices.Sort(c); return c }`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			p := snippet(t, r.src)
			if fs := Discipline("/m", []*Package{p}); len(fs) > 0 {
				t.Errorf("found\n%s", Report(fs))
			}
		})
	}
}

// TestWritesFromElsewhere: an exported table is safe only if no other package writes it.
func TestWritesFromElsewhere(t *testing.T) {
	table := snippet(t, `var Table = map[string]int{"a": 1}`)
	ex, err := std()
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(table.Fset, "/m/agent/x.go", `package agent; import "`+table.Path+`"; func f() { session.Table["b"] = 2 }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	writer := &Package{Path: Module + "/agent", Fset: table.Fset, Files: []*ast.File{f}}
	writer.check(known{table.Types, importer.ForCompiler(table.Fset, "gc", ex.lookup)})
	if fs := Discipline("/m", []*Package{table, writer}); len(fs) != 1 || fs[0].Name != "Table" {
		t.Errorf("found\n%s", Report(fs))
	}
}

// known is an importer that also knows one package in memory.
type known struct {
	pkg  *types.Package
	rest types.Importer
}

func (k known) Import(path string) (*types.Package, error) {
	if path == k.pkg.Path() {
		return k.pkg, nil
	}
	return k.rest.Import(path)
}

func TestBuildErrorIsAFinding(t *testing.T) {
	if fs := Discipline("/m", []*Package{snippet(t, `func f() { undefined() }`)}); len(fs) != 1 || fs[0].Rule != ruleBuild {
		t.Errorf("found\n%s", Report(fs))
	}
}

func TestExceptionsAreNarrow(t *testing.T) {
	rows := []struct {
		name string
		f    Finding
		want bool
	}{
		{"bridge may start goroutines", Finding{File: "host/cloudflare/run.go", Rule: ruleGo, Name: "go"}, true},
		{"bridge may not arm timers", Finding{File: "host/cloudflare/run.go", Rule: ruleTimer, Name: "time.Sleep"}, false},
		{"others may not start goroutines", Finding{File: "session/turn.go", Rule: ruleGo, Name: "go"}, false},
		{"a folder below is another package", Finding{File: "host/cloudflare/x/run.go", Rule: ruleGo, Name: "go"}, false},
		{"one name only", Finding{File: "internal/json/json.go", Rule: ruleImport, Name: "log"}, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := excused(r.f); got != r.want {
				t.Errorf("excused = %v, want %v", got, r.want)
			}
		})
	}
	for _, e := range allowed {
		if e.why == "" {
			t.Errorf("exception %s %s has no reason", e.pkg, e.rule)
		}
	}
}

func TestLinkedBites(t *testing.T) {
	bad := []string{"database/sql", "github.com/aws/aws-sdk-go-v2/service/s3", "modernc.org/libc/sys", "github.com/tetratelabs/wazero/api"}
	if fs := Linked(append(bad, "database/sql/driver", "net/http", "github.com/awsome/x")); len(fs) != len(bad) {
		t.Errorf("want %d findings, got\n%s", len(bad), Report(fs))
	}
}

func TestPlatformBites(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"session/turn_js.go":      "package session\n",
		"session/tag.go":          "//go:build !js\n\npackage session\n",
		"session/call.go":         "package session\n\nimport (\n\t\"syscall/js\"\n)\n",
		"session/fine.go":         "package session\n",
		"session/tag_test.go":     "//go:build !js\n\npackage session\n",
		"host/native/x_linux.go":  "//go:build linux\n\npackage native\n",
		"internal/json/fast.go":   "//go:build !js\n\npackage json\n",
		"cmd/worker/main_wasm.go": "package main\n",
		"test/paging/main.go":     "//go:build !js\n\npackage main\n",
	}
	fs := Platform(dir, write(t, dir, files))
	if len(fs) != 3 || !hasFile(fs, "session/turn_js.go") || !hasFile(fs, "session/tag.go") || !hasFile(fs, "session/call.go") {
		t.Errorf("found\n%s", Report(fs))
	}
}

// write makes files below dir and lists them.
func write(t *testing.T, dir string, files map[string]string) []string {
	t.Helper()
	var list []string
	for name, src := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
		list = append(list, name)
	}
	return list
}

func has(fs []Finding, rule, name string) bool {
	for _, f := range fs {
		if f.Rule == rule && f.Name == name {
			return true
		}
	}
	return false
}

func hasFile(fs []Finding, file string) bool {
	for _, f := range fs {
		if f.File == file {
			return true
		}
	}
	return false
}
