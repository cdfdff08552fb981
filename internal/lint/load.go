package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Target is a platform that our code is built for.
type Target struct{ OS, Arch string }

// The targets: the machine that runs the check (empty), and the Worker.
var (
	Native = Target{}
	Worker = Target{OS: "js", Arch: "wasm"}
)

// Listed is what `go list` says of a package.
type Listed struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Export       string // file with export data, when asked for
	DepOnly      bool   // not named by a pattern
	Incomplete   bool
	Error        *struct{ Err string }
}

// List runs `go list` in root for one target. With export it builds what it lists.
func List(root string, t Target, export bool, patterns ...string) ([]Listed, error) {
	args := []string{"list", "-e", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports,Export,DepOnly,Incomplete,Error"}
	if export {
		args = append(args, "-deps", "-export")
	}
	cmd := exec.Command("go", append(args, patterns...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if t.OS != "" {
		cmd.Env = append(cmd.Env, "GOOS="+t.OS, "GOARCH="+t.Arch, "CGO_ENABLED=0")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", strings.Join(patterns, " "), err, stderr.String())
	}
	var all []Listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l Listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		all = append(all, l)
	}
}

// Package is a package of ours, parsed and type-checked without its tests.
type Package struct {
	Path  string
	Fset  *token.FileSet
	Files []*ast.File
	Types *types.Package
	Info  *types.Info
	Err   error // it does not build for the target
}

// exports finds the export data that the compiler wrote.
type exports map[string]string

func (e exports) lookup(path string) (io.ReadCloser, error) {
	if e[path] == "" {
		return nil, fmt.Errorf("no export data for %s", path)
	}
	return os.Open(e[path])
}

// Load type-checks the packages of ours that the patterns name, for one target.
func Load(root string, t Target, patterns ...string) ([]*Package, error) {
	listed, err := List(root, t, true, patterns...)
	if err != nil {
		return nil, err
	}
	ex := exports{}
	for _, l := range listed {
		ex[l.ImportPath] = l.Export
	}
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "gc", ex.lookup)
	var pkgs []*Package
	for _, l := range listed {
		if l.DepOnly || Short(l.ImportPath) == "" {
			continue
		}
		p := &Package{Path: l.ImportPath, Fset: fset}
		for _, name := range l.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.ParseComments)
			if err != nil {
				p.Err = err
				break
			}
			p.Files = append(p.Files, f)
		}
		if p.Err == nil {
			p.check(imp)
		}
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

// check type-checks; it keeps the first error and what could be understood.
func (p *Package) check(imp types.Importer) {
	p.Info = &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Defs:       map[*ast.Ident]types.Object{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	conf := types.Config{Importer: imp, Error: func(err error) {
		if p.Err == nil {
			p.Err = err
		}
	}}
	p.Types, _ = conf.Check(p.Path, p.Fset, p.Files, p.Info) // the handler has the error
}
