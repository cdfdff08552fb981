package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

const headers = "# why\n/*\n  X-All: a: b\n\n/assets/*\n  Cache-Control: immutable\n/\n  Cache-Control: no-cache\n"

func site(t *testing.T) http.Handler {
	t.Helper()
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	h, err := load(fstest.MapFS{"_headers": file(headers), "index.html": file("<p>"), ".assetsignore": file("x"),
		"assets/main-X.js": file(strings.Repeat("let x;", 500)), "assets/icon-X.svg": file("<svg/>")})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestServe: files with the heads of their paths, packed for who takes that, and nothing else.
func TestServe(t *testing.T) {
	h := site(t)
	for _, row := range []struct {
		name, method, path, accept string
		status                     int
		cache, kind, encoding      string
		size                       int // of the decoded body
	}{
		{"the page", "GET", "/", "", 200, "no-cache", "text/html; charset=utf-8", "", 3},
		{"a script", "GET", "/assets/main-X.js", "", 200, "immutable", "text/javascript; charset=utf-8", "", 3000},
		{"packed", "GET", "/assets/main-X.js", "br, gzip", 200, "immutable", "text/javascript; charset=utf-8", "gzip", 3000},
		{"too small to pack", "GET", "/assets/icon-X.svg", "gzip", 200, "immutable", "image/svg+xml", "", 6},
		{"its head alone", "HEAD", "/", "", 200, "no-cache", "text/html; charset=utf-8", "", 0},
		{"rules", "GET", "/_headers", "", 404, "", "", "", -1},
		{"what is hidden", "GET", "/.assetsignore", "", 404, "", "", "", -1},
		{"what is not there", "GET", "/assets/other.js", "", 404, "", "", "", -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := httptest.NewRequest(row.method, row.path, nil)
			r.Header.Set("Accept-Encoding", row.accept)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != row.status {
				t.Fatalf("status %d", w.Code)
			}
			if row.size < 0 {
				return
			}
			got := w.Header()
			if got.Get("Cache-Control") != row.cache || got.Get("Content-Type") != row.kind || got.Get("Content-Encoding") != row.encoding || got.Get("X-All") != "a: b" {
				t.Errorf("%v", got)
			}
			if n := len(decoded(t, w)); n != row.size {
				t.Errorf("%d bytes, want %d", n, row.size)
			}
		})
	}
}

func decoded(t *testing.T, w *httptest.ResponseRecorder) []byte {
	t.Helper()
	var body io.Reader = w.Body
	if w.Header().Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		body = unpacked
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestReadHeaders: what we could not serve as Cloudflare does is refused.
func TestReadHeaders(t *testing.T) {
	for name, text := range map[string]string{
		"a header without a path":  "  X: y\n",
		"no path":                  "https://x/*\n  X: y\n",
		"a star in the middle":     "/a/*/b\n  X: y\n",
		"no colon":                 "/\n  X y\n",
		"a header that is removed": "/\n  ! X: y\n",
	} {
		t.Run(name, func(t *testing.T) {
			if rules, err := readHeaders(text); err == nil {
				t.Errorf("read as %v", rules)
			}
		})
	}
}

// FuzzReadHeaders: what is read can be sent, and reads the same when it is written again.
func FuzzReadHeaders(f *testing.F) {
	f.Add(headers)
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := readHeaders(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, r := range rules {
			again.WriteString(r.path + "\n  " + r.name + ": " + r.value + "\n")
		}
		twice, err := readHeaders(again.String())
		if err != nil || len(twice) != len(rules) {
			t.Fatalf("%q: %v, %d rules of %d", again.String(), err, len(twice), len(rules))
		}
		for i := range rules {
			if twice[i] != rules[i] {
				t.Errorf("%+v became %+v", rules[i], twice[i])
			}
		}
	})
}

// TestPolicy: the file that is served forbids what the page does without.
func TestPolicy(t *testing.T) {
	raw, err := os.ReadFile("src/_headers")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := readHeaders(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	var policy string
	for _, r := range rules {
		if r.name == "Content-Security-Policy" && r.path == "/*" {
			policy = r.value
		}
	}
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %q: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
}
