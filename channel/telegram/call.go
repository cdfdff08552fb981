package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

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
	if c.Runtime != nil {
		var cancel context.CancelFunc
		ctx, cancel = c.Runtime.WithTimeout(ctx, within)
		defer cancel()
	}
	begun := &atomic.Bool{}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath("bot"+c.Token, method).String(), newUpload(payload, begun))
	if err != nil {
		return nil, &refusal{answered: true, text: "the token is no part of an address"}
	}
	req.ContentLength = int64(len(payload))
	req.GetBody = func() (io.ReadCloser, error) { return newUpload(payload, begun), nil }
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Transport.RoundTrip(req)
	if err != nil {
		return nil, c.lost(ctx, err, begun.Load())
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

// lost is a failure without an answer: once a byte of the body was taken from us, the message may
// have arrived. A Worker's fetch always takes it.
func (c *client) lost(ctx context.Context, err error, begun bool) *refusal {
	text := err.Error()
	if cause := context.Cause(ctx); cause != nil {
		text = cause.Error()
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		text = "the answer was cut off"
	}
	return &refusal{begun: begun, text: c.redact(text)}
}

// redact takes the token out of a text: it is part of every address.
func (c *client) redact(s string) string {
	if c.Token == "" {
		return s
	}
	return strings.ReplaceAll(s, c.Token, "…")
}

// upload is a request's body that knows whether it was begun.
type upload struct {
	bytes.Reader
	begun *atomic.Bool
}

// newUpload begins anew: a transport asks for a second body only when nothing of the first was sent.
func newUpload(payload []byte, begun *atomic.Bool) *upload {
	begun.Store(false)
	u := &upload{begun: begun}
	u.Reset(payload)
	return u
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.begun.Store(true)
	return u.Reader.Read(p)
}

// WriteTo implements io.WriterTo.
func (u *upload) WriteTo(w io.Writer) (int64, error) {
	u.begun.Store(true)
	return u.Reader.WriteTo(w)
}

// Close implements io.Closer.
func (u *upload) Close() error { return nil }
