package provider

import (
	"context"
	"fmt"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// countFirst is the longest wait for a count: who asks has an estimate, and somebody waits for an answer.
const countFirst = 10 * time.Second

var (
	_ tidemark.Counter = (*Anthropic)(nil)
	_ tidemark.Counter = (*Retry)(nil)
)

// Count asks for the input tokens of a request (https://docs.anthropic.com/en/api/messages-count-tokens).
func (a *Anthropic) Count(ctx context.Context, req tidemark.Request) (tidemark.Tokens, error) {
	c := a.call()
	c.url += "/count_tokens"
	c.header.Set("Accept", "application/json")
	c.first = min(c.first, countFirst)
	req = a.valid(req).Request
	b := append(make([]byte, 0, 4096), `{"model":`...)
	b = json.AppendString(b, or(req.Model, a.Model))
	b = appendPrompt(b, req)
	if a.Thinking > 0 {
		b = a.appendThinking(b, req)
	}
	ans, err := c.do(ctx, append(b, '}'))
	if err != nil {
		return 0, fmt.Errorf("count tokens: %w", err)
	}
	defer ans.end()
	data, err := ans.all()
	if err != nil {
		return 0, fmt.Errorf("count tokens: %w", ans.fault(err))
	}
	var out struct {
		Tokens looseInt `json:"input_tokens"`
	}
	if err := json.Unmarshal(data, &out); err != nil || out.Tokens.n <= 0 {
		return 0, fmt.Errorf("count tokens: %w", &tidemark.APIError{Class: tidemark.ClassNetwork, Message: "the answer has no input_tokens"})
	}
	return out.Tokens.tokens(), nil
}

// Count asks the provider once: who wants a count has an estimate, and need not wait for another try.
func (r *Retry) Count(ctx context.Context, req tidemark.Request) (tidemark.Tokens, error) {
	c, ok := r.Provider.(tidemark.Counter)
	if !ok {
		return 0, fmt.Errorf("this provider does not count tokens: %w", tidemark.ErrInvalid)
	}
	if r.Runtime == nil {
		return c.Count(ctx, req)
	}
	inner, stop := r.Runtime.WithTimeout(ctx, countFirst)
	defer stop()
	n, err := c.Count(inner, req)
	if err != nil {
		err = r.judge(ctx, inner, err)
	}
	return n, err
}
