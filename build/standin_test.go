package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestOverlay: each stand-in takes the place of every file of its package, so that nothing of the
// original is compiled.
func TestOverlay(t *testing.T) {
	name, err := overlay(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Replace map[string]string }
	if err := json.Unmarshal(raw, &made); err != nil {
		t.Fatal(err)
	}
	root, err := goSays(nil, "env", "GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range standIns {
		dir := filepath.Join(root, "src", filepath.FromSlash(s.pkg))
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			with, ok := made.Replace[filepath.Join(dir, f.Name())]
			if strings.HasSuffix(f.Name(), ".go") && (!ok || with != "") {
				t.Errorf("%s/%s would be compiled", s.pkg, f.Name())
			}
		}
		if with := made.Replace[filepath.Join(dir, "standin.go")]; !exists(with) {
			t.Errorf("%s: no stand-in at %q", s.pkg, with)
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// TestStandInNames: a stand-in declares nothing that the original lacks, so that what compiles here
// compiles there.
func TestStandInNames(t *testing.T) {
	root, err := goSays(nil, "env", "GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range standIns {
		t.Run(s.dir, func(t *testing.T) {
			original := exported(t, filepath.Join(root, "src", filepath.FromSlash(s.pkg)))
			ours := exported(t, s.dir)
			if len(ours) == 0 {
				t.Fatal("it declares nothing")
			}
			for name, declared := range ours {
				if original[name] != declared {
					t.Errorf("%s is %q here, %q in %s", name, declared, original[name], s.pkg)
				}
			}
		})
	}
}

// exported gives what each exported name of a folder is, with methods and fields as "Type.Name".
func exported(t *testing.T, folder string) map[string]string {
	t.Helper()
	names := map[string]string{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			declared(d, names)
		}
	}
	return names
}

func declared(d ast.Decl, names map[string]string) {
	add := func(prefix, name, what string) {
		if ast.IsExported(name) {
			names[prefix+name] = what
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		prefix := ""
		if d.Recv != nil {
			on := d.Recv.List[0].Type
			if p, ok := on.(*ast.StarExpr); ok {
				on = p.X
			}
			if prefix = on.(*ast.Ident).Name + "."; !ast.IsExported(prefix) {
				return
			}
		}
		add(prefix, d.Name.Name, "func")
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					add("", n.Name, d.Tok.String())
				}
			case *ast.TypeSpec:
				add("", spec.Name.Name, "type")
				if s, ok := spec.Type.(*ast.StructType); ok && ast.IsExported(spec.Name.Name) {
					for _, f := range s.Fields.List {
						for _, n := range f.Names {
							add(spec.Name.Name+".", n.Name, "field")
						}
					}
				}
			}
		}
	}
}
