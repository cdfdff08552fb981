// Package web is the page as it is served: what was bundled from src into dist (`go run ./build web`). It serves nothing
// itself: on Workers the platform does (wrangler.toml, [assets]), natively the binary embeds it. Begin with src/main; both
// hosts take the headers from dist/_headers.
package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed all:dist
var dist embed.FS

// Page returns what serves the page, nil when it was not bundled before this was compiled.
func Page() (http.Handler, error) {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(files, "index.html"); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return load(files)
}

// load reads all files, which are few.
func load(files fs.FS) (http.Handler, error) {
	raw, err := fs.ReadFile(files, "_headers")
	if err != nil {
		return nil, fmt.Errorf("load page: %w", err)
	}
	rules, err := readHeaders(string(raw))
	if err != nil {
		return nil, fmt.Errorf("load page: _headers: %w", err)
	}
	p := page{}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path.Base(name), "_") || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		f := file{at: "/" + name, head: http.Header{}}
		if name == "index.html" {
			f.at = "/"
		}
		if f.raw, err = fs.ReadFile(files, name); err != nil {
			return err
		}
		f.packed = sync.OnceValue(func() []byte { return pack(f.raw) })
		f.head.Set("Content-Type", typeOf(name))
		for _, r := range rules {
			if r.fits(f.at) {
				f.head.Set(r.name, r.value)
			}
		}
		p[f.at] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load page: %w", err)
	}
	return p, nil
}

// file is one file as it is sent.
type file struct {
	at     string // its path
	head   http.Header
	raw    []byte
	packed func() []byte // gzip, made when it is first asked for
}

// page has the files by their paths.
type page map[string]file

// ServeHTTP implements http.Handler.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := p[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	for name, values := range f.head {
		h[name] = values
	}
	h.Add("Vary", "Accept-Encoding")
	body := f.raw
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(f.packed()) < len(f.raw) {
		h.Set("Content-Encoding", "gzip")
		body = f.packed()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone
	}
}

// typeOf names the types that the page has; the machine's own table may lack or bend them.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// pack compresses in memory, where nothing can fail.
func pack(raw []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return raw
	}
	if _, err = w.Write(raw); err == nil {
		err = w.Close()
	}
	if err != nil {
		return raw
	}
	return out.Bytes()
}

// rule is one header of a _headers file (https://developers.cloudflare.com/workers/static-assets/headers/).
type rule struct{ path, name, value string }

// fits reports whether the rule is for a path. Of the patterns we use and take one: a "*" at the end.
func (r rule) fits(at string) bool {
	if start, ok := strings.CutSuffix(r.path, "*"); ok {
		return strings.HasPrefix(at, start)
	}
	return r.path == at
}

// readHeaders reads a _headers file: a path on a line of its own, below it the headers, indented. A
// later rule replaces an earlier one of the same name here and is added to it on Cloudflare, so no name
// may come twice for one path.
func readHeaders(text string) ([]rule, error) {
	var rules []rule
	at := ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		case !strings.HasPrefix(line, " "):
			if !strings.HasPrefix(trimmed, "/") || strings.Contains(strings.TrimSuffix(trimmed, "*"), "*") {
				return nil, fmt.Errorf("line %d: want a path, with * only at its end: %s", i+1, trimmed)
			}
			at = trimmed
		default:
			name, value, ok := strings.Cut(trimmed, ":")
			if !ok || at == "" || strings.ContainsAny(name, " !") {
				return nil, fmt.Errorf("line %d: want a header below a path: %s", i+1, trimmed)
			}
			rules = append(rules, rule{at, name, strings.TrimSpace(value)})
		}
	}
	return rules, nil
}
