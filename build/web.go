package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// pageBudget is the most bytes of the page, each file gzip -9: what a phone fetches before it can say
// something.
const pageBudget = 120_000

// page makes web/dist of web/src and the pinned packages of web/package.json.
type page struct {
	from, out string
	budget    int
}

// kept is the file of the output folder that is in git: it is there before anything was bundled.
const kept = ".assetsignore"

func bundlePage(args []string) error {
	p := page{}
	f := flag.NewFlagSet("build web", flag.ContinueOnError)
	f.StringVar(&p.from, "from", "web", "folder with src, package.json and node_modules")
	f.StringVar(&p.out, "out", "web/dist", "folder to bundle into")
	f.IntVar(&p.budget, "budget", pageBudget, "most bytes of all files, gzip -9")
	if err := f.Parse(args); err != nil {
		return err
	}
	return p.run()
}

func (p *page) run() error {
	if _, err := os.Stat(filepath.Join(p.from, "node_modules", "preact")); err != nil {
		return fmt.Errorf("%s/node_modules is missing: run `make web`, or npm ci --prefix %s", p.from, p.from)
	}
	files, err := p.bundle()
	if err != nil {
		return err
	}
	index, err := p.index(files)
	if err != nil {
		return err
	}
	files["index.html"] = index
	if files["_headers"], err = os.ReadFile(filepath.Join(p.from, "src", "_headers")); err != nil {
		return err
	}
	size, err := packedSize(files)
	if err != nil {
		return err
	}
	if files["assets/licenses.txt"], err = p.licenses(); err != nil {
		return err
	}
	if err := p.write(files); err != nil {
		return err
	}
	fmt.Printf("%s: %d files, gzip -9 %d of %d\n", p.out, len(files), size, p.budget)
	if size > p.budget {
		return fmt.Errorf("the page is %d bytes over its budget", size-p.budget)
	}
	return nil
}

// bundle gives the scripts, styles and pictures of the page by their names in the output, which have
// a hash of what is in them, so that they may be kept for ever.
func (p *page) bundle() (map[string][]byte, error) {
	src, err := filepath.Abs(filepath.Join(p.from, "src"))
	if err != nil {
		return nil, err
	}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join(src, "main.jsx"), filepath.Join(src, "theme.js"), filepath.Join(src, "icon.svg")},
		Outdir:      src, EntryNames: "assets/[name]-[hash]", AssetNames: "assets/[name]-[hash]",
		Bundle: true, Format: api.FormatESModule, Target: api.ES2022, Platform: api.PlatformBrowser,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", Loader: map[string]api.Loader{".svg": api.LoaderCopy},
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		LegalComments: api.LegalCommentsNone, // licenses.txt has them whole
		Define:        map[string]string{"process.env.NODE_ENV": `"production"`},
	})
	var found []error
	for _, m := range slices.Concat(result.Errors, result.Warnings) {
		at := ""
		if m.Location != nil {
			at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
		}
		found = append(found, errors.New(at+m.Text))
	}
	if found != nil {
		return nil, fmt.Errorf("bundle the page: %w", errors.Join(found...))
	}
	files := map[string][]byte{}
	for _, f := range result.OutputFiles {
		name, err := filepath.Rel(src, f.Path)
		if err != nil {
			return nil, err
		}
		files[filepath.ToSlash(name)] = f.Contents
	}
	return files, nil
}

// index fills the names of the files into src/index.html: "{main.js}" becomes "/assets/main-HASH.js".
func (p *page) index(files map[string][]byte) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(p.from, "src", "index.html"))
	if err != nil {
		return nil, err
	}
	for name := range files {
		ext := filepath.Ext(name)
		stem, _, ok := strings.Cut(strings.TrimSuffix(filepath.Base(name), ext), "-")
		if ok {
			raw = bytes.ReplaceAll(raw, []byte("{"+stem+ext+"}"), []byte("/"+name))
		}
	}
	if i := bytes.IndexByte(raw, '{'); i >= 0 {
		return nil, fmt.Errorf("src/index.html asks for a file that was not bundled: %.40s", raw[i:])
	}
	return raw, nil
}

// licenses joins the licences of the packages that are in the bundle.
func (p *page) licenses() ([]byte, error) {
	var out bytes.Buffer
	modules := filepath.Join(p.from, "node_modules")
	for _, pattern := range []string{"*/LICENSE*", "@*/*/LICENSE*"} {
		names, err := filepath.Glob(filepath.Join(modules, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			of, err := filepath.Rel(modules, name)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "== %s\n\n%s\n\n", filepath.ToSlash(of), bytes.TrimSpace(raw))
		}
	}
	return out.Bytes(), nil
}

// write replaces what is in the output folder.
func (p *page) write(files map[string][]byte) error {
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		return err
	}
	old, err := os.ReadDir(p.out)
	if err != nil {
		return err
	}
	for _, e := range old {
		if e.Name() == kept {
			continue
		}
		if err := os.RemoveAll(filepath.Join(p.out, e.Name())); err != nil {
			return err
		}
	}
	for name, raw := range files {
		to := filepath.Join(p.out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packedSize is what all files come to on the wire.
func packedSize(files map[string][]byte) (int, error) {
	sum := 0
	for _, raw := range files {
		n, err := gzipSize(raw)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func gzipSize(raw []byte) (int, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	if _, err := w.Write(raw); err != nil {
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return packed.Len(), nil
}
