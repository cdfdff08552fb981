//go:build !js

package worker_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestStateless: what is ordinary in chat completions is answered without a conversation, and what no API takes refused.
func TestStateless(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) {
		c.Model = func(context.Context) (worker.Model, error) {
			return worker.Model{Provider: offline.Model{}, ID: "offline"}, nil
		}
	})
	s.say("agent:work:main", "hello") // so there is an agent work
	const (
		hi     = `{"role":"user","content":"hi"}`
		call   = `{"role":"assistant","tool_calls":[{"id":"call_0","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		result = `{"role":"tool","tool_call_id":"call_0","content":"x"}`
	)
	for _, row := range []struct {
		name, model string
		messages    []string
		status      int
	}{
		{"the system alone", "tidemark", []string{`{"role":"system","content":"Say hello."}`}, 200},
		{"a greeting first", "tidemark", []string{`{"role":"assistant","content":"How can I help?"}`, hi}, 200},
		{"a call id again", "tidemark", []string{hi, call, result, call, result}, 200},
		{"nothing", "tidemark", nil, 400},
		{"a call without its result", "tidemark", []string{hi, call, hi}, 400},
		{"a result without its call", "tidemark", []string{hi, result}, 400},
		{"an agent", "tidemark:work", []string{hi}, 200},
		{"no agent", "tidemark:nope", []string{hi}, 404},
	} {
		t.Run(row.name, func(t *testing.T) {
			res := s.do("POST", "/v1/chat/completions", `{"model":"`+row.model+`","messages":[`+strings.Join(row.messages, ",")+`]}`)
			if raw, err := io.ReadAll(res.Body); res.StatusCode != row.status || err != nil {
				t.Errorf("%d, want %d: %s", res.StatusCode, row.status, raw)
			}
		})
	}
}

// TestMembersGoOn: what nothing here reads of a tool, a picture or a message goes on to an API that may know it, and an
// answer that declined stays an answer.
func TestMembersGoOn(t *testing.T) {
	api := tidemarktest.NewAPI(t)
	s := serve(t, func(c *worker.Config, _ *actors) {
		c.Model = func(context.Context) (worker.Model, error) {
			return worker.Model{Provider: &provider.OpenAI{BaseURL: api.URL + "/v1", Transport: http.DefaultTransport}, ID: "m"}, nil
		}
	})
	res := s.do("POST", "/v1/chat/completions", `{"model":"tidemark","tools":[{"type":"function","function":{"name":"look","strict":true,"x_new":{"a":1.0},"parameters":{"type":"object","properties":{}}}},
		{"type":"function","function":{"name":"plain"}}],"messages":[
		{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://example.org/a.png","detail":"low"}},{"type":"image_url","image_url":{"url":"https://example.org/b.png"}}]},
		{"role":"assistant","content":null,"refusal":"I cannot."},{"role":"user","content":"why?"}]}`)
	if raw, err := io.ReadAll(res.Body); res.StatusCode != 200 || err != nil {
		t.Fatalf("%d: %s", res.StatusCode, raw)
	}
	body := string(api.Calls()[0].Body)
	for _, want := range []string{`"parameters":{"type":"object","properties":{}},"strict":true,"x_new":{"a":1.0}}}`, `{"name":"plain","parameters":{"type":"object","properties":{}}}`,
		`{"url":"https://example.org/a.png","detail":"low"}`, `{"url":"https://example.org/b.png"}`, `{"role":"assistant","content":"I cannot."}`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
}
