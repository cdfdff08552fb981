//go:build !js

package worker_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/worker"
)

// requests has one request for each route of DESIGN §7 that this package serves, in an order in
// which all succeed. {archive} is the name of the first archive.
var requests = []struct {
	method, path, body string
	status             int
}{
	{"GET", "/healthz", "", 200},
	{"GET", "/", "", 200},
	{"POST", "/v1/sessions/main/messages", `{"text":"The garden needs water on Friday."}`, 200},
	{"GET", "/v1/sessions", "", 200},
	{"GET", "/v1/sessions/main", "", 200},
	{"GET", "/v1/sessions/agent:main:main", "", 200},
	{"PATCH", "/v1/sessions/main", `{"title":"garden"}`, 200},
	{"GET", "/v1/sessions/main/view", "", 200},
	{"GET", "/v1/sessions/main/log", "", 200},
	{"GET", "/v1/sessions/main/log?format=jsonl", "", 200},
	{"GET", "/v1/sessions/main/anatomy", "", 200},
	{"GET", "/v1/sessions/main/anatomy/1/prompt", "", 200},
	{"GET", "/v1/sessions/main/anatomy/99/prompt", "", 404},
	{"GET", "/v1/sessions/main/search?q=garden", "", 200},
	{"GET", "/v1/sessions/main/recall?q=garden", "", 200},
	{"GET", "/v1/sessions/main/task", "", 200},
	{"POST", "/v1/sessions/main/task", `{"add":[{"kind":"goal","text":"plant the garden"}]}`, 200},
	{"POST", "/v1/sessions/main/snapshots", `{"name":"garden in spring"}`, 201},
	{"GET", "/v1/sessions/main/snapshots", "", 200},
	{"POST", "/v1/sessions/main/branch", `{"name":"roses","orientation":"Think of roses."}`, 201},
	{"POST", "/v1/sessions/main/trim", `{"of":{"name":"before the trim"}}`, 201},
	{"GET", "/v1/sessions/main/snapshots/agent:main:main%23roses", "", 200},
	{"GET", "/v1/sessions/main%23roses/view", "", 200},
	{"POST", "/v1/sessions/main/merge", `{"from":"main#roses","note":"Roses it is."}`, 201},
	{"GET", "/v1/compare?a=main&b=main%23roses", "", 200},
	{"GET", "/v1/sessions/main/cost?model=sonnet", "", 200},
	{"GET", "/v1/tree", "", 200},
	{"GET", "/v1/snapshots/snap-00000000000000000000000000", "", 404},
	{"GET", "/v1/snapshots/snap-00000000000000000000000000/archive", "", 404},
	{"PUT", "/v1/snapshots/snap-00000000000000000000000000/archive", "no archive", 400},
	{"DELETE", "/v1/sessions/main/snapshots/snap-00000000000000000000000000", "", 404},
	{"DELETE", "/v1/sessions/main/snapshots/agent:main:main%23roses", "", 400},
	{"POST", "/v1/sessions/main/commands", `{"line":"/snapshot by a word"}`, 200},
	{"POST", "/v1/sessions/main/abort", "", 200},
	{"POST", "/v1/sessions/main/compact", `{"instructions":"keep the garden"}`, 200},
	{"POST", "/v1/sessions/main/reset", `{"reason":"test"}`, 200},
	{"POST", "/v1/sessions/other/import?format=jsonl", `{"role":"user","content":"hi"}` + "\n", 200},
	{"GET", "/v1/agents", "", 200},
	{"GET", "/v1/agents/main/archives", "", 200},
	{"GET", "/v1/agents/main/archives/{archive}", "", 200},
	{"GET", "/v1/agents/main/archives/{archive}?format=jsonl", "", 200},
	{"GET", "/v1/agents/main/archives-search?q=garden", "", 200},
	{"POST", "/v1/agents/main/archives-verify", "", 200},
	{"POST", "/v1/sessions/again/restore", `{"archive":"{archive}"}`, 200},
	{"PUT", "/v1/agents/main/memory/MEMORY.md", "- one\n", 200},
	{"PUT", "/v1/agents/main/memory/MEMORY.md", "- two\n", 200},
	{"GET", "/v1/agents/main/memory", "", 200},
	{"GET", "/v1/agents/main/memory/MEMORY.md", "", 200},
	{"GET", "/v1/agents/main/memory/MEMORY.md?versions=1", "", 200},
	{"POST", "/v1/agents/main/memory-undo", `{"path":"MEMORY.md"}`, 200},
	{"GET", "/v1/agents/main/memory-search?q=one", "", 200},
	{"POST", "/v1/agents/main/schedules", `{"when":"every 2h","prompt":"Look around."}`, 201},
	{"GET", "/v1/agents/main/schedules", "", 200},
	{"GET", "/v1/agents/main/schedules/s1", "", 200},
	{"PATCH", "/v1/agents/main/schedules/s1", `{"state":"paused"}`, 200},
	{"POST", "/v1/agents/main/schedules/s1/run", "", 202},
	{"GET", "/v1/agents/main/schedules/s1/runs?limit=5", "", 200},
	{"DELETE", "/v1/agents/main/schedules/s1", "", 200},
	{"POST", "/v1/sessions/main/undo", `{"overlay":"none"}`, 404},
	{"GET", "/v1/sessions/main/entries/none", "", 404},
	{"GET", "/metrics", "", 200},
}

// TestRoutes makes a request of every route, as a machine's own user, with a token in each of the
// three ways, and without one.
func TestRoutes(t *testing.T) {
	for _, tc := range []struct {
		name, token, prefix string
		headers             []string
		refused             bool
	}{
		{"loopback without a token", "", "", nil, false},
		{"bearer", "secret", "", []string{"Authorization", "Bearer secret"}, false},
		{"header", "secret", "", []string{"x-tidemark-token", "secret"}, false},
		{"path", "secret", "/t/secret", nil, false},
		{"no token", "secret", "", nil, true},
		{"wrong token", "secret", "", []string{"Authorization", "Bearer other"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, func(c *worker.Config, _ *actors) { c.Token = tc.token })
			archive := "none.jsonl.gz"
			for _, r := range requests {
				path, body := strings.ReplaceAll(r.path, "{archive}", archive), strings.ReplaceAll(r.body, "{archive}", archive)
				open := path == "/" || path == "/healthz" && (!tc.refused || tc.headers == nil) // who has a wrong token hears of it
				if tc.refused && !open {
					f := get[fault](s, 401, r.method, path, body, tc.headers...)
					if f.Error.Type != "unauthorized" || !strings.Contains(f.Error.Message, "TIDEMARK_TOKEN") {
						t.Errorf("%s %s: %+v", r.method, path, f)
					}
					continue
				}
				prefix := tc.prefix
				if open {
					prefix = ""
				}
				got := s.text(r.status, r.method, prefix+path, body, tc.headers...)
				if r.path == "/v1/agents/main/archives" {
					_, rest, _ := strings.Cut(got, `"key":"agents/main/sessions/`)
					archive, _, _ = strings.Cut(rest, `"`)
				}
			}
			if !tc.refused {
				if name, _ := s.listen("GET", tc.prefix+"/v1/sessions/main/events", "", tc.headers...).next(); name != "hello" {
					t.Errorf("events begin with %q", name)
				}
			}
		})
	}
}

// methodOf gives a pattern of any method one.
func methodOf(pattern string) string {
	if strings.HasPrefix(pattern, "/") {
		return "GET " + pattern
	}
	return pattern
}

// TestDocumented holds docs/http.md to the table of routes.
func TestDocumented(t *testing.T) {
	raw, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range worker.Patterns() {
		method, path, _ := strings.Cut(methodOf(p), " ")
		path = strings.NewReplacer("{path...}", "{path}", "{id...}", "{id…}", "{file...}", "{file…}", "{$}", "").Replace(path)
		short := "…" + strings.TrimPrefix(path, "/v1/sessions/{key}")
		if doc := string(raw); path != "/" && !strings.Contains(doc, "`"+method+" "+path) && !strings.Contains(doc, "`"+method+" "+short) {
			t.Errorf("docs/http.md does not speak of %s", p)
		}
	}
}

func TestUnrouted(t *testing.T) {
	s := serve(t, nil)
	for _, tc := range []struct {
		name, method, path string
		status             int
		kind, allow        string
	}{
		{"unknown path", "GET", "/v2/sessions", 404, "not_found", ""},
		{"unknown below a session", "GET", "/v1/sessions/main/nothing", 404, "not_found", ""},
		{"slash at the end", "GET", "/v1/sessions/", 404, "not_found", ""},
		{"wrong method", "DELETE", "/v1/sessions/main", 405, "method_not_allowed", "GET, HEAD, PATCH"},
		{"GET of messages", "GET", "/v1/sessions/main/messages", 405, "method_not_allowed", "POST"},
		{"POST of memory", "POST", "/v1/agents/main/memory/MEMORY.md", 405, "method_not_allowed", "GET, HEAD, PUT"},
		{"POST of the root", "POST", "/", 405, "method_not_allowed", "GET, HEAD"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := get[fault](s, tc.status, tc.method, tc.path, "")
			if f.Error.Type != tc.kind || f.Error.RequestID == "" {
				t.Errorf("%+v", f)
			}
			if got := s.do(tc.method, tc.path, "").Header.Get("Allow"); got != tc.allow {
				t.Errorf("Allow %q, want %q", got, tc.allow)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{"/healthz", "/v1/sessions", "/nothing"} {
		h := s.do("GET", path, "", "X-Request-Id", "from-the-front_1").Header
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "X-Request-Id": "from-the-front_1",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	for _, odd := range []string{"a b", strings.Repeat("x", 65), "<script>"} {
		if got := s.do("GET", "/healthz", "", "X-Request-Id", odd).Header.Get("X-Request-Id"); got == odd || len(got) != 26 {
			t.Errorf("request id %q became %q", odd, got)
		}
	}
}

func TestForeignPages(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) { c.Origins = []string{"https://chat.example.com"} })
	for _, tc := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"own page", []string{"Origin", s.URL}, 200},
		{"allowed page", []string{"Origin", "https://chat.example.com"}, 200},
		{"foreign page", []string{"Origin", "https://evil.example"}, 403},
		{"rebound name", []string{"Host", "evil.example"}, 403},
	} {
		t.Run(tc.name, func(t *testing.T) { s.text(tc.status, "GET", "/v1/sessions", "", tc.headers...) })
	}
}
