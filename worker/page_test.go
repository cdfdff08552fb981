package worker_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestPage: the page is for anybody and has its own heads; a server without one gives the hint and says why
// there is no file.
func TestPage(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "of the page")
		fmt.Fprint(w, "page "+r.URL.Path)
	})
	for _, row := range []struct {
		name   string
		page   http.Handler
		path   string
		status int
		body   string
		policy string
	}{
		{"the page", page, "/", 200, "page /", "of the page"},
		{"a file", page, "/assets/main.js", 200, "page /assets/main.js", "of the page"},
		{"no deeper", page, "/assets/a/b.js", 401, "unauthorized", "default-src 'none'; frame-ancestors 'none'"},
		{"none of it", nil, "/", 200, "Tidemark", "default-src 'none'; frame-ancestors 'none'"},
		{"no file", nil, "/assets/main.js", 404, "make web", "default-src 'none'; frame-ancestors 'none'"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newPageHandler(t, row.page)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, row.path, nil))
			if w.Code != row.status || !strings.Contains(w.Body.String(), row.body) || w.Header().Get("Content-Security-Policy") != row.policy {
				t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
			}
		})
	}
}

func newPageHandler(t *testing.T, page http.Handler) http.Handler {
	t.Helper()
	return worker.New(worker.Config{Runtime: hosttest.Runtime(t), Token: "secret", Page: page})
}
