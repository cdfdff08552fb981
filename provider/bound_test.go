package provider

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestReplyBound: a model that answers with less than is asked for says so once, and is asked for that much from then on;
// another model of the same endpoint is not.
func TestReplyBound(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		says string
		chat bool
	}{
		{"max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for small", false},
		{"max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.", true},
		{"Invalid max_tokens value, the valid range of max_tokens is [1, 4096]", true},
		{"`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less than the `context_window` for this model", true},
	} {
		var asked []string
		bound := regexp.MustCompile(`"max_tokens":(\d+)`)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			n := bound.FindStringSubmatch(string(body))[1]
			asked = append(asked, n)
			w.Header().Set("Content-Type", "application/json")
			switch small := strings.Contains(string(body), `"model":"small"`); {
			case small && n != "4096":
				w.WriteHeader(http.StatusBadRequest)
				told, err := json.Marshal(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": row.says, "param": "max_tokens"}})
				if err != nil {
					t.Error(err)
				}
				_, _ = w.Write(told)
			case row.chat:
				fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
			default:
				fmt.Fprint(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
			}
		}))
		t.Cleanup(s.Close)
		var p tidemark.Provider = &Anthropic{BaseURL: s.URL, Transport: http.DefaultTransport}
		if row.chat {
			p = &OpenAI{BaseURL: s.URL, Transport: http.DefaultTransport, MaxTokens: 8192}
		}
		for _, model := range []string{"small", "small", "large"} {
			reply, err := tidemark.Complete(t.Context(), p, tidemark.Request{Model: model, Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hello")}})
			if err != nil || reply.Message.PlainText() != "hi" {
				t.Errorf("%s: %s answers %q, %v", row.says, model, reply.Message.PlainText(), err)
			}
		}
		if got := strings.Join(asked, " "); got != "8192 4096 4096 8192" {
			t.Errorf("%s: asked for %s", row.says, got)
		}
	}
}

// TestThinkingWithinBound: who thinks within less than was asked for thinks less, or not at all, and the answer has room.
func TestThinkingWithinBound(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		bound, thinking tidemark.Tokens
		want            string
	}{
		{0, 16000, `"budget_tokens":16000},"max_tokens":24192`},
		{16001, 16000, `"budget_tokens":16000},"max_tokens":16001`},
		{16000, 16000, `"budget_tokens":8000},"max_tokens":16000`},
		{8192, 16000, `"budget_tokens":4096},"max_tokens":8192`},
		{2048, 16000, `"budget_tokens":1024},"max_tokens":2048`},
		{2047, 16000, `}],"max_tokens":2047`},
	} {
		a := &Anthropic{Thinking: row.thinking}
		if row.bound > 0 && !a.bounds.learn("m", 24192, &tidemark.APIError{Class: tidemark.ClassBadRequest,
			Message: fmt.Sprintf("max_tokens: 24192 > %d, which is the maximum allowed number of output tokens for m", row.bound)}) {
			t.Fatal("the bound is not read")
		}
		if body := string(a.body(tidemark.Request{Model: "m", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hello")}})); !strings.Contains(body, row.want) {
			t.Errorf("bound %d: sent %s", row.bound, body)
		}
	}
}

// TestEndOfWindow: an answer that ends where the window does is one that ends at its bound; only without a word it is no answer.
func TestEndOfWindow(t *testing.T) {
	req := tidemark.Request{Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "tell me all")}}
	got, err := complete(req, tidemark.NewText(tidemark.Assistant, "Once upon"), tidemark.Call{Stop: "model_context_window_exceeded"})
	if err != nil || got.Call.Stop != "max_tokens" || got.Message.PlainText() != "Once upon" {
		t.Errorf("%+v, %v", got, err)
	}
	var api *tidemark.APIError
	if _, err := complete(req, tidemark.Message{Role: tidemark.Assistant}, tidemark.Call{Stop: "model_context_window_exceeded"}); !errors.As(err, &api) || api.Class != tidemark.ClassOverflow {
		t.Errorf("without a word: %v", err)
	}
}

// TestToolsBound: where an endpoint says how many tools it takes, that many are sent, at once and from then on, and the rest is
// told; another model has all of them.
func TestToolsBound(t *testing.T) {
	t.Parallel()
	var sent []int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model string            `json:"model"`
			Tools []json.RawMessage `json:"tools"`
		}
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(raw, &body)
		}
		sent = append(sent, len(body.Tools))
		w.Header().Set("Content-Type", "application/json")
		if n := len(body.Tools); err != nil || n > 128 && body.Model == "small" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.","type":"invalid_request_error","param":"tools","code":"array_above_max_length"}}`, n)
			return
		}
		fmt.Fprint(w, `{"id":"x","choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(s.Close)
	o := &OpenAI{BaseURL: s.URL, Transport: http.DefaultTransport}
	req := tidemark.Request{Model: "small", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}}
	for i := range 150 {
		req.Tools = append(req.Tools, tidemark.Tool{Name: fmt.Sprint("t", i), InputSchema: []byte(`{"type":"object"}`)})
	}
	for range 2 {
		reply, err := tidemark.Complete(t.Context(), o, req)
		if err != nil || len(reply.LeftOut) != 22 {
			t.Fatalf("%d are left out, %v", len(reply.LeftOut), err)
		}
	}
	req.Model = "large"
	if reply, err := tidemark.Complete(t.Context(), o, req); err != nil || len(reply.LeftOut) > 0 || !slices.Equal(sent, []int{150, 128, 128, 150}) {
		t.Errorf("sent %v, %d are left out, %v", sent, len(reply.LeftOut), err)
	}
}

// TestRoles: where a model's template knows no system message, in whatever words it says so, the prompt begins the first message
// of a user from then on; where it wants roles to take turns, words behind results of tools end the last result. Another model
// has it as it was, and so has one that took a system message before.
func TestRoles(t *testing.T) {
	t.Parallel()
	const was, folded = "|system:Be short.|user:hi|assistant:|tool:read|user:It is noon.", "|user:Be short.\n\nhi|assistant:|tool:read|user:It is noon."
	const behind, both = "|system:Be short.|user:hi|assistant:|tool:read\n\nIt is noon.", "|user:Be short.\n\nhi|assistant:|tool:read\n\nIt is noon."
	for _, c := range []struct {
		says  string
		takes string
		sent  []string // for two calls
	}{
		{"System role not supported", folded, []string{was, folded, folded}},
		{"Only user and assistant roles are supported!", folded, []string{was, folded, folded}},
		{"Developer instruction is not enabled for models/gemma-3-27b-it", folded, []string{was, folded, folded}},
		{"After the optional system message, conversation roles must alternate user/assistant", behind, []string{was, behind, behind}},
		{"Conversation roles must alternate user/assistant/user/assistant/...", both, []string{was, behind, both, both}},
		{"who are you", folded, []string{was, folded, was, folded}}, // asked once more before it is kept
		{"your words are odd", "", []string{was, folded, was, folded}},
	} {
		var sent []string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Model    string `json:"model"`
				Messages []struct{ Role, Content string }
			}
			raw, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(raw, &body)
			}
			line := ""
			for _, m := range body.Messages {
				line += fmt.Sprintf("|%s:%s", m.Role, m.Content)
			}
			w.Header().Set("Content-Type", "application/json")
			if body.Model == "gemma" {
				sent = append(sent, line)
			}
			if err != nil || body.Model == "gemma" && line != c.takes {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, c.says)
				return
			}
			if body.Model != "gemma" && line != was {
				t.Errorf("%s: another model is sent %q", c.says, line)
			}
			fmt.Fprint(w, `{"id":"x","choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
		}))
		o := &OpenAI{BaseURL: s.URL, Transport: http.DefaultTransport}
		req := tidemark.Request{System: "Be short.", Note: "It is noon.", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi"),
			{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", "read", nil)}},
			{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c", "read", false)}}}}
		for _, req.Model = range []string{"gemma", "large", "gemma", "large"} {
			if _, err := tidemark.Complete(t.Context(), o, req); (err != nil) != (req.Model == "gemma" && c.takes == "") {
				t.Errorf("%s: %v", c.says, err)
			}
		}
		s.Close()
		if !slices.Equal(sent, c.sent) {
			t.Errorf("%s: sent %q, want %q", c.says, sent, c.sent)
		}
	}
}

// TestRolesOfAModelThatWorks: a model that took a system message is not asked without one, whatever it refuses.
func TestRolesOfAModelThatWorks(t *testing.T) {
	t.Parallel()
	api := tidemarktest.NewAPI(t)
	o := &OpenAI{BaseURL: api.URL + "/v1", Transport: http.DefaultTransport}
	req := tidemark.Request{Model: "m", System: "Be short.", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}}
	if _, err := tidemark.Complete(t.Context(), o, req); err != nil {
		t.Fatal(err)
	}
	api.Push(tidemarktest.Step{Status: 400, Message: "odd"})
	if _, err := tidemark.Complete(t.Context(), o, req); err == nil || len(api.Calls()) != 2 {
		t.Errorf("%v after %d calls", err, len(api.Calls()))
	}
}

// TestNoTools: a model that has no tools is offered none from then on, and they are told as left out; another one has all.
func TestNoTools(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"registry.ollama.ai/library/gemma3:12b does not support tools", `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`, "This model does not support function calling"} {
		var sent []string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Model string            `json:"model"`
				Tools []json.RawMessage `json:"tools"`
			}
			raw, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(raw, &body)
			}
			sent = append(sent, fmt.Sprint(body.Model, len(body.Tools)))
			w.Header().Set("Content-Type", "application/json")
			if err != nil || len(body.Tools) > 0 && body.Model == "gemma" {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":{"message":%q,"type":"api_error"}}`, says)
				return
			}
			fmt.Fprint(w, `{"id":"x","choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
		}))
		o := &OpenAI{BaseURL: s.URL, Transport: http.DefaultTransport}
		req := tidemark.Request{System: "Be short.", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}, Tools: []tidemark.Tool{{Name: "a", InputSchema: []byte(`{"type":"object"}`)}, {Name: "b", InputSchema: []byte(`{"type":"object"}`)}}}
		for _, req.Model = range []string{"gemma", "large", "gemma"} {
			reply, err := tidemark.Complete(t.Context(), o, req)
			if err != nil || (len(reply.LeftOut) == 2) != (req.Model == "gemma") {
				t.Errorf("%s: %s goes without %q, %v", says, req.Model, reply.LeftOut, err)
			}
		}
		s.Close()
		if want := []string{"gemma2", "gemma0", "large2", "gemma0"}; !slices.Equal(sent, want) {
			t.Errorf("%s: sent %q, want %q", says, sent, want)
		}
	}
}

// TestRolesAfterAFluke: one refusal of a model's first request says nothing of system messages, and what is known of a model is
// not that of another whose name begins alike.
func TestRolesAfterAFluke(t *testing.T) {
	t.Parallel()
	api := tidemarktest.NewAPI(t)
	o := &OpenAI{BaseURL: api.URL + "/v1", Transport: http.DefaultTransport, MaxTokens: 100}
	api.Push(tidemarktest.Step{Status: 400, Message: "Provider returned error"})
	for _, model := range []string{"m", "m", "m system", "m reply", "m any tool"} {
		req := tidemark.Request{Model: model, System: "Be short.", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}}
		if _, err := tidemark.Complete(t.Context(), o, req); err != nil {
			t.Error(err)
		}
		if calls := api.Calls(); calls[len(calls)-1].System != "Be short." {
			t.Errorf("%s: its system prompt is %q", model, calls[len(calls)-1].System)
		}
	}
}

// TestTwoQuirks: a server that knows neither stream_options nor a system message is sent neither from then on; of what did not
// help nothing is kept.
func TestTwoQuirks(t *testing.T) {
	t.Parallel()
	api := tidemarktest.NewAPI(t)
	o := &OpenAI{BaseURL: api.URL + "/v1", Transport: http.DefaultTransport}
	req := tidemark.Request{Model: "m", System: "Be short.", Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}}
	api.Push(tidemarktest.Step{Status: 400, Message: "Unrecognized request argument supplied: stream_options"}, tidemarktest.Step{Status: 400, Message: "System role not supported"})
	for range 2 {
		if _, err := tidemark.Complete(t.Context(), o, req); err != nil {
			t.Fatal(err)
		}
	}
	last := api.Calls()[len(api.Calls())-1]
	if len(api.Calls()) != 4 || last.System != "" || strings.Contains(string(last.Body), "stream_options") {
		t.Errorf("%d calls, the last %s", len(api.Calls()), last.Body)
	}
	req.Model = "n"
	for range 3 {
		api.Push(tidemarktest.Step{Status: 400, Message: "Conversation roles must alternate"})
	}
	if _, err := tidemark.Complete(t.Context(), o, req); err == nil || o.bounds.lacks("n", quirkSystem) || o.bounds.lacks("n", quirkAlternate) {
		t.Errorf("%v: what did not help is kept", err)
	}
}
