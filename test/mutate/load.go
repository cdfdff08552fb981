package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// source is a package of ours, parsed and typed.
type source struct {
	name  string // its folder below the root
	fset  *token.FileSet
	files []file
	types *types.Package
	info  *types.Info
}

// file is a file of a package, which faults replace.
type file struct {
	path  string
	text  []byte
	tree  *ast.File
	start int // what to take off a token.Pos for its place in text
}

// at is the place of a node's border in the text.
func (f *file) at(p token.Pos) int { return int(p) - f.start }

// loader types packages by what the compiler exported of those that they import.
type loader struct {
	root, module string
	exports      map[string]string   // file by path of import
	imports      map[string][]string // by folder, all of ours that it needs
	fset         *token.FileSet
}

// moduleRoot is where the module lies, and what it is called.
func moduleRoot() (root, module string, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}\n{{.Path}}").Output()
	if err != nil {
		return "", "", fmt.Errorf("go list -m: %w", err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 2 {
		return "", "", fmt.Errorf("go list -m: %q", out)
	}
	return lines[0], lines[1], nil
}

func newLoader(root, module string, packages []string) (*loader, error) {
	l := &loader{root: root, module: module, exports: map[string]string{}, imports: map[string][]string{}, fset: token.NewFileSet()}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		path, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		l.exports[path] = name
	}
	return l, nil
}

// load parses and types a package.
func (l *loader) load(name string) (*source, error) {
	cmd := exec.Command("go", "list", "-f", "{{range .GoFiles}}{{.}}\n{{end}}", "./"+name)
	cmd.Dir, cmd.Stderr = l.root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list ./%s: %w", name, err)
	}
	p := &source{name: name, fset: l.fset}
	var trees []*ast.File
	for _, n := range strings.Fields(string(out)) {
		path := filepath.Join(l.root, name, n)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(l.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, file{path: path, text: text, tree: tree, start: l.fset.File(tree.FileStart).Base()})
		trees = append(trees, tree)
	}
	return p, p.check(l.module+"/"+name, trees, l.open)
}

// check types the package.
func (p *source) check(path string, trees []*ast.File, open importer.Lookup) error {
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", open)}
	var err error
	p.types, err = conf.Check(path, p.fset, trees, p.info)
	return err
}

// open gives what the compiler exported of a package.
func (l *loader) open(path string) (io.ReadCloser, error) {
	if l.exports[path] == "" {
		return nil, fmt.Errorf("no export of %s", path)
	}
	return os.Open(l.exports[path])
}

// draw takes n of the faults, of each kind alike many as far as there are any. What is drawn of a package depends on
// nothing but the seed and the package.
func draw(seed uint64, name string, all []*fault, n int) []*fault {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	byKind := map[string][]*fault{}
	for _, f := range all {
		byKind[f.kind] = append(byKind[f.kind], f)
	}
	for _, k := range allKinds {
		l := byKind[k]
		r.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
	}
	order := slices.Clone(allKinds)
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var out []*fault
	for len(out) < min(n, len(all)) {
		for _, k := range order {
			if l := byKind[k]; len(l) > 0 && len(out) < n {
				out, byKind[k] = append(out, l[0]), l[1:]
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *fault) int { return cmp.Compare(a.place, b.place) })
	return out
}

// switches is the file that is laid beside those of a package: it knows which fault is on, and tells which are reached.
const switches = `package %s

import (
	"os"
	"strconv"
)

var mutantOn, _ = strconv.Atoi(os.Getenv("TIDEMARK_MUTANT"))

var mutantReach = os.Getenv("TIDEMARK_MUTANT_REACH")

var mutantSeen [%d]bool

func mutantIs(n int) bool { return n == mutantOn || mutantReach != "" && mutantReached(n) }

func mutantReached(n int) bool {
	if mutantSeen[n] {
		return false
	}
	mutantSeen[n] = true
	f, err := os.OpenFile(mutantReach, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.WriteString(strconv.Itoa(n) + "\n")
		_ = f.Close()
	}
	return false
}

func mutantBit(n int) int {
	if mutantIs(n) {
		return 1
	}
	return 0
}

func mutantPick[T any](n int, is, would T) T {
	if mutantIs(n) {
		return would
	}
	return is
}

func mutantAdd[T mutantNumber](n int, a, b T, plus bool) T {
	if mutantIs(n) != plus {
		return a + b
	}
	return a - b
}

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}
`

// writeOverlay writes the file that the compiler reads.
func writeOverlay(path string, overlay map[string]string) error {
	b, err := json.Marshal(map[string]map[string]string{"Replace": overlay})
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// needs lists our packages that the tests of one link.
func (l *loader) needs(name string) ([]string, error) {
	if deps, ok := l.imports[name]; ok {
		return deps, nil
	}
	var told bytes.Buffer
	cmd := exec.Command("go", "list", "-test", "-deps", "-f", "{{.ImportPath}}", "./"+name)
	cmd.Dir, cmd.Stderr = l.root, &told
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("go list ./%s: %w", name, err), errors.New(told.String()))
	}
	var deps []string
	for line := range strings.Lines(string(out)) {
		path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if rest, ok := strings.CutPrefix(path, l.module+"/"); ok {
			deps = append(deps, rest)
		}
	}
	l.imports[name] = deps
	return deps, nil
}
