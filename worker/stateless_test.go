//go:build !js

package worker_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestStateless: what is ordinary in chat completions is answered without a conversation, and what no API takes refused.
func TestStateless(t *testing.T) {
	s := serve(t, func(c *worker.Config, _ *actors) {
		c.Model = func(context.Context) (worker.Model, error) {
			return worker.Model{Provider: provider.Offline{}, ID: "offline"}, nil
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
