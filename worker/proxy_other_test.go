//go:build !js

package worker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestProxyOtherRoutes: a client that was told that its API is here finds all of it; what has no conversation goes on
// as it came, to the API that it is of, and nothing of it is kept.
func TestProxyOtherRoutes(t *testing.T) {
	const told = `{"object":"list","data":[1.50]}`
	p := serveProxy(t, func(_ int, r *http.Request, _ string) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/stream") {
			return answerOf(200, "text/event-stream", "data: 1\n\n", "Request-Id", "req_1")
		}
		return answerOf(418, "application/json", told, "Request-Id", "req_1", "Retry-After", "3")
	}, func(c *worker.Config) {
		of := c.Model
		c.Model = func(ctx context.Context) (worker.Model, error) {
			m, err := of(ctx)
			m.Chat.Key = "sk-ours"
			return m, err
		}
	})
	openAI := []string{"Authorization", "Bearer sk-chat"}
	for _, row := range []struct {
		method, path, body string
		headers            []string
		url, key           string
	}{
		{"GET", "/p/n/v1/models?limit=1&x=%20", "", []string{"X-Api-Key", ownKey}, "http://messages.test/v1/models?limit=1&x=%20", ownKey},
		{"GET", "/p/n/v1/models", "", []string{"Authorization", "Bearer sk-login", "Anthropic-Version", "2023-06-01"}, "http://messages.test/v1/models", "Bearer sk-login"},
		{"GET", "/p/n/v1/models/a%2Fb", "", openAI, "http://chat.test/v1/models/a%2Fb", "Bearer sk-chat"},
		{"GET", "/p/n/v1/models", "", nil, "http://chat.test/v1/models", "Bearer sk-ours"},
		{"POST", "/p/n/v1/embeddings", `{"input":"a"}`, openAI, "http://chat.test/v1/embeddings", "Bearer sk-chat"},
		{"POST", "/p/n/v1/responses/stream", "{}", openAI, "http://chat.test/v1/responses/stream", "Bearer sk-chat"},
		{"GET", "/p/n/v1/chat/completions/c1", "", openAI, "http://chat.test/v1/chat/completions/c1", "Bearer sk-chat"},
		{"POST", "/p/n/v1/messages/batches", `{"requests":[]}`, []string{"Authorization", "Bearer sk-login"}, "http://messages.test/v1/messages/batches", "Bearer sk-login"},
		{"DELETE", "/p/a%2Fb/v1/files/f1", "", []string{"X-Api-Key", ownKey}, "http://messages.test/v1/files/f1", ownKey},
		{"PUT", "/t/" + token + "/p/n/v1/files//f1/", "raw", openAI, "http://chat.test/v1/files/f1/", "Bearer sk-chat"},
		{"GET", "/p/n/v1/messages", "", []string{"X-Api-Key", ownKey}, "http://messages.test/v1/messages", ownKey},
	} {
		t.Run(row.method+" "+row.path, func(t *testing.T) {
			res := p.do(row.method, row.path, row.body, append([]string{"X-Tidemark-Token", token, "X-Tidemark-Proxy", "n", "X-Mine", "kept"}, row.headers...)...)
			body := read(t, res)
			want, status := told, 418
			if strings.HasSuffix(row.path, "/stream") {
				want, status = "data: 1\n\n", 200
			}
			if res.StatusCode != status || body != want || res.Header.Get("Request-Id") != "req_1" || res.Header.Get("X-Tidemark-Session") != "" {
				t.Errorf("%d %s %v", res.StatusCode, body, res.Header)
			}
			asked, bodies := p.up.all()
			if len(asked) == 0 {
				t.Fatal("nothing went on")
			}
			last := asked[len(asked)-1]
			if last.Method != row.method || last.URL.String() != row.url || bodies[len(bodies)-1] != row.body || last.Header.Get("X-Mine") != "kept" {
				t.Errorf("%s %s %q %v", last.Method, last.URL, bodies[len(bodies)-1], last.Header)
			}
			if got := last.Header.Get("X-Api-Key") + last.Header.Get("Authorization"); got != row.key {
				t.Errorf("under %q, want %q", got, row.key)
			}
			if row.body == "" && last.Body != http.NoBody {
				t.Error("without a body it goes on with one")
			}
			for name := range last.Header {
				if strings.HasPrefix(name, "X-Tidemark") {
					t.Errorf("%s goes on", name)
				}
			}
		})
	}
	if keys, _ := p.keys(); len(keys) != 0 {
		t.Errorf("conversations %q", keys)
	}
}

// TestProxyOtherRefused: no path leads elsewhere, and no answer tells the key that a request went on with.
func TestProxyOtherRefused(t *testing.T) {
	p := serveProxy(t, func(int, *http.Request, string) *http.Response { return answerOf(200, "application/json", "{}") }, nil)
	auth := []string{"X-Tidemark-Token", token, "X-Api-Key", ownKey}
	for _, path := range []string{"%2e%2e/v2/x", "a/%2E%2e/%2e./b", "a/..%2f..%2fb", "a%5c..%5cb", "..%5cb", "%252e%252e/b", "a/%252e%252e%252fb", "%2525252e%2525252e/b", "..;x=1/b", "%2e/b",
		"a%00b", "a%0d%0aX:%20y", "%252525252525252e%252525252525252e/b"} {
		if body := p.text(400, "GET", "/p/n/v1/"+path, "", auth...); !strings.Contains(body, `"invalid_request_error"`) {
			t.Errorf("%s: %s", path, body)
		}
		res := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, worker.OnwardPath+"/p/n/v1/"+path, nil)
		worker.OnwardOf(worker.New(worker.Config{Runtime: hosttest.Runtime(t), Network: p.up, Model: func(context.Context) (worker.Model, error) { return worker.Model{}, nil }})).ServeHTTP(res, r)
		if res.Code != 400 {
			t.Errorf("%s by way of the front: %d %s", path, res.Code, res.Body)
		}
	}
	p.text(405, "TRACE", "/p/n/v1/models", "", auth...)
	p.text(401, "GET", "/p/n/v1/models", "", "X-Api-Key", ownKey)
	p.text(404, "GET", "/p/n/v2/models", "", auth...)
	if asked, _ := p.up.all(); len(asked) != 0 {
		t.Errorf("%d went on, first %s", len(asked), asked[0].URL)
	}
	if body := p.text(200, "GET", "/v1/models", "", auth...); !strings.Contains(body, `"tidemark"`) {
		t.Errorf("without a name the models are those of this server: %s", body)
	}
}

// TestProxyRequestID: the id that a front gives a request is ours, and the client's goes on.
func TestProxyRequestID(t *testing.T) {
	p := serveProxy(t, func(int, *http.Request, string) *http.Response { return answerOf(200, "application/json", whole) }, nil)
	for _, row := range []struct{ front, client string }{{"of-the-front", "of-the-client"}, {"of-the-front", ""}, {"", "of-the-client"}, {"", ""}} {
		for _, mode := range []string{"off", "observe"} {
			res := p.ask("/v1/messages", hello, "X-Tidemark-Id", row.front, "X-Request-Id", row.client, "X-Tidemark-Mode", mode)
			read(t, res)
			asked, _ := p.up.all()
			want := row.front
			if want == "" {
				want = row.client
			}
			if got := res.Header.Get("X-Request-Id"); want != "" && got != want || got == "" {
				t.Errorf("%v, %s: the answer is of %q", row, mode, got)
			}
			if got := asked[len(asked)-1].Header.Get("X-Request-Id"); got != row.client {
				t.Errorf("%v, %s: %q goes on", row, mode, got)
			}
		}
	}
}

// TestProxyOddAnswers: what the API answers is not the fault of the request, and an answer without a body is one.
func TestProxyOddAnswers(t *testing.T) {
	for _, row := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"empty", "", 200, ""},
		{"no JSON", "hello?", 200, "hello?"},
		{"over the bound", `{"x":"` + strings.Repeat("x", 33<<20) + `"}`, 502, "its answer could not be read"},
	} {
		for _, mode := range []string{"observe", "page"} {
			p := serveProxy(t, func(int, *http.Request, string) *http.Response { return answerOf(200, "application/json", row.body) }, nil)
			res := p.ask("/v1/messages", fmt.Sprintf(withAct, false), "X-Tidemark-Mode", mode)
			if got := read(t, res); res.StatusCode != row.status || !strings.Contains(got, row.want) || len(got) > 300 {
				t.Errorf("%s, %s: %d %.200s", row.name, mode, res.StatusCode, got)
			}
			if _, quiet := p.keys(); !quiet {
				t.Errorf("%s, %s: the exchange has not ended", row.name, mode)
			}
		}
	}
}

// TestProxyLeftEarly: that a client leaves is nothing that whoever runs this should read of.
func TestProxyLeftEarly(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	p := serveProxy(t, func(int, *http.Request, string) *http.Response { return nil }, func(c *worker.Config) {
		c.Proxies = func(ctx context.Context, _ tidemark.Key) (*proxy.Conversation, error) {
			leave()
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/messages", strings.NewReader(hello))
	r.Header.Set("X-Tidemark-Token", token)
	r.Header.Set("X-Api-Key", ownKey)
	p.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
	if asked, _ := p.up.all(); len(asked) != 0 || strings.Contains(p.log.String(), "level=WARN") || strings.Contains(p.log.String(), "level=ERROR") {
		t.Errorf("%d went on; the log: %s", len(asked), p.log.String())
	}
}
