package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source writes a page of one script, with a stand-in for a package.
func source(t *testing.T, index string) *page {
	t.Helper()
	p := &page{from: t.TempDir(), out: filepath.Join(t.TempDir(), "dist"), budget: 10_000}
	for name, text := range map[string]string{
		"src/index.html": index, "src/_headers": "/*\n  X: y\n", "src/icon.svg": "<svg/>", "src/theme.js": "let a = 1; console.log(a);",
		"src/main.jsx":                     `import { render } from "preact"; import "./style.css"; render(<p>hello</p>);`,
		"src/style.css":                    "p { color: red }",
		"node_modules/preact/package.json": `{"name":"preact","main":"index.js"}`,
		"node_modules/preact/index.js":     "export const render = (x) => console.log(x);", "node_modules/preact/jsx-runtime.js": "export const jsx = (...a) => a;",
		"node_modules/preact/LICENSE": "MIT",
	} {
		to := filepath.Join(p.from, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

const wholeIndex = `<link href="{main.css}"><link href="{icon.svg}"><script src="{theme.js}"></script><script type="module" src="{main.js}"></script>`

// TestBundlePage: hashed names, written into the page; what lay there before is gone but for what is in
// git; the same sources give the same names, others do not.
func TestBundlePage(t *testing.T) {
	p := source(t, wholeIndex)
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{kept, "old.js"} {
		if err := os.WriteFile(filepath.Join(p.out, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	first := bundled(t, p)
	for _, want := range []string{"_headers", "index.html", "assets/licenses.txt", kept} {
		if !slices.Contains(first, want) {
			t.Errorf("%s is missing in %q", want, first)
		}
	}
	if slices.Contains(first, "old.js") {
		t.Error("what lay there before is there still")
	}
	index, err := os.ReadFile(filepath.Join(p.out, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range first {
		if strings.HasPrefix(name, "assets/") && !strings.HasSuffix(name, ".txt") && !strings.Contains(string(index), `"/`+name+`"`) {
			t.Errorf("%s is not in %s", name, index)
		}
	}
	if again := bundled(t, p); !slices.Equal(again, first) {
		t.Errorf("%q, then %q", first, again)
	}
	if err := os.WriteFile(filepath.Join(p.from, "src", "style.css"), []byte("p { color: blue }"), 0o644); err != nil {
		t.Fatal(err)
	}
	if other := bundled(t, p); slices.Equal(other, first) {
		t.Error("another style has the name of the old one")
	}
}

func bundled(t *testing.T, p *page) []string {
	t.Helper()
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	var names []string
	err := filepath.WalkDir(p.out, func(at string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(p.out, at)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// TestBundlePageRefuses: what would be a broken page, or a heavy one, is an error that says why.
func TestBundlePageRefuses(t *testing.T) {
	for _, row := range []struct {
		name, want string
		change     func(*testing.T, *page)
	}{
		{"over its budget", "over its budget", func(_ *testing.T, p *page) { p.budget = 100 }},
		{"without its packages", "npm ci", func(t *testing.T, p *page) { report(t, os.RemoveAll(filepath.Join(p.from, "node_modules"))) }},
		{"a file that is not there", "{other.js}", func(t *testing.T, p *page) {
			report(t, os.WriteFile(filepath.Join(p.from, "src", "index.html"), []byte(`<script src="{other.js}">`), 0o644))
		}},
		{"a mistake in a script", "main.jsx:1", func(t *testing.T, p *page) {
			report(t, os.WriteFile(filepath.Join(p.from, "src", "main.jsx"), []byte("let x = ;"), 0o644))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := source(t, wholeIndex)
			row.change(t, p)
			if err := p.run(); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

func report(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
