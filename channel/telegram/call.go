package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/channel/wire"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const (
	maxAnswer     = 64 << 10
	maxRetryAfter = time.Hour
)

// refusal is why a call came to nothing.
type refusal struct {
	code     int // of Telegram, or the HTTP status; 0 when we did not call at all
	text     string
	after    time.Duration // to wait before the next
	migrate  int64         // the chat's new id
	answered bool          // Telegram itself said so
	begun    bool          // some of the request was sent
}

// Error implements error.
func (r *refusal) Error() string { return fmt.Sprintf("telegram (%d): %s", r.code, r.text) }

// call calls a method once and returns its result.
//
// https://core.telegram.org/bots/api#making-requests
func (c *client) call(ctx context.Context, within time.Duration, method string, args any) (json.RawMessage, *refusal) {
	if c.base == nil || c.Transport == nil || c.account() == "" {
		return nil, &refusal{answered: true, text: "Telegram is not configured: it needs a token, a base URL and a transport"}
	}
	payload, err := json.Marshal(args)
	if err != nil {
		return nil, &refusal{answered: true, code: http.StatusBadRequest, text: err.Error()}
	}
	ctx, cancel := wire.Within(ctx, c.Runtime, within)
	defer cancel()
	resp, begun, err := wire.Post(ctx, c.Transport, c.base.JoinPath("bot"+c.Token, method).String(), nil, payload)
	switch {
	case errors.Is(err, wire.ErrAddress):
		return nil, &refusal{answered: true, text: "the token is no part of an address"}
	case err != nil:
		return nil, c.lost(ctx, err, begun)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, c.lost(ctx, err, true)
	}
	return c.answer(resp.StatusCode, body)
}

// answer reads what came back.
func (c *client) answer(status int, body []byte) (json.RawMessage, *refusal) {
	var w struct {
		OK         *bool           `json:"ok"`
		Result     json.RawMessage `json:"result"`
		Code       int             `json:"error_code"`
		Text       string          `json:"description"`
		Parameters struct {
			After   int64 `json:"retry_after"`
			Migrate int64 `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	if json.Unmarshal(body, &w) != nil || w.OK == nil {
		// Of a proxy, perhaps: what is behind it may have taken the message, unless it is the request
		// that the proxy refuses.
		return nil, &refusal{code: status, answered: status >= 400, begun: true, text: fmt.Sprintf("status %d without an answer that can be read", status)}
	}
	if *w.OK {
		return w.Result, nil
	}
	if w.Code == 0 {
		w.Code = status
	}
	after := time.Duration(min(max(w.Parameters.After, 0), int64(maxRetryAfter/time.Second))) * time.Second
	return nil, &refusal{code: w.Code, text: c.redact(w.Text), after: after, migrate: w.Parameters.Migrate, answered: true}
}

// lost is a failure without an answer.
func (c *client) lost(ctx context.Context, err error, begun bool) *refusal {
	return &refusal{begun: begun, text: c.redact(wire.Lost(ctx, err))}
}

// redact takes the token out of a text: it is part of every address.
func (c *client) redact(s string) string {
	if c.Token == "" {
		return s
	}
	return strings.ReplaceAll(s, c.Token, "…")
}
