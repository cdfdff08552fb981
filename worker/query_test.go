//go:build !js

package worker_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/worker"
)

// TestQuery: a parameter that a route does not take is refused by its name, with the one that is meant.
func TestQuery(t *testing.T) {
	s := serve(t, nil)
	s.text(200, "POST", "/v1/sessions/main/messages", `{"text":"the walnut sits there"}`)
	s.settle()
	for _, row := range []struct {
		name, method, path string
		status             int
		want               string
	}{
		{"recall", "GET", "/v1/sessions/main/recall?qurey=x", 400, `query: unknown parameter "qurey"; did you mean "q"?`},
		{"recall, beside a good one", "GET", "/v1/sessions/main/recall?q=walnut&sinze=2026-05-01", 400, `"sinze"; did you mean "since"?`},
		{"recall, in many", "GET", "/v1/recall?q=walnut&sesion=main", 400, `"sesion"; did you mean "session"?`},
		{"recall, capitals", "GET", "/v1/recall?Q=walnut", 400, `"Q"; did you mean "q"?`},
		{"one letter for another", "GET", "/v1/sessions/main/recall?n=5", 400, `"n"; known are q, k,`},
		{"two for one", "GET", "/v1/sessions/main/recall?no=1", 400, `"no"; known are q, k,`},
		{"a date", "GET", "/v1/recall?to=2026-01-01", 400, `"to"; known are q, k,`},
		{"swapped", "GET", "/v1/sessions/main/recall?q=walnut&sinzee=1", 400, `"sinzee"; did you mean "since"?`},
		{"twice", "GET", "/v1/sessions/main/search?q=vault&q=b", 400, `query: parameter "q" is given 2 times, want one`},
		{"twice the same", "GET", "/v1/recall?q=walnut&k=2&k=2", 400, `"k" is given 2 times`},
		{"one of them empty", "GET", "/v1/recall?q=walnut&k=&k=2", 400, `"k" is given 2 times`},
		{"the first twice by name", "GET", "/v1/recall?q=a&q=b&k=1&k=2&k=3", 400, `"k" is given 3 times`},
		{"twice and unknown", "GET", "/v1/recall?zebra=a&q=b&q=c&zebra=b", 400, `unknown parameter "zebra"`},
		{"twice, of monitors", "GET", "/healthz?cache=1&cache=2", 200, ``},
		{"nothing like it", "GET", "/v1/sessions/main/recall?q=walnut&zebra=1", 400, `"zebra"; known are q, k, since, until, budget, all`},
		{"the first by name", "GET", "/v1/sessions/main/recall?zz=1&aa=1", 400, `"aa"`},
		{"search", "GET", "/v1/sessions/main/search?q=walnut&lmit=2", 400, `"lmit"; did you mean "limit"?`},
		{"archives", "GET", "/v1/agents/main/archives?sesion=x", 400, `"sesion"; did you mean "session"?`},
		{"archives, search", "GET", "/v1/agents/main/archives-search?query=x", 400, `"query"; did you mean "q"?`},
		{"memory", "GET", "/v1/agents/main/memory?limt=1", 400, `"limt"; did you mean "limit"?`},
		{"memory, a file", "GET", "/v1/agents/main/memory/MEMORY.md?versiom=1", 400, `"versiom"; did you mean "version"?`},
		{"view", "GET", "/v1/sessions/main/view?mesages=0", 400, `"mesages"; did you mean "messages"?`},
		{"a route of none", "GET", "/v1/agents?limit=3", 400, `"limit"; known are none`},
		{"no session is made", "POST", "/v1/sessions/fresh/messages?wiat=0", 400, `"wiat"; did you mean "wait"?`},
		{"it was not made", "GET", "/v1/sessions/fresh", 404, ``},
		{"no name", "GET", "/v1/sessions/main/recall?q=walnut&=1", 400, `unknown parameter ""`},
		{"what cannot be read", "GET", "/v1/sessions/main/recall?q=%zz", 400, `%zz`},
		{"a semicolon", "GET", "/v1/sessions/main/recall?q=walnut;k=2", 400, `semicolon`},
		{"none", "GET", "/v1/sessions/main?", 200, ``},
		{"all", "GET", "/v1/sessions/main/recall?q=walnut&k=2&since=2020-01-01&until=2099-01-01&budget=100&all=1", 200, ``},
		{"health", "GET", "/healthz?cache=1", 200, ``},
		{"metrics", "GET", "/metrics?debug=1", 200, ``},
		{"models of OpenAI", "GET", "/v1/models?beta=true", 200, ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.status == 200 {
				s.text(200, row.method, row.path, "")
				return
			}
			if f := get[fault](s, row.status, row.method, row.path, `{"text":"a"}`); !strings.Contains(f.Error.Message, row.want) {
				t.Errorf("%q does not say %q", f.Error.Message, row.want)
			}
		})
	}
}

// TestQueryOfAll: every route of ours refuses what it does not take; those that clients of other APIs, monitors and
// platforms use take what they send. What a route takes is in its row of docs/http.md.
func TestQueryOfAll(t *testing.T) {
	raw, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil)
	tolerant := 0
	for pattern, takes := range worker.Takes() {
		method, path, _ := strings.Cut(methodOf(pattern), " ")
		at := strings.NewReplacer("{key}", "main", "{agent}", "main", "{path...}", "MEMORY.md", "{name}", "x", "{id}", "x", "{id...}", "x", "{n}", "1", "{channel}", "whatsapp", "{file}", "x", "{file...}", "x.md", "{$}", "").Replace(path)
		res := s.do(method, at+"?zebra=1", "")
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if takes == worker.Anything {
			tolerant++
			if strings.Contains(string(body), "zebra") {
				t.Errorf("%s: %s", pattern, body)
			}
			continue
		}
		if res.StatusCode != 400 || !strings.Contains(string(body), `unknown parameter \"zebra\"`) {
			t.Errorf("%s: %d %s", pattern, res.StatusCode, body)
		}
		short := "…" + strings.TrimPrefix(path, "/v1/sessions/{key}")
		for _, name := range strings.Fields(takes) {
			if !documents(string(raw), name, method+" "+strings.ReplaceAll(path, "...", ""), method+" "+short) {
				t.Errorf("docs/http.md does not say that %s takes %s", pattern, name)
			}
		}
	}
	if tolerant < 10 {
		t.Errorf("%d tolerant routes", tolerant)
	}
}

// documents reports whether a row of the table about a route has a parameter.
func documents(doc, name string, routes ...string) bool {
	for line := range strings.Lines(doc) {
		for _, r := range routes {
			if head, rest, ok := strings.Cut(line, "`"+r); ok && head != "" && (rest[0] == '`' || rest[0] == '?' || rest[0] == ' ') &&
				(strings.Contains(line, "?"+name+"=") || strings.Contains(line, "&"+name+"=")) {
				return true
			}
		}
	}
	return false
}
