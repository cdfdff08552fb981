//go:build !js

package worker_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestProxiedIsPrivate: what a client says by way of the proxy goes into no memory file, and no other conversation is
// told of it or finds it; who asks across all conversations of the agent does.
func TestProxiedIsPrivate(t *testing.T) {
	const secret = "7319-walrus"
	p := serveProxy(t, func(n int, _ *http.Request, _ string) *http.Response {
		return answerOf(200, "application/json", fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"I will remember the code %s."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":5}}`, n, secret))
	}, nil)
	asks := `{"role":"user","content":"Remember that I always want the vault code of the boathouse, ` + secret + `."}`
	answer := `{"role":"assistant","content":[{"type":"text","text":"I will remember the code ` + secret + `."}]}`
	var key string
	for i := range 3 {
		history := strings.Repeat(asks+","+answer+",", i) + asks
		res := p.ask("/p/boat/v1/messages", `{"model":"m","max_tokens":9,"messages":[`+history+`]}`)
		if body := read(t, res); res.StatusCode != 200 {
			t.Fatal(body)
		}
		key = res.Header.Get("X-Tidemark-Session")
	}
	p.settle()
	for range 3 { // what is owed to the agent, and what time brings
		s, err := p.actors.Session(t.Context(), tidemark.Key(key), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.settle()
	}
	get := func(path string) string {
		t.Helper()
		return p.text(200, "GET", path, "", "X-Tidemark-Token", token)
	}
	if got := get("/v1/agents/main/memory"); strings.Contains(got, `"path"`) {
		t.Errorf("memory files: %s", got)
	}
	if got := get("/v1/agents/main/memory-search?q=vault"); strings.Contains(got, secret) {
		t.Errorf("memory has %s", got)
	}
	q := url.QueryEscape("vault code of the boathouse")
	for _, other := range []string{"garden", "agent:main:main"} {
		said := p.text(200, "POST", "/v1/sessions/"+other+"/messages", `{"text":"What is the vault code of the boathouse?"}`, "X-Tidemark-Token", token)
		if strings.Contains(said, secret) {
			t.Errorf("%s was told: %s", other, said)
		}
		if got := get("/v1/sessions/" + other + "/recall?q=" + q); strings.Contains(got, secret) {
			t.Errorf("%s recalls %s", other, got)
		}
		if got := get("/v1/sessions/" + other + "/view"); strings.Contains(got, secret) {
			t.Errorf("%s sees %s", other, got)
		}
	}
	if got := get("/v1/sessions/" + url.PathEscape(key) + "/recall?q=" + q); !strings.Contains(got, secret) {
		t.Errorf("its own conversation recalls %s", got)
	}
	for until := time.Now().Add(tidemarktest.Patience); ; time.Sleep(20 * time.Millisecond) {
		got := get("/v1/recall?scope=agent&q=" + q)
		if strings.Contains(got, secret) {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("across all conversations: %s", got)
		}
	}
}
