package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// The budgets of size, in lines except where they say otherwise.
const (
	MaxFunction  = 80
	P90Function  = 40 // nine functions of ten, tests apart
	MaxFile      = 500
	MaxInterface = 5 // methods
	MaxReadme    = 150

	MaxRationale = 40_960 // bytes: what a reader of the code would still question, the rest is in git
)

const ruleBudget = "budget"

// Tracked lists the files of the repository, with those that would be added next, by path below
// root. It asks git, because what git ignores is not ours.
func Tracked(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files (the checks need a git checkout): %w", err)
	}
	var files []string
	for _, f := range strings.Split(string(out), "\x00") {
		if st, err := os.Lstat(filepath.Join(root, f)); f != "" && err == nil && st.Mode().IsRegular() {
			files = append(files, f)
		}
	}
	sort.Strings(files)
	return files, nil
}

// budgeter collects what the budgets speak of.
type budgeter struct {
	fset      *token.FileSet
	found     []Finding
	functions []int           // lines of each, tests apart
	documents map[string]bool // folders with a package: has it a comment?
}

func (b *budgeter) add(file string, pos token.Pos, name, format string, args ...any) {
	line := 0
	if pos.IsValid() {
		line = b.fset.Position(pos).Line
	}
	b.found = append(b.found, Finding{file, line, ruleBudget, name, fmt.Sprintf(format, args...)})
}

// Budgets checks sizes and documentation of files below root. Generated code is exempt.
func Budgets(root string, files []string) []Finding {
	b := &budgeter{fset: token.NewFileSet(), documents: map[string]bool{}}
	for _, file := range files {
		if strings.Contains(file, "testdata/") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue // removed while we looked
		}
		b.text(file, src)
		if filepath.Ext(file) == ".go" {
			b.source(file, src)
		}
	}
	for dir, ok := range b.documents {
		if !ok {
			b.add(dir, token.NoPos, "package", "no package comment; say in doc.go or the main file what the package holds")
		}
	}
	if p := percentile(b.functions, 90); p > P90Function {
		b.add("all packages", token.NoPos, "p90", "nine functions of ten have up to %d lines, at most %d; split the longest", p, P90Function)
	}
	return b.found
}

var questionHeading = regexp.MustCompile(`(?m)^## .*[^?\s]\s*$`)

// text checks what holds for any file.
func (b *budgeter) text(file string, src []byte) {
	lines := bytes.Count(src, []byte("\n"))
	switch ext := filepath.Ext(file); {
	case file == "README.md" && lines > MaxReadme:
		b.add(file, token.NoPos, file, "%d lines, at most %d; the rest belongs in docs or RATIONALE", lines, MaxReadme)
	case file == "RATIONALE.md":
		if len(src) > MaxRationale {
			b.add(file, token.NoPos, file, "%d bytes, at most %d; keep what a reader would still question", len(src), MaxRationale)
		}
		for _, h := range questionHeading.FindAll(src, -1) {
			b.add(file, token.NoPos, file, "heading %q is no question", bytes.TrimSpace(h))
		}
	case (ext == ".go" || ext == ".js" || ext == ".mjs") && lines > MaxFile && !generated(src):
		b.add(file, token.NoPos, file, "%d lines, at most %d; split it by noun", lines, MaxFile)
	}
}

var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func generated(src []byte) bool { return generatedLine.Match(src) }

// source checks one Go file.
func (b *budgeter) source(file string, src []byte) {
	f, err := parser.ParseFile(b.fset, file, src, parser.ParseComments)
	if err != nil {
		b.add(file, token.NoPos, file, "does not parse: %s", err)
		return
	}
	if generated(src) {
		return
	}
	isTest := strings.HasSuffix(file, "_test.go")
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			n := b.fset.Position(fn.End()).Line - b.fset.Position(fn.Pos()).Line + 1
			if n > MaxFunction {
				b.add(file, fn.Pos(), fn.Name.Name, "function %s has %d lines, at most %d; name its steps", fn.Name.Name, n, MaxFunction)
			}
			if !isTest {
				b.functions = append(b.functions, n)
			}
		}
	}
	if isTest {
		return
	}
	dir := filepath.Dir(file)
	b.documents[dir] = b.documents[dir] || f.Doc != nil
	b.interfaces(file, f)
	if f.Name.Name != "main" {
		b.exported(file, f)
	}
}

func (b *budgeter) interfaces(file string, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		if it, ok := n.(*ast.InterfaceType); ok && it.Methods.NumFields() > MaxInterface {
			b.add(file, it.Pos(), "interface", "interface of %d methods, at most %d; an extra ability is a second interface found by type assertion", it.Methods.NumFields(), MaxInterface)
		}
		return true
	})
}

// exported finds exported declarations without a comment. A comment on a group serves all of it.
func (b *budgeter) exported(file string, f *ast.File) {
	missing := func(id *ast.Ident, what string) {
		b.add(file, id.Pos(), id.Name, "exported %s %s has no comment", what, id.Name)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				missing(d.Name, "function")
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						missing(s.Name, "type")
					}
				case *ast.ValueSpec:
					for _, id := range s.Names {
						if id.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
							missing(id, d.Tok.String())
						}
					}
				}
			}
		}
	}
}

// exportedReceiver reports whether a function is no method, or one of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	for t := d.Recv.List[0].Type; ; {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

func percentile(n []int, p int) int {
	if len(n) == 0 {
		return 0
	}
	sort.Ints(n)
	return n[(len(n)*p+99)/100-1]
}

// invented are the users in paths that documents and fixtures make up.
const invented = "user|me|you|alice|bob|dev|app|node|example|test|username|runner"

var homePath = regexp.MustCompile(`(?:^|[^\w.\-/])/(?:root|home/\w+|Users/\w+)/[\w.]`)

var inventedPath = regexp.MustCompile(`/(?:home|Users)/(?:` + invented + `)/`)

// MachinePaths finds paths of one machine in text files: homes, and the places given (where the
// checkout lies, say), which the caller knows.
func MachinePaths(root string, files, places []string) []Finding {
	var fs []Finding
	for _, file := range files {
		src, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || bytes.IndexByte(src[:min(len(src), 8000)], 0) >= 0 {
			continue
		}
		for i, line := range bytes.Split(src, []byte("\n")) {
			if p := machinePath(line, places); p != "" {
				fs = append(fs, Finding{file, i + 1, ruleBudget, p, fmt.Sprintf("path of one machine (%q); instead: a relative path, a flag or an environment variable", p)})
			}
		}
	}
	return fs
}

func machinePath(line []byte, places []string) string {
	for _, p := range places {
		if i := bytes.Index(line, []byte(p)); i == 0 || i > 0 && bytes.IndexByte([]byte(" \t\"'`=(:,"), line[i-1]) >= 0 {
			return p
		}
	}
	for _, m := range homePath.FindAll(line, 3) {
		if !inventedPath.Match(m) {
			return string(m)
		}
	}
	return ""
}
