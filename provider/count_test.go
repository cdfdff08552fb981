package provider_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/provider/offline"
)

// trip is a transport of one answer, which keeps what was asked.
type trip struct {
	status int
	answer string
	path   string
	body   []byte
	asked  int
}

func (c *trip) RoundTrip(req *http.Request) (*http.Response, error) {
	c.asked++
	c.path = req.URL.Path
	var err error
	if c.body, err = io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(c.answer))}, nil
}

// TestCount: what is counted is what would be sent, without what the endpoint refuses, and it is asked once, whatever it
// answers.
func TestCount(t *testing.T) {
	req := tidemark.Request{Model: "m", System: "be short", Tools: []tidemark.Tool{{Name: "look"}}, MaxTokens: 5,
		Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "how long is this?")}, Note: "[It is late.]"}
	for _, row := range []struct {
		name, answer string
		status       int
		want         tidemark.Tokens
		fails        string
	}{
		{"counted", `{"input_tokens":4321}`, 200, 4321, ""},
		{"refused", `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, 429, 0, "slow down"},
		{"nothing", `{}`, 200, 0, "input_tokens"},
		{"no JSON", `<html>`, 200, 0, "input_tokens"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &trip{status: row.status, answer: row.answer}
			p := &provider.Retry{Provider: &provider.Anthropic{Transport: c, Thinking: 2000}}
			n, err := p.Count(t.Context(), req)
			if n != row.want || (err == nil) != (row.fails == "") || err != nil && !strings.Contains(err.Error(), row.fails) {
				t.Errorf("%d, %v", n, err)
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(c.body, &fields); err != nil {
				t.Fatalf("body %s: %v", c.body, err)
			}
			for _, f := range []string{"stream", "max_tokens"} {
				if _, ok := fields[f]; ok {
					t.Errorf("%s is sent: %s", f, c.body)
				}
			}
			for _, part := range []string{"be short", "look", "how long is this?", "[It is late.]", `"budget_tokens":2000`, `"model":"m"`} {
				if !strings.Contains(string(c.body), part) {
					t.Errorf("%s is not sent: %s", part, c.body)
				}
			}
			if c.asked != 1 || c.path != "/v1/messages/count_tokens" {
				t.Errorf("asked %d times, at %s", c.asked, c.path)
			}
		})
	}
	if _, err := (&provider.Retry{Provider: offline.Model{}}).Count(t.Context(), req); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("one that does not count: %v", err)
	}
}
