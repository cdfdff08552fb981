//go:build !js

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/worker"
)

// upstream is the network behind a door: an API that says what a test tells it to.
type upstream struct {
	mu     sync.Mutex // guards the following
	asked  []*http.Request
	bodies []string

	answer func(n int, r *http.Request, body string) *http.Response // to the nth request, from 0
}

// RoundTrip implements http.RoundTripper.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	n := len(u.asked)
	u.asked, u.bodies = append(u.asked, r.Clone(context.Background())), append(u.bodies, string(raw))
	u.mu.Unlock()
	res := u.answer(n, r, string(raw))
	if res == nil {
		return nil, errors.New("connection refused")
	}
	res.Request, res.ContentLength = r, -1
	return res, nil
}

func (u *upstream) all() ([]*http.Request, []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asked, u.bodies
}

// answerOf is an answer of an API; headers come in pairs.
func answerOf(status int, media, body string, headers ...string) *http.Response {
	h := http.Header{"Content-Type": {media}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

const (
	ownKey  = "sk-own"
	token   = "secret-token"
	hello   = `{"model":"m","max_tokens":9,"metadata":{"user_id":"u1"},"messages":[{"role":"user","content":"hi"}]}`
	withAct = `{"model":"m","max_tokens":9,"stream":%t,"metadata":{"user_id":"u1"},"tools":[{"name":"Read","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"}]}`
	whole   = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`
	release = `{"id":"msg_0","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"memory_release","input":{"paths":["a.go"]}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`
)

// events is a stream of the Messages API with one block.
func events(block, delta, stop string) string {
	return `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":` + block + `}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":` + delta + `}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"` + stop + `","stop_sequence":null},"usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop"}

`
}

func helloEvents() string {
	return events(`{"type":"text","text":""}`, `{"type":"text_delta","text":"Hello."}`, "end_turn")
}

func releaseEvents() string {
	return events(`{"type":"tool_use","id":"toolu_1","name":"memory_release","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"paths\":[\"a.go\"]}"}`, "tool_use")
}

// proxied is a server behind which there is an API.
type proxied struct {
	*server
	up    *upstream
	mu    sync.Mutex // guards the following
	convs map[tidemark.Key]*proxy.Conversation
	fail  error // of finding a conversation
}

func serveProxy(t *testing.T, answer func(n int, r *http.Request, body string) *http.Response, change func(*worker.Config)) *proxied {
	p := &proxied{up: &upstream{answer: answer}, convs: map[tidemark.Key]*proxy.Conversation{}}
	p.server = serve(t, func(c *worker.Config, a *actors) {
		c.Token, c.Network = token, p.up
		c.Model = func(context.Context) (worker.Model, error) {
			return worker.Model{Messages: worker.Upstream{Base: "http://messages.test"}, Chat: worker.Upstream{Base: "http://chat.test/v1"}, Treatment: proxy.Page}, nil
		}
		c.Proxies = func(ctx context.Context, key tidemark.Key) (*proxy.Conversation, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if c := p.convs[key]; c != nil || p.fail != nil {
				return c, p.fail
			}
			s, err := a.Session(ctx, key, true)
			if err != nil {
				return nil, err
			}
			home, err := setup.Home(ctx, s)
			if err != nil {
				return nil, err
			}
			conv, err := proxy.Open(ctx, proxy.Config{Key: key, DB: a.db, Home: a.metrics.Home(home), Runtime: a.rt})
			p.convs[key] = conv
			return conv, err
		}
		if change != nil {
			change(c)
		}
	})
	return p
}

// keys lists the conversations that there are.
func (p *proxied) keys() (keys []tidemark.Key, quiet bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	quiet = true
	for key, c := range p.convs {
		keys, quiet = append(keys, key), quiet && c.Idle()
	}
	return keys, quiet
}

// ask sends a request with a key of the client's own.
func (p *proxied) ask(path, body string, headers ...string) *http.Response {
	p.t.Helper()
	return p.do("POST", path, body, append([]string{"X-Tidemark-Token", token, "X-Api-Key", ownKey}, headers...)...)
}

func read(t *testing.T, res *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestProxyModes: a request says what is done with it.
func TestProxyModes(t *testing.T) {
	p := serveProxy(t, func(int, *http.Request, string) *http.Response {
		return answerOf(200, "application/json", whole, "Request-Id", "req_1")
	}, nil)
	for _, row := range []struct {
		mode string
		kept bool
	}{{"off", false}, {"observe", true}, {"", true}, {"trim", true}, {"page", true}, {"page+trim", true}, {"episodes", true}, {"episodes+trim", true}} {
		t.Run("mode "+row.mode, func(t *testing.T) {
			res := p.ask("/v1/messages?beta=true", hello, "X-Tidemark-Mode", row.mode, "Anthropic-Beta", "b1")
			body := read(t, res)
			if res.StatusCode != 200 || res.Header.Get("Request-Id") != "req_1" || (res.Header.Get("X-Tidemark-Session") != "") != row.kept {
				t.Errorf("%d %v", res.StatusCode, res.Header)
			}
			if body != whole {
				t.Errorf("%s, want %s", body, whole)
			}
			asked, bodies := p.up.all()
			last := asked[len(asked)-1]
			if last.URL.String() != "http://messages.test/v1/messages?beta=true" || last.Header.Get("X-Api-Key") != ownKey || last.Header.Get("Anthropic-Beta") != "b1" || last.Header.Get("X-Tidemark-Token") != "" {
				t.Errorf("%s %v", last.URL, last.Header)
			}
			if got := bodies[len(bodies)-1]; got != hello {
				t.Errorf("it goes on as %s", got)
			}
		})
	}
	raw := p.text(400, "POST", "/v1/messages", hello, "X-Tidemark-Token", token, "X-Api-Key", ownKey, "X-Tidemark-Mode", "fast")
	if !strings.Contains(raw, "off, page, page+trim, trim") && !strings.Contains(raw, "observe, off") {
		t.Errorf("the values are not named: %s", raw)
	}
	if keys, quiet := p.keys(); len(keys) != 1 || !quiet {
		t.Errorf("conversations %q, quiet %t", keys, quiet)
	}
	text := p.text(200, "GET", "/metrics", "", "X-Tidemark-Token", token)
	for _, want := range []string{`tidemark_proxy_requests_total{treatment="off"} 1`, `tidemark_proxy_requests_total{treatment="page"} 2`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(p.log.String(), ownKey) {
		t.Error("a key is in the log")
	}
}

// TestProxyFaces: which requests go on, under which key, and as whose conversation.
func TestProxyFaces(t *testing.T) {
	const chat = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	own := map[string]string{"messages": "", "chat": ""}
	p := serveProxy(t, func(_ int, r *http.Request, _ string) *http.Response {
		if r.URL.Host == "chat.test" {
			return answerOf(200, "application/json", `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		}
		return answerOf(200, "application/json", whole)
	}, func(c *worker.Config) {
		c.Model = func(context.Context) (worker.Model, error) {
			return worker.Model{Messages: worker.Upstream{Base: "http://messages.test/", Key: own["messages"]}, Chat: worker.Upstream{Base: "http://chat.test/v1", Key: own["chat"]}, Treatment: proxy.Page}, nil
		}
	})
	for _, row := range []struct {
		name, path, body string
		ours             string
		headers          []string
		status           int
		url, key, auth   string // upstream; no url: nothing goes on
	}{
		{"no key", "/v1/messages", hello, "", []string{"X-Api-Key", token}, 401, "", "", ""},
		{"our key", "/v1/messages", hello, "sk-ours", []string{"X-Api-Key", token}, 200, "http://messages.test/v1/messages", "sk-ours", ""},
		{"a subscription", "/v1/messages", hello, "sk-ours", []string{"Authorization", "Bearer oauth", "X-Tidemark-Token", token}, 200, "http://messages.test/v1/messages", "", "Bearer oauth"},
		{"by path", "/t/" + token + "/p/garden/v1/messages", hello, "", []string{"X-Api-Key", ownKey}, 200, "http://messages.test/v1/messages", ownKey, ""},
		{"the size", "/p/garden/v1/messages/count_tokens", hello, "", []string{"X-Api-Key", ownKey, "X-Tidemark-Token", token}, 200, "http://messages.test/v1/messages/count_tokens", ownKey, ""},
		{"chat with a key of its own", "/v1/chat/completions", chat, "", []string{"Authorization", "Bearer sk-chat", "X-Tidemark-Token", token}, 200, "http://chat.test/v1/chat/completions", "", "Bearer sk-chat"},
		{"chat that says so, our key", "/v1/chat/completions", chat, "sk-ours", []string{"Authorization", "Bearer " + token, "X-Tidemark-Mode", "observe"}, 200, "http://chat.test/v1/chat/completions", "", "Bearer sk-ours"},
		{"chat that says so, to a model of one's own", "/v1/chat/completions", chat, "", []string{"Authorization", "Bearer " + token, "X-Tidemark-Mode", "off"}, 200, "http://chat.test/v1/chat/completions", "", ""},
		{"chat by path", "/t/" + token + "/p/garden/v1/chat/completions", chat, "", []string{"Authorization", "Bearer sk-chat"}, 200, "http://chat.test/v1/chat/completions", "", "Bearer sk-chat"},
		{"a session", "/v1/messages", hello, "", []string{"X-Api-Key", ownKey, "X-Tidemark-Token", token, "X-Tidemark-Session", "garden"}, 200, "", "", ""},
		{"chat with a user", "/v1/chat/completions", `{"user":"anna","messages":[{"role":"user","content":"hi"}]}`, "", []string{"Authorization", "Bearer sk-chat", "X-Tidemark-Token", token}, 200, "", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			own["messages"], own["chat"] = row.ours, row.ours
			before, _ := p.up.all()
			res := p.do("POST", row.path, row.body, row.headers...)
			body := read(t, res)
			asked, _ := p.up.all()
			if asked = asked[len(before):]; res.StatusCode != row.status || len(asked) != min(1, len(row.url)) {
				t.Fatalf("%d, %d went on: %s", res.StatusCode, len(asked), body)
			}
			for _, r := range asked {
				if r.URL.String() != row.url || r.Header.Get("X-Api-Key") != row.key || r.Header.Get("Authorization") != row.auth {
					t.Errorf("%s %v", r.URL, r.Header)
				}
			}
		})
	}
	if keys, _ := p.keys(); len(keys) != 6 { // each name under each key is one
		t.Errorf("%d conversations: %q", len(keys), keys)
	}
}

// TestProxyRefused: what an API refuses before the first byte comes back as it is, so that the client knows what to do.
func TestProxyRefused(t *testing.T) {
	for _, mode := range []string{"off", "observe", "page"} {
		for status, kind := range map[int]string{400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"} {
			t.Run(fmt.Sprint(mode, status), func(t *testing.T) {
				told := `{"type":"error", "error":{"type":"` + kind + `","message":"No."}}`
				p := serveProxy(t, func(int, *http.Request, string) *http.Response {
					return answerOf(status, "application/json", told, "Retry-After", "7", "Anthropic-Ratelimit-Requests-Remaining", "0", "X-Should-Retry", "true", "Content-Length", fmt.Sprint(len(told)))
				}, nil)
				res := p.ask("/v1/messages", fmt.Sprintf(withAct, true), "X-Tidemark-Mode", mode)
				if got := read(t, res); res.StatusCode != status || got != told {
					t.Errorf("%d %s", res.StatusCode, got)
				}
				for name, want := range map[string]string{"Retry-After": "7", "Anthropic-Ratelimit-Requests-Remaining": "0", "X-Should-Retry": "true", "Content-Length": fmt.Sprint(len(told))} {
					if got := res.Header.Get(name); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
				if why := res.Header.Get("X-Tidemark-Untouched"); why != "" { // as the client sent it, it was refused too
					t.Errorf("told as passed on untouched: %s", why)
				}
				if _, quiet := p.keys(); !quiet {
					t.Error("the exchange has not ended")
				}
			})
		}
	}
	p := serveProxy(t, func(int, *http.Request, string) *http.Response { return nil }, nil)
	if res := p.ask("/v1/messages", hello); res.StatusCode != http.StatusBadGateway || strings.Contains(read(t, res), "refused") {
		t.Errorf("no network: %d", res.StatusCode)
	}
	if _, quiet := p.keys(); !quiet {
		t.Error("the exchange has not ended")
	}
}

// TestProxyAsItCame: what goes wrong on this side is no matter of the client's.
func TestProxyAsItCame(t *testing.T) {
	p := serveProxy(t, func(int, *http.Request, string) *http.Response {
		return answerOf(200, "application/json", whole)
	}, func(c *worker.Config) { c.MaxBody = 64 << 10 })
	p.fail = fmt.Errorf("the database is busy: %w", tidemark.ErrBusy)
	for _, row := range []struct{ name, body, why string }{
		{"no conversation", hello, "store: "},
		{"no JSON", "hello?", "unreadable: the body is no JSON object with messages"},
		{"no messages", `{"metadata":{"user_id":"u1"}}`, "store: "},
		{"a body over the bound", strings.Repeat(" ", 65<<10) + hello, "too_large: the body has more than the 65536 bytes"},
		{"a body of no known length", "", "too_large: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			body := io.Reader(strings.NewReader(row.body))
			if row.body == "" {
				row.body = strings.Repeat(" ", 200<<10)
				body = io.MultiReader(strings.NewReader(row.body))
			}
			req, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/v1/messages", body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Tidemark-Token", token)
			req.Header.Set("X-Api-Key", ownKey)
			res, err := p.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if got := read(t, res); res.StatusCode != 200 || got != whole {
				t.Errorf("%d %s", res.StatusCode, got)
			}
			if _, bodies := p.up.all(); bodies[len(bodies)-1] != row.body {
				t.Errorf("%d bytes go on, want %d", len(bodies[len(bodies)-1]), len(row.body))
			}
			if got := res.Header.Get("X-Tidemark-Untouched"); !strings.HasPrefix(got, row.why) {
				t.Errorf("untouched since %q, want %q", got, row.why)
			}
		})
	}
}

// TestProxyUnkept: a host that keeps no conversations says so.
func TestProxyUnkept(t *testing.T) {
	p := serveProxy(t, func(int, *http.Request, string) *http.Response {
		return answerOf(200, "application/json", whole)
	}, func(c *worker.Config) { c.Proxies = nil })
	res := p.ask("/v1/messages", hello)
	if got := read(t, res); got != whole || res.Header.Get("X-Tidemark-Untouched") != "other: this host keeps no conversations" {
		t.Errorf("%q: %s", res.Header.Get("X-Tidemark-Untouched"), got)
	}
}

// TestProxyTold: that a request was not treated is told to its client, to who counts and to who watches; what nobody here
// knows is treated all the same.
func TestProxyTold(t *testing.T) {
	refuses := false
	p := serveProxy(t, func(_ int, _ *http.Request, body string) *http.Response {
		if refuses && strings.Contains(body, "memory_") {
			return answerOf(400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"No."}}`)
		}
		return answerOf(200, "application/json", whole)
	}, nil)
	known := []string{"X-Tidemark-Token", token}
	if raw := p.text(200, "GET", "/healthz", "", known...); strings.Contains(raw, "proxy") {
		t.Errorf("before anything came: %s", raw)
	}
	const head = `{"model":"m","max_tokens":9,"container":{"id":"c"},"mcp_servers":[{"url":"u"}],"context_management":{"edits":[]},"output_config":{"effort":"high"},"tools":[{"name":"Read","input_schema":{"type":"object"}},{"type":"mcp_toolset"}],"metadata":{"user_id":"u1"},"messages":[`
	for _, row := range []struct {
		name, messages, mode string
		refuses              bool
		why                  string
	}{
		{"what nobody here knows", `{"role":"user","content":"hi"},{"role":"system","content":"Be short."}`, "page", false, ""},
		{"a role that stands twice", `{"role":"user","content":"hi"},{"role":"user","role":"user","content":"hi"}`, "page", false, "unreadable: message 2 cannot be read: the key role stands twice"},
		{"that, off", `{"role":"user","role":"user","content":"hi"}`, "off", false, ""},
		{"refused with our edits", `{"role":"user","content":"other"}`, "page", true, "refused: the API refused the edited request"},
	} {
		t.Run(row.name, func(t *testing.T) {
			refuses = row.refuses
			res := p.ask("/v1/messages", head+row.messages+"]}", "X-Tidemark-Mode", row.mode, "Anthropic-Beta", "never-heard-of-2031-01-01", "X-Odd", "1")
			if got := read(t, res); res.StatusCode != 200 || got != whole {
				t.Errorf("%d %s", res.StatusCode, got)
			}
			if got := res.Header.Get("X-Tidemark-Untouched"); (got == "") != (row.why == "") || !strings.HasPrefix(got, row.why) {
				t.Errorf("untouched since %q, want %q", got, row.why)
			}
			asked, bodies := p.up.all()
			last := asked[len(asked)-1].Header
			if last.Get("Anthropic-Beta") != "never-heard-of-2031-01-01" || last.Get("X-Odd") != "1" {
				t.Errorf("what it says of itself does not go on: %v", last)
			}
			if treated := strings.Contains(bodies[len(bodies)-1], "memory_release"); treated != (row.why == "" && row.mode == "page") {
				t.Errorf("it went out as %s", bodies[len(bodies)-1])
			}
		})
	}
	text := p.text(200, "GET", "/metrics", "", known...)
	for _, want := range []string{`tidemark_proxy_untouched_total{reason="unreadable"} 1`, `tidemark_proxy_untouched_total{reason="refused"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	raw := p.text(200, "GET", "/healthz", "", known...)
	for _, want := range []string{`"proxy":{"requests":3,"untouched":2,"why":"the API refused the edited request"}`, "of 3 proxied requests 2 were passed on untouched; the latest because: the API refused"} {
		if !strings.Contains(raw, want) {
			t.Errorf("health lacks %s: %s", want, raw)
		}
	}
	keys, _ := p.keys()
	if len(keys) != 1 {
		t.Fatalf("conversations %q", keys)
	}
	if raw := p.text(200, "GET", "/v1/sessions/"+string(keys[0])+"/anatomy", "", known...); !strings.Contains(raw, "message 2 cannot be read") {
		t.Errorf("its records do not tell: %s", raw)
	}
}

// TestProxyPatience: a large body waits for others to leave memory.
func TestProxyPatience(t *testing.T) {
	var mu sync.Mutex
	refused, held, taken := 3, int64(0), []int64(nil)
	p := serveProxy(t, func(int, *http.Request, string) *http.Response { return answerOf(200, "application/json", whole) }, func(c *worker.Config) {
		c.Admit = func(n int64) (func(), bool) {
			mu.Lock()
			defer mu.Unlock()
			if refused--; refused >= 0 {
				return nil, false
			}
			held, taken = held+n, append(taken, n)
			return func() { mu.Lock(); held -= n; mu.Unlock() }, true
		}
	})
	res := p.ask("/v1/messages", strings.Repeat(" ", 2<<20)+hello)
	if got := read(t, res); res.StatusCode != 200 || got != whole {
		t.Errorf("%d %s", res.StatusCode, got)
	}
	for end := time.Now().Add(tidemarktest.Patience); time.Now().Before(end); { // the server ends a little behind its client
		mu.Lock()
		ended := refused < 0 && held == 0 && len(taken) == 2 && taken[1]*3 <= taken[0] // what is kept while the answer comes
		mu.Unlock()
		if ended {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("refused %d, held %d of %d", refused, held, taken)
}
