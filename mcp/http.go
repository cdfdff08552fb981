package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// Bounds of what is read.
const (
	maxRedirects = 3
	maxRefusal   = 4 << 10 // bytes of the body of a refusal
	maxQuoted    = 300     // bytes of what a server says in an error
	slack        = 64 << 10
)

// statusError is an answer other than 200.
type statusError struct {
	status int
	text   string // of the body, for people
	rpc    *rpcError
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// answerLimit is how many bytes one answer may have: JSON writes a text longer than it is.
func (c *Client) answerLimit() int { return 2*c.maxBytes() + slack }

// post sends a message and returns the answer with status 200 or 202, whose body the caller closes.
func (c *Client) post(ctx context.Context, body []byte, header http.Header) (*http.Response, error) {
	at := c.URL
	for range maxRedirects {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("%s is no URL: %w", c.setting("url"), tidemark.ErrInvalid)
		}
		req.Header = header.Clone()
		resp, err := c.Transport.RoundTrip(req)
		if err != nil {
			return nil, c.broken(ctx, err)
		}
		switch resp.StatusCode {
		case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
			return resp, nil
		}
		next, err := c.redirected(resp)
		if err == nil && next == "" {
			err = c.refusal(resp)
		}
		_ = resp.Body.Close() // its words were read, or are not wanted
		if err != nil {
			return nil, err
		}
		at = next
	}
	return nil, fmt.Errorf("%s redirects more than %d times: %w", c.setting("url"), maxRedirects, tidemark.ErrUnavailable)
}

// redirected is where a redirect leads, empty for what is none. Only the server itself may lead, and only in a way
// that keeps the request: a token is never sent elsewhere.
func (c *Client) redirected(resp *http.Response) (string, error) {
	if resp.StatusCode < 300 || resp.StatusCode > 399 {
		return "", nil
	}
	from, err := url.Parse(c.URL)
	if err != nil {
		return "", fmt.Errorf("%s is no URL: %w", c.setting("url"), tidemark.ErrInvalid)
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	same := err == nil && to.Scheme == from.Scheme && to.Host == from.Host
	if same && (resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusPermanentRedirect) {
		return to.String(), nil
	}
	where := "elsewhere"
	if err == nil {
		where = "to " + Quote(to.Scheme+"://"+to.Host+to.Path, c.Token)
	}
	return "", fmt.Errorf("the server redirects (%d) %s, which is not followed; set %s to that address if it is yours: %w", resp.StatusCode, where, c.setting("url"), tidemark.ErrForbidden)
}

// refusal is the error of a status.
func (c *Client) refusal(resp *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what came of it
	e := &statusError{status: resp.StatusCode, text: Quote(string(raw), c.Token)}
	if m, err := decode(raw); err == nil && m.Error != nil {
		e.rpc, e.text = m.Error, Quote(m.Error.Message, c.Token)
	}
	kind := tidemark.ErrConflict
	switch s := resp.StatusCode; {
	case e.rpc != nil && s < 500 && s != http.StatusUnauthorized && s != http.StatusForbidden:
		e.err = e.rpc.fault(c.Token)
		return e
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		e.err = c.unauthorized(s)
		return e
	case s == http.StatusRequestTimeout || s == http.StatusTooManyRequests || s >= 500:
		kind = tidemark.ErrUnavailable
	case s == http.StatusNotFound || s == http.StatusMethodNotAllowed:
		e.err = fmt.Errorf("the server answers %d: is %s where it speaks MCP? %s: %w", s, c.setting("url"), e.text, kind)
		return e
	}
	e.err = fmt.Errorf("the server answers %d: %s: %w", resp.StatusCode, e.text, kind)
	return e
}

// unauthorized is the error of a server that answers 401 or 403.
func (c *Client) unauthorized(status int) error {
	if c.Token == "" {
		return fmt.Errorf("the server answers %d and wants a token: set tools.mcp.%s.secret to the name of a variable TOOL_… that holds one (a sign-in by OAuth is not done here): %w", status, c.Name, tidemark.ErrUnauthorized)
	}
	return fmt.Errorf("the server answers %d: the value of the variable that tools.mcp.%s.secret names is not taken: %w", status, c.Name, tidemark.ErrUnauthorized)
}

// broken is a failure on the way. An end of ctx is its cause.
func (c *Client) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, tidemark.ErrTooLarge) || errors.Is(err, tidemark.ErrUnavailable) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the answer was cut off")
	}
	return fmt.Errorf("the server cannot be reached: %s: %w", Quote(err.Error(), c.Token), tidemark.ErrUnavailable)
}

// Quote is what a server says, bounded, on one line, without the token.
func Quote(said, token string) string {
	said = said[:min(len(said), maxRefusal)]
	if token != "" {
		said = strings.ReplaceAll(said, token, "[token]")
	}
	said = strings.Join(strings.Fields(said), " ")
	if len(said) > maxQuoted {
		said = strings.ToValidUTF8(said[:maxQuoted], "") + "…"
	}
	return said
}

// limited is a reader that fails beyond a number of bytes.
type limited struct {
	r    io.Reader
	left int
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer is too long: %w", tidemark.ErrTooLarge)
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// read is the answer to a request: of one JSON document, or of a stream of events in which it stands.
func (c *Client) read(ctx context.Context, resp *http.Response, id int64) (message, error) {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	most := c.answerLimit()
	switch {
	case err == nil && kind == "application/json":
		raw, err := io.ReadAll(&limited{resp.Body, most + 1})
		if err != nil {
			return message{}, c.broken(ctx, err)
		}
		m, err := decode(raw)
		if err == nil && !m.answers(id) {
			err = fmt.Errorf("the server answers another request than the one it was sent: %w", tidemark.ErrUnavailable)
		}
		return m, err
	case err == nil && kind == "text/event-stream":
		r := sse.NewReader(&limited{resp.Body, 2 * most})
		r.Most, r.Whole = most, true
		return c.readEvents(ctx, r, id)
	}
	return message{}, fmt.Errorf("the server answers %s and no JSON: is %s where it speaks MCP?: %w", Quote(kind, c.Token), c.setting("url"), tidemark.ErrUnavailable)
}

func (c *Client) readEvents(ctx context.Context, r *sse.Reader, id int64) (message, error) {
	for n, asked := 0, 0; n < maxEvents; n++ {
		ev, err := r.Next()
		if err != nil {
			return message{}, c.broken(ctx, err)
		}
		if len(ev.Data) == 0 {
			continue
		}
		m, err := decode(ev.Data)
		switch {
		case err != nil:
			return message{}, err
		case m.answers(id):
			m.Result = append(json.RawMessage(nil), m.Result...) // the event is of the reader
			return m, nil
		case m.Method == methodChanged:
			c.mu.Lock()
			c.change++
			c.mu.Unlock()
		case m.Method != "" && len(m.ID) > 0: // progress, log lines and answers to others are passed over
			if asked++; asked > maxAsked {
				return message{}, fmt.Errorf("the server asks more than %d questions during a call: %w", maxAsked, tidemark.ErrUnavailable)
			}
			c.reply(ctx, m)
		}
	}
	return message{}, fmt.Errorf("more than %d events: %w", maxEvents, tidemark.ErrTooLarge)
}

// maxEvents bounds what one answer may stream beside its result.
const maxEvents = 10_000

// maxAsked bounds what a server may ask its client during one call.
const maxAsked = 100

// reply answers a request of the server: a ping is taken, all else is not done here.
func (c *Client) reply(ctx context.Context, m message) {
	how := c.how()
	if how.stateless { // a server there has no way to ask
		return
	}
	raw := m.reply()
	if raw == nil {
		return
	}
	if resp, err := c.post(ctx, raw, c.header(how, "", "")); err == nil {
		_ = resp.Body.Close() // there is nothing in it
	}
}
