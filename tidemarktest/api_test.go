package tidemarktest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// post sends a body and returns status and answer.
func post(t *testing.T, ctx context.Context, url, body string) (int, http.Header, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", "k")
	req.Header.Set("Authorization", "Bearer k")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(text), err
}

func TestAPIRefuses(t *testing.T) {
	marks := strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5)
	for _, c := range []struct {
		name, path, body string
		want             string // in the message; empty: accepted
	}{
		{"string content", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, ""},
		{"no model", "/v1/messages", `{"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, "model"},
		{"no max_tokens", "/v1/messages", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "max_tokens"},
		{"no messages", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[]}`, "no messages"},
		{"orphan result", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}]}`, "answers no call"},
		{"five markers", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[` + strings.TrimSuffix(marks, ",") + `]}]}`, "found 5"},
		{"marked thinking", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"x","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"b"}]}`, "thinking"},
		{"changed thinking", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"other","signature":"` + signature("mine") + `"},{"type":"text","text":"so"}]},{"role":"user","content":"b"}]}`, "signature"},
		{"kept thinking", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"mine","signature":"` + signature("mine") + `"},{"type":"text","text":"so"}]},{"role":"user","content":"b"}]}`, ""},
		{"not JSON", "/v1/messages", `{`, "not valid"},
		{"counting", "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, ""},
		{"chat", "/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]}`, ""},
		{"chat with calls", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"}]}`, ""},
		{"chat with an unanswered call", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"and?"}]}`, "not answered"},
		{"chat with an unknown role", "/v1/chat/completions", `{"model":"m","messages":[{"role":"robot","content":"hi"}]}`, "robot"},
		{"chat with bad arguments", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}]}`, "not JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := NewAPI(t)
			status, h, body, err := post(t, t.Context(), api.URL+c.path, c.body)
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid([]byte(body)) || h.Get("Request-Id") == "" {
				t.Errorf("answer %s, headers %v", body, h)
			}
			if ok := status == 200; ok != (c.want == "") || !ok && (status != 400 || !strings.Contains(body, c.want)) {
				t.Errorf("status %d, body %s, want %q", status, body, c.want)
			}
			if calls := api.Calls(); len(calls) != 1 || string(calls[0].Body) != c.body {
				t.Errorf("recorded %d calls", len(calls))
			}
		})
	}
}

func TestAPIScript(t *testing.T) {
	const ask = `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	api := NewAPI(t)
	api.Respond(func(c APICall) Step { return Step{Text: fmt.Sprintf("call %d says %s", c.N, c.LastText()), Piece: 100} })
	api.Push(Step{Text: "first", Piece: 100}, Step{Status: 429, Header: http.Header{"Retry-After": {"3"}}})
	if _, _, body, err := post(t, t.Context(), api.URL+"/v1/messages", ask); err != nil || !strings.Contains(body, `"text":"first"`) || !strings.HasSuffix(body, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n") {
		t.Errorf("queued: %v\n%s", err, body)
	}
	if status, h, body, err := post(t, t.Context(), api.URL+"/v1/messages", ask); err != nil || status != 429 || h.Get("Retry-After") != "3" || !strings.Contains(body, "rate_limit_error") {
		t.Errorf("failure: %d, %v, %s", status, err, body)
	}
	if _, _, body, err := post(t, t.Context(), api.URL+"/v1/chat/completions", ask); err != nil || !strings.Contains(body, "call 3 says hi") || !strings.HasSuffix(body, "data: [DONE]\n\n") || strings.Contains(body, "prompt_tokens") {
		t.Errorf("function, without usage since it was not asked for: %v\n%s", err, body)
	}
	api.Push(Step{Text: strings.Repeat("long ", 100), Cut: 300})
	if _, _, body, err := post(t, t.Context(), api.URL+"/v1/messages", ask); err == nil || len(body) != 300 {
		t.Errorf("cut: %d bytes, %v", len(body), err)
	}
	gate := make(chan struct{})
	api.Push(Step{Text: "gated", Gate: gate})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		gate <- struct{}{} // only the first event
		cancel()
	}()
	if _, _, _, err := post(t, ctx, api.URL+"/v1/messages", ask); err == nil {
		t.Error("a gated answer came to its end")
	}
	wait, done := context.WithTimeout(t.Context(), Patience)
	defer done()
	if err := api.Idle(wait); err != nil {
		t.Errorf("a client that went away holds its request: %v", err)
	}
}

func TestAPISummary(t *testing.T) {
	api := NewAPI(t)
	body := mustJSON(map[string]any{"model": "m", "max_tokens": 99, "messages": []any{map[string]string{"role": "user",
		"content": "<conversation>\n[user] We use Go.\n[assistant] Fine.\n</conversation>\n\nWrite <summary>…</summary> and <memories>…</memories>"}}})
	_, _, answer, err := post(t, t.Context(), api.URL+"/v1/messages", string(body))
	if err != nil {
		t.Fatal(err)
	}
	var m tidemark.Message
	if err := json.Unmarshal([]byte(answer), &m); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<summary>\n", "- We use Go.", "</summary>", "<memories>\n", "</memories>"} {
		if !strings.Contains(m.PlainText(), want) {
			t.Errorf("the summary lacks %q: %s", want, m.PlainText())
		}
	}
}

// TestAPICloseFreesWhatHangs: a test that fails early must not wait for its server.
func TestAPICloseFreesWhatHangs(t *testing.T) {
	api := NewAPI(t)
	api.Push(Step{Hang: true})
	ended := make(chan error, 1)
	go func() {
		resp, err := http.Post(api.URL+"/v1/chat/completions", "application/json", bytes.NewReader([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)))
		if err == nil {
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	if err := api.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	api.Close()
	<-ended
	api.Close()
}
