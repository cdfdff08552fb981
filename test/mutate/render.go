package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fault is one change of the code.
type fault struct {
	pkg, fn, kind string
	text          string // of the place, on one line
	place         string // file and line
	file          *file
	from, to      int // of the text that it replaces
	split         bool
	// make gives the new text; old renders a part of the old one, with the faults inside of it.
	make    func(id int, old func(from, to int) string) string
	keyword int // where `const` has to become `var` for it; -1: nowhere

	id      int
	reached int
	killer  string
}

// String is how a fault is named for good.
func (f *fault) String() string { return f.pkg + "." + f.fn + "\t" + f.kind + "\t" + f.text }

// render gives the text of a file with faults. They nest like the syntax that they stand on; of two at one place the
// one that takes its place apart is the inner one.
func (f *file) render(faults []*fault) string {
	faults = slices.Clone(faults)
	vars := map[int]bool{}
	for _, x := range faults {
		if at := x.keyword; at >= 0 && !vars[at] {
			vars[at] = true
			faults = append(faults, &fault{from: at, to: at + len("const"), make: func(int, func(int, int) string) string { return "var" }})
		}
	}
	slices.SortStableFunc(faults, func(a, b *fault) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(rank(a), rank(b)))
	})
	var out func(from, to int, inside []*fault) string
	out = func(from, to int, inside []*fault) string {
		var b strings.Builder
		for i := 0; i < len(inside); i++ {
			x := inside[i]
			if x.from < from || x.to > to {
				continue
			}
			b.Write(f.text[from:x.from])
			var in []*fault
			for i+1 < len(inside) && inside[i+1].from < x.to {
				i++
				in = append(in, inside[i])
			}
			old := func(from, to int) string { return out(from, to, in) }
			b.WriteString(x.make(x.id, old))
			from = x.to
		}
		b.Write(f.text[from:to])
		return b.String()
	}
	return out(0, len(f.text), faults)
}

func rank(f *fault) int {
	if f.split {
		return 1
	}
	return 0
}

// plant writes the files of the package with all of its faults, each behind its switch, and notes them in the overlay.
// It returns those that compile.
func (p *source) plant(faults []*fault, dir string, overlay map[string]string, l *loader) ([]*fault, error) {
	if p.compiles(faults, l) != nil {
		var why error
		faults = slices.DeleteFunc(slices.Clone(faults), func(f *fault) bool {
			err := p.compiles([]*fault{f}, l)
			if err != nil {
				why = fmt.Errorf("%s: %w", f, err)
			}
			return err != nil
		})
		if err := p.compiles(faults, l); err != nil {
			return nil, fmt.Errorf("%s with all of its faults: %w", p.name, err)
		}
		if why != nil {
			fmt.Fprintln(os.Stderr, "left out, since it does not compile:", why)
		}
	}
	if len(faults) == 0 {
		return nil, nil
	}
	out := filepath.Join(dir, strings.ReplaceAll(p.name, "/", "_"))
	if err := os.MkdirAll(out, 0o700); err != nil {
		return nil, err
	}
	for path, text := range p.rendered(faults) {
		to := filepath.Join(out, filepath.Base(path))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return nil, err
		}
		overlay[path] = to
	}
	return faults, nil
}

// rendered has the text of each file that the faults change, and of the one that is new.
func (p *source) rendered(faults []*fault) map[string]string {
	out, most := map[string]string{}, 0
	for i := range p.files {
		f := &p.files[i]
		var mine []*fault
		for _, x := range faults {
			if most = max(most, x.id); x.file == f {
				mine = append(mine, x)
			}
		}
		if len(mine) > 0 {
			out[f.path] = f.render(mine)
		}
	}
	out[filepath.Join(filepath.Dir(p.files[0].path), "mutant_switches.go")] = fmt.Sprintf(switches, p.types.Name(), most+1)
	return out
}

// compiles types the package with the faults.
func (p *source) compiles(faults []*fault, l *loader) error {
	if len(faults) == 0 {
		return nil
	}
	texts := p.rendered(faults)
	q := &source{name: p.name, fset: token.NewFileSet()}
	var trees []*ast.File
	for i := range p.files {
		text, ok := texts[p.files[i].path]
		if !ok {
			text = string(p.files[i].text)
		}
		delete(texts, p.files[i].path)
		tree, err := parser.ParseFile(q.fset, p.files[i].path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
	}
	for path, text := range texts {
		tree, err := parser.ParseFile(q.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
	}
	return q.check(l.module+"/"+p.name, trees, l.open)
}
