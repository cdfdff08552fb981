package provider

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// mustMessage decodes a message.
func mustMessage(t testing.TB, s string) tidemark.Message {
	t.Helper()
	var m tidemark.Message
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// sample is a request with all that a provider must convert.
func sample(t testing.TB) tidemark.Request {
	return tidemark.Request{
		Model: "m", System: "Be <brief> & kind.", Note: "It is noon.", MaxTokens: 100,
		Tools: []tidemark.Tool{
			{Name: "look", Description: "Looks.", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number","default":1.0}}}`)},
			{Name: "now"},
		},
		Messages: []tidemark.Message{
			mustMessage(t, `{"role":"user","content":"a \"plain\" string"}`),
			mustMessage(t, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type": "text", "text": "Both.", "x_new": 1.0},{"type":"tool_use","id":"c1","name":"look","input":{"b":1.0,"a":1e3}},{"type":"tool_use","id":"c2","name":"look","input":{}}]}`),
			mustMessage(t, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"seen","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]},{"type":"tool_result","tool_use_id":"c2","is_error":true,"content":"no such thing"}]}`),
			mustMessage(t, `{"role":"assistant","content":[{"type":"redacted_thinking","data":"zzz"},{"type":"tool_use","id":"c3","name":"now","input":{}}]}`),
			mustMessage(t, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c3"},{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"document","title":"notes","source":{"type":"text","media_type":"text/plain","data":"line"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},{"type":"text","text":"and now?","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`),
		},
	}
}

func TestGoldenRequests(t *testing.T) {
	workersai := func(how attempt) []byte {
		body, _ := (&WorkersAI{}).body(sample(t), how)
		return body
	}
	coloured := tidemark.Request{Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}, Options: []tidemark.Option{
		{Name: "seed", Value: json.RawMessage(`7`)}, {Name: "stop", Value: json.RawMessage(`"END"`)}, {Name: "temperature", Value: json.RawMessage(`0.20`)},
		{Name: "response_format", Value: json.RawMessage(`{"type":"json_object"}`)}, {Name: "n", Value: json.RawMessage(`2`)},
	}}
	workersaiOptions, _ := (&WorkersAI{Model: "d"}).body(coloured, attempt{stream: true})
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"openai_options", (&OpenAI{Model: "d"}).body(coloured, true)},
		{"workersai_options", workersaiOptions},
		{"anthropic_options", (&Anthropic{Model: "d"}).body(coloured)},
		{"anthropic_options_thinking", (&Anthropic{Model: "d", Thinking: 2000}).body(coloured)},
		{"workersai", workersai(attempt{stream: true, images: true})},
		{"workersai_plain", workersai(attempt{})},
		{"anthropic", (&Anthropic{}).body(sample(t))},
		{"anthropic_thinking", (&Anthropic{Model: "d", Thinking: 2000, MaxTokens: 50}).body(tidemark.Request{Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}})},
		{"openai", (&OpenAI{}).body(sample(t), true)},
		{"openai_compatible", (&OpenAI{BaseURL: "http://127.0.0.1:11434/v1", Model: "d", MaxTokens: 50}).body(tidemark.Request{Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "hi")}}, false)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !json.Valid(c.body) {
				t.Fatalf("not JSON: %s", c.body)
			}
			golden(t, "testdata/request/"+c.name+".json", append(c.body, '\n'))
		})
	}
}

// TestUntouchedBytes holds the promise that blocks go out as they came, but for markers.
func TestUntouchedBytes(t *testing.T) {
	req := sample(t)
	body := string((&Anthropic{}).body(req))
	for _, want := range []string{
		`{"type":"thinking","thinking":"hm","signature":"s"}`,
		`{"type": "text", "text": "Both.", "x_new": 1.0}`,
		`{"type":"tool_use","id":"c1","name":"look","input":{"b":1.0,"a":1e3}}`,
		`{"type":"redacted_thinking","data":"zzz"}`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("changed on its way: %s\nin %s", want, body)
		}
	}
	if n := strings.Count(body, "cache_control"); n != 4 {
		t.Errorf("%d markers, want 4: those that came with the messages go", n)
	}
}

var markerRE = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)

// TestMarkersOnlyMoveForward sends a growing conversation: up to the last marker of a call, the
// bytes of the next call are the same, markers apart; and no call has more than four.
func TestMarkersOnlyMoveForward(t *testing.T) {
	a := &Anthropic{}
	req := sample(t)
	req.Messages = req.Messages[:1]
	for i, m := range growth(t, 30) {
		if m.Role == tidemark.User && i > 0 {
			req.Note = strings.Repeat("tick ", i) // changes with each call and must not matter
		}
		if i > 0 {
			req.Messages = append(req.Messages, m)
		}
		if m.Role != tidemark.User {
			continue
		}
		body := a.body(req)
		if n := len(markerRE.FindAll(body, -1)); n > 4 || i > 2 && n != 4 {
			t.Fatalf("call %d has %d markers", i, n)
		}
		spots := markerRE.FindAllIndex(body, -1)
		prefix := markerRE.ReplaceAll(body[:spots[len(spots)-1][0]], nil)
		next := req
		next.Note = "something else"
		next.Messages = append(append([]tidemark.Message(nil), req.Messages...), tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("ok")}}, tidemark.NewText(tidemark.User, "more"))
		nextBody := a.body(next)
		if !bytes.HasPrefix(markerRE.ReplaceAll(nextBody, nil), prefix) {
			t.Fatalf("call %d: the next call changes what was cached\n%s\n%s", i, prefix, nextBody)
		}
		before := markerRE.FindAllIndex(nextBody, -1)
		if at := before[len(before)-2][0]; len(markerRE.ReplaceAll(nextBody[:at], nil)) != len(prefix) {
			t.Fatalf("call %d: the next call has no marker where this one had its last", i)
		}
	}
}

// growth is a conversation of n rounds: text, parallel calls, thinking, several user messages.
func growth(t testing.TB, n int) []tidemark.Message {
	t.Helper()
	out := []tidemark.Message{tidemark.NewText(tidemark.User, "begin")}
	for i := range n {
		id := strings.Repeat("i", i+1)
		switch i % 3 {
		case 0:
			out = append(out, tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("t" + id)}}, tidemark.NewText(tidemark.User, "go "+id))
		case 1:
			reply := tidemark.Message{Role: tidemark.Assistant}
			results := tidemark.Message{Role: tidemark.User}
			for k := range 15 { // more blocks in a round than the API looks back
				call := id + "_" + strings.Repeat("k", k)
				reply.Content = append(reply.Content, tidemark.ToolUse(call, "look", nil))
				results.Content = append(results.Content, tidemark.ToolResult(call, "r", false))
			}
			out = append(out, reply, results)
		case 2:
			out = append(out, mustMessage(t, `{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":""},{"type":"text","text":"b"}]}`),
				tidemark.NewText(tidemark.User, "one "+id))
		}
	}
	return out
}

// TestPrefixIsCached lets the fake server account the caching: after the first call, each call
// reads from the cache what the call before it had sent.
func TestPrefixIsCached(t *testing.T) {
	api := tidemarktest.NewAPI(t)
	a := &Anthropic{BaseURL: api.URL, Transport: http.DefaultTransport, Model: "m"}
	req := tidemark.Request{System: strings.Repeat("Be kind. ", 50), Tools: sample(t).Tools}
	sent := tidemark.Tokens(0)
	for i, m := range growth(t, 12) {
		req.Messages = append(req.Messages, m)
		if m.Role != tidemark.User {
			continue
		}
		req.Note = strings.Repeat("now ", i)
		reply, err := tidemark.Complete(t.Context(), a, req)
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		u := reply.Call.Usage
		if i > 0 && u.CacheRead*100 < sent*95 {
			t.Errorf("call %d reads %d tokens from the cache, the call before left %d there: %+v", i, u.CacheRead, sent, u)
		}
		sent = u.CacheRead + u.CacheCreation
	}
}
