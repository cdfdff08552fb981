//go:build !js

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// refusal is a request that must be refused.
type refusal struct {
	name, method, path, body string
	headers                  []string
}

// refusals are held over a session that is there and one that is not.
func refusals(there, fresh string) []refusal {
	return []refusal{
		{"no token", "GET", there, "", []string{"Authorization", ""}},
		{"wrong token", "GET", there, "", []string{"Authorization", "Bearer wrong"}},
		{"wrong token in the path", "GET", "/t/wrong" + there, "", []string{"Authorization", ""}},
		{"no token, no route", "GET", "/v1/nothing", "", []string{"Authorization", ""}},
		{"foreign page", "GET", there, "", []string{"Origin", "https://evil.example.com"}},
		{"no such route", "GET", "/v1/nothing", "", nil},
		{"no such route of a session", "GET", there + "/nothing", "", nil},
		{"wrong method", "DELETE", there, "", nil},
		{"wrong method of a route", "GET", there + "/messages", "", nil},
		{"no such session", "GET", fresh, "", nil},
		{"view of nothing", "GET", fresh + "/view", "", nil},
		{"log of nothing", "GET", fresh + "/log", "", nil},
		{"abort of nothing", "POST", fresh + "/abort", "", nil},
		{"compact of nothing", "POST", fresh + "/compact", "", nil},
		{"no such entry", "GET", there + "/entries/01ARZ3NDEKTSV4RRFFQ69G5FAV", "", nil},
		{"no such overlay", "POST", there + "/undo", `{"overlay":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}`, nil},
		{"no such archive", "GET", "/v1/agents/main/archives/01ARZ3NDEKTSV4RRFFQ69G5FAV.jsonl.gz", "", nil},
		{"no such file", "GET", "/v1/agents/main/memory/SOUL.md", "", nil},
		{"no memory file", "GET", "/v1/agents/main/memory/secrets.txt", "", nil},
		{"no such agent", "GET", "/v1/agents/nobody/memory", "", nil},
		{"no JSON", "POST", fresh + "/messages", `{`, nil},
		{"no object", "POST", fresh + "/messages", `[1]`, nil},
		{"invalid UTF-8", "POST", fresh + "/messages", "{\"text\":\"\xff\"}", nil},
		{"NUL", "POST", fresh + "/messages", "{\"text\":\"\x00\"}", nil},
		{"deep", "POST", fresh + "/messages", `{"content":` + strings.Repeat("[", 1<<16), nil},
		{"empty text", "POST", fresh + "/messages", `{"text":""}`, nil},
		{"nothing said", "POST", fresh + "/messages", `{}`, nil},
		{"unknown field", "POST", fresh + "/messages", `{"txet":"a"}`, nil},
		{"tool result", "POST", fresh + "/messages", `{"content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}`, nil},
		{"long id", "POST", fresh + "/messages", `{"text":"a","id":"` + strings.Repeat("i", 201) + `"}`, nil},
		{"two ids", "POST", fresh + "/messages", `{"text":"a","id":"a"}`, []string{"Idempotency-Key", "b"}},
		{"bad flag", "POST", fresh + "/messages?wait=maybe", `{"text":"a"}`, nil},
		{"bad key", "POST", "/v1/sessions/a:b/messages", `{"text":"a"}`, nil},
		{"window too small", "PATCH", fresh, `{"window":1}`, nil},
		{"misspelt setting", "PATCH", fresh, `{"windwo":9000}`, nil},
		{"limit", "GET", "/v1/sessions?limit=0", "", nil},
		{"cursor", "GET", "/v1/sessions?cursor=x", "", nil},
		{"bad agent", "GET", "/v1/sessions?agent=A%20b", "", nil},
		{"archive of another agent", "POST", fresh + "/restore", `{"archive":"agents/b/sessions/x.jsonl.gz"}`, nil},
		{"archive outside", "POST", fresh + "/restore", `{"archive":"agents/main/sessions/../x.jsonl.gz"}`, nil},
		{"import of another conversation", "POST", there + "/import?format=jsonl", `{"role":"user","content":"another"}`, nil},
		{"import of nothing", "POST", fresh + "/import", "hello", nil},
		{"recall without a query", "GET", there + "/recall", "", nil},
		{"recall, misspelt", "GET", there + "/recall?qurey=x", "", nil},
		{"recall, no day", "GET", there + "/recall?q=x&since=yesterday", "", nil},
		{"recall, a budget of none", "GET", there + "/recall?q=x&budget=0", "", nil},
		{"recall in many, no such scope", "GET", "/v1/recall?q=x&scope=all", "", nil},
		{"recall in many, misspelt", "GET", "/v1/recall?q=x&sesion=a", "", nil},
		{"search, misspelt", "GET", there + "/search?q=x&lmit=1", "", nil},
		{"archives, misspelt", "GET", "/v1/agents/main/archives?sesion=x", "", nil},
		{"a route without parameters", "GET", "/v1/agents/main/memory/digest?limit=1", "", nil},
		{"internal door", "POST", "/internal/agent/prompt", `{}`, nil},
	}
}

var tooLarge = regexp.MustCompile(`"type":"too_large","message":"body.* of \d+ bytes, at most \d+"`)

// TestErrors: what is refused is refused with the same status and the same words on every target,
// and makes no session.
func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.say("Something is here.")
		fresh := "/v1/sessions/" + url.PathEscape(k.key+"-fresh")
		var b strings.Builder
		for _, row := range refusals(k.path(""), fresh) {
			res, raw := s.fetch(t, row.method, row.path, row.body, row.headers...)
			fmt.Fprintf(&b, "%s: %d %s", row.name, res.StatusCode, plain(raw))
			for _, name := range []string{"Allow", "Www-Authenticate", "Content-Type", "X-Content-Type-Options"} {
				if v := res.Header.Get(name); v != "" {
					fmt.Fprintf(&b, "  %s: %s\n", name, v)
				}
			}
			if res.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s: no X-Request-Id", row.name)
			}
		}
		golden(t, "errors", b.String())
		// How large is too large is the host's to say.
		large := `{"text":"` + strings.Repeat("a", 25<<20) + `"}`
		if status, raw := s.refused(t, fresh+"/messages", large); status != 413 || !tooLarge.MatchString(raw) {
			t.Errorf("too large: %d %.300s", status, raw)
		}
		fix := "TIDEMARK_TOKEN as the server was started with"
		if _, ok := s.target.(*workerd); ok {
			fix = "TIDEMARK_TOKEN as it was deployed, by make deploy from .secrets"
		}
		if _, raw := s.fetch(t, "GET", fresh, nil, "Authorization", ""); !strings.Contains(raw, fix) {
			t.Errorf("the answer does not say %q: %s", fix, raw)
		}
		if res, raw := s.fetch(t, "GET", fresh, nil); res.StatusCode != 404 {
			t.Errorf("what was refused made a session: %s", raw)
		}
	})
}

// TestOpenDoors: what needs no token.
func TestOpenDoors(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		if res, raw := s.fetch(t, "GET", "/healthz", nil, "Authorization", ""); res.StatusCode != 200 || !strings.HasPrefix(raw, `{"ok":true`) {
			t.Errorf("%d %s", res.StatusCode, raw)
		}
		if res, raw := s.fetch(t, "GET", "/", nil, "Authorization", ""); res.StatusCode != 200 || !strings.Contains(raw, "Tidemark") {
			t.Errorf("%d %s", res.StatusCode, raw)
		}
		res, raw := s.fetch(t, "GET", "/v1/agents", nil)
		if res.StatusCode != 200 || !strings.Contains(raw, `{"id":"main"}`) || !strings.Contains(raw, `{"id":"work"}`) {
			t.Errorf("%d %s", res.StatusCode, raw)
		}
		if res, raw := s.fetch(t, "GET", "/metrics", nil); res.StatusCode != 200 || !strings.Contains(raw, "tidemark_") {
			t.Errorf("%d %.300s", res.StatusCode, raw)
		}
	})
}

// refused posts a body that is too large. It is tried once: the answer must not be lost with the connection, so the
// host reads what is left of the body.
func (s *site) refused(t *testing.T, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.base()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}
