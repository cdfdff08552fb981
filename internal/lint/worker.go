package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Reaching lists the packages of ours that reach the Worker: the table, as far as it exists, and
// whatever cmd/worker links.
func Reaching(root string) ([]string, error) {
	patterns := map[string]bool{}
	for _, name := range reaches {
		if name == "tidemark" {
			patterns["."] = true
		} else if hasGo(filepath.Join(root, name)) {
			patterns["./"+name] = true
		}
	}
	if hasGo(filepath.Join(root, "cmd/worker")) {
		deps, err := workerDeps(root)
		if err != nil {
			return nil, err
		}
		for _, d := range deps {
			if s := Short(d); s != "" && s != "tidemark" {
				patterns["./"+s] = true
			}
		}
	}
	list := make([]string, 0, len(patterns))
	for p := range patterns {
		list = append(list, p)
	}
	return list, nil
}

// workerDeps lists the import paths that cmd/worker links.
func workerDeps(root string) ([]string, error) {
	listed, err := List(root, Worker, true, "./cmd/worker")
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(listed))
	for i, l := range listed {
		paths[i] = l.ImportPath
	}
	return paths, nil
}

// Linked reports what cmd/worker links and must not. A banned module bans what lies below it; a
// package of the standard library only itself (ulid needs the interfaces of database/sql/driver).
func Linked(paths []string) []Finding {
	var fs []Finding
	for _, p := range paths {
		for _, b := range linked {
			for _, name := range b.names {
				below := strings.Contains(name, ".") && strings.HasPrefix(p, strings.TrimSuffix(name, "/")+"/")
				if p == name || below {
					fs = append(fs, Finding{"cmd/worker", 0, b.rule, p, fmt.Sprintf("links %s: %s; instead: %s", p, b.why, b.instead)})
				}
			}
		}
	}
	return fs
}

func hasGo(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	return len(files) > 0
}

// Discipline checks packages that reach the Worker against all bans.
func Discipline(root string, pkgs []*Package) []Finding {
	var fs []Finding
	for _, p := range pkgs {
		c := &checker{root: root, pkg: p}
		if p.Err != nil {
			fs = append(fs, Finding{Short(p.Path), 0, ruleBuild, "", "does not build for the Worker: " + p.Err.Error()})
		}
		if p.Info == nil {
			continue
		}
		c.importsOf()
		c.names()
		c.contexts()
		fs = append(fs, c.found...)
	}
	fs = append(fs, states(root, pkgs)...)
	kept := fs[:0]
	for _, f := range fs {
		if !excused(f) {
			kept = append(kept, f)
		}
	}
	return kept
}

// excused looks a finding up in the table of exceptions.
func excused(f Finding) bool {
	dir := filepath.ToSlash(filepath.Dir(f.File))
	if dir == "." {
		dir = "tidemark"
	}
	for _, e := range allowed {
		if e.pkg == dir && e.rule == f.Rule && (e.name == "" || e.name == f.Name) {
			return true
		}
	}
	return false
}

// checker walks one package.
type checker struct {
	root  string
	pkg   *Package
	found []Finding
}

func (c *checker) add(pos token.Pos, rule, name, text string) {
	file, line := place(c.root, c.pkg.Fset.Position(pos))
	c.found = append(c.found, Finding{file, line, rule, name, text})
}

func (c *checker) importsOf() {
	for _, f := range c.pkg.Files {
		for _, spec := range f.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			for _, b := range imports {
				for _, name := range b.names {
					if name == path {
						c.add(spec.Pos(), b.rule, path, fmt.Sprintf("import %s: %s; instead: %s", path, b.why, b.instead))
					}
				}
			}
		}
	}
}

// names finds go statements and uses of banned names, however they are imported.
func (c *checker) names() {
	byName := map[string]ban{}
	for _, b := range calls {
		for _, n := range b.names {
			byName[n] = b
		}
	}
	for _, f := range c.pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				c.add(n.Pos(), ruleGo, "go", "go statement: it wakes in the event of another object and its panic ends them all; instead: tidemark.Runtime.Go")
			case *ast.Ident:
				if b, ok := byName[nameOf(c.pkg.Info.Uses[n])]; ok {
					name := nameOf(c.pkg.Info.Uses[n])
					c.add(n.Pos(), b.rule, name, fmt.Sprintf("%s: %s; instead: %s", name, b.why, b.instead))
				}
			}
			return true
		})
	}
}

// nameOf is path.Name for what a package declares, path.Type.Name for a method, otherwise empty.
func nameOf(o types.Object) string {
	if o == nil || o.Pkg() == nil {
		return ""
	}
	if fn, ok := o.(*types.Func); ok {
		if recv := fn.Signature().Recv(); recv != nil {
			if named := namedOf(recv.Type()); named != nil {
				return o.Pkg().Path() + "." + named.Obj().Name() + "." + o.Name()
			}
			return ""
		}
	}
	if o.Parent() != o.Pkg().Scope() {
		return ""
	}
	return o.Pkg().Path() + "." + o.Name()
}

func namedOf(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// contexts finds concrete types that are a context.Context, by methods or by embedding.
func (c *checker) contexts() {
	for id, o := range c.pkg.Info.Defs {
		tn, ok := o.(*types.TypeName)
		if !ok || tn.IsAlias() || types.IsInterface(tn.Type()) {
			continue
		}
		if _, param := tn.Type().(*types.TypeParam); param {
			continue
		}
		methods := types.NewMethodSet(types.NewPointer(tn.Type()))
		is := true
		for _, m := range []string{"Deadline", "Done", "Err", "Value"} {
			is = is && methods.Lookup(tn.Pkg(), m) != nil
		}
		if is {
			c.add(id.Pos(), ruleContext, tn.Name(), fmt.Sprintf(
				"type %s is a context.Context: context.WithCancel starts a goroutine on one that is not its own; instead: pass ctx as an argument, a value with context.WithValue", tn.Name()))
		}
	}
}

// Platform reports build tags, platform suffixes and syscall/js outside the few places for them.
// It reads files, not packages, so that nothing hides behind a tag.
func Platform(root string, files []string) []Finding {
	var fs []Finding
	const why = "platform lines live in host/, cmd/, test/ and internal/json only; instead: a port in the root, implemented by each host"
	for _, file := range files {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") ||
			strings.HasPrefix(file, "host/") || strings.HasPrefix(file, "cmd/") || strings.HasPrefix(file, "test/") || strings.HasPrefix(file, "internal/json/") {
			continue
		}
		base := strings.TrimSuffix(filepath.Base(file), ".go")
		for _, os := range []string{"_js", "_wasm", "_linux", "_darwin", "_windows", "_unix", "_amd64", "_arm64"} {
			if strings.HasSuffix(base, os) {
				fs = append(fs, Finding{file, 0, rulePlatform, os, "file name ends in " + os + ": " + why})
			}
		}
		src, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue // removed while we looked
		}
		for i, line := range strings.Split(string(src), "\n") {
			if strings.HasPrefix(line, "//go:build") || strings.HasPrefix(strings.TrimSpace(line), `"syscall/js"`) {
				fs = append(fs, Finding{file, i + 1, rulePlatform, "", strings.TrimSpace(line) + ": " + why})
			}
		}
	}
	return fs
}
