// Package mcp is a client of the Model Context Protocol over HTTP, small enough for every host: it lists tools and calls
// them. It uses nothing else that servers offer (prompts, resources, sampling, questions to the user), and processes
// are for package mcp/stdio, which is a transport of this one. Begin with [Client]: it speaks the stateless version
// 2026-07-28, and the handshake of earlier versions with servers that do not.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bounds of a list.
const (
	maxPages = 50
	maxTools = 1000
)

// Defaults of a Client.
const (
	DefaultMaxBytes = 1 << 20
	cancelTime      = 2 * time.Second // for telling a server that its answer is no longer wanted
)

// Client is one server. URL, Transport and Runtime are required. Its methods may be called at once.
type Client struct {
	Name      string // in the configuration, for messages
	URL       string
	Token     string // sent as a bearer, to URL only
	Transport http.RoundTripper
	Runtime   tidemark.Runtime
	MaxBytes  int    // of a result
	Agent     string // version of this program, for the server

	mu      sync.Mutex // guards the following; never held over a wait
	manner  manner
	lastID  int64
	change  int64
	ttl     time.Duration
	headers map[string][]bound // of tools, by name
}

// manner is how a server wants to be spoken to; the zero value is not known yet.
type manner struct {
	version   string
	stateless bool
	session   string
}

func (c *Client) maxBytes() int { return cmp.Or(c.MaxBytes, DefaultMaxBytes) }

func (c *Client) setting(key string) string { return "tools.mcp." + c.Name + "." + key }

func (c *Client) how() manner {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.manner
}

func (c *Client) now(m manner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.manner = m
}

// forget has a server asked anew how it wants to be spoken to, unless somebody has done so meanwhile.
func (c *Client) forget(m manner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.manner == m {
		c.manner = manner{}
	}
}

// Version is what is spoken with the server, empty while nothing was.
func (c *Client) Version() string { return c.how().version }

// Fresh tells how long the last list is good, 0 where the server did not say, and a number that grows when it says
// that there is another.
func (c *Client) Fresh() (ttl time.Duration, change int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ttl, c.change
}

// Tools lists what the server has.
func (c *Client) Tools(ctx context.Context) ([]tidemark.Tool, error) {
	var out []tidemark.Tool
	headers := map[string][]bound{}
	cursor, ttl := "", time.Duration(0)
	for range maxPages {
		raw, err := c.do(ctx, "tools/list", params{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		var page listing
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("the list of tools cannot be read: %w", tidemark.ErrUnavailable)
		}
		for _, raw := range page.Tools {
			var t listed
			if json.Unmarshal(raw, &t) != nil || t.Name == "" { // it can be called by no name, and costs no other
				continue
			}
			out = append(out, t.tool())
			if h := boundHeaders(t.InputSchema, nil); h != nil {
				headers[t.Name] = h
			}
		}
		if d := time.Duration(min(max(page.TTL, 0), int64(time.Hour/time.Millisecond))) * time.Millisecond; d > 0 && (ttl == 0 || d < ttl) {
			ttl = d
		}
		if page.Next == "" || page.Next == cursor || len(out) >= maxTools {
			break
		}
		cursor = page.Next
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ttl, c.headers = ttl, headers
	return out[:min(len(out), maxTools)], nil
}

// Call runs a tool.
//
// # Errors
//
// ErrUnavailable on the way, ErrInvalid for arguments that are refused, ErrNotFound for a tool that is not there,
// ErrTooLarge, ErrUnauthorized, ErrForbidden for what would have to be asked of the user; ErrConflict for any other
// error of the server; the cause of ctx.
func (c *Client) Call(ctx context.Context, call tidemark.Block) (tidemark.Block, error) {
	raw, err := c.do(ctx, "tools/call", params{Name: call.Name, Arguments: call.Input})
	if err != nil {
		return tidemark.Block{}, err
	}
	return Result(call.ID, raw)
}

// do makes a request in the manner that the server wants, which is found out first. Where a session has ended, or the
// server has changed its manner, the request was not taken: it is made once more.
func (c *Client) do(ctx context.Context, method string, p params) (json.RawMessage, error) {
	if c.Transport == nil || c.Runtime == nil {
		return nil, fmt.Errorf("server %s: no transport: %w", c.Name, tidemark.ErrInvalid)
	}
	for again := false; ; again = true {
		how := c.how()
		if how.version == "" {
			var err error
			if how, err = c.meet(ctx); err != nil {
				return nil, err
			}
		}
		raw, err := c.send(ctx, how, method, p)
		if err == nil || again || !left(how, err) {
			return raw, err
		}
		c.forget(how)
	}
}

// left reports an error that says that a server is no longer spoken to as it was.
func left(how manner, err error) bool {
	var s *statusError
	var e *refusedError
	switch {
	case errors.As(err, &s) && how.session != "":
		// Which status an unknown session has is 404; some servers say 400.
		return s.status == http.StatusNotFound || s.status == http.StatusBadRequest && strings.Contains(strings.ToLower(s.text), "session")
	case errors.As(err, &s) && how.stateless:
		return s.status == http.StatusBadRequest && (s.rpc == nil || s.rpc.Code == codeVersion)
	case errors.As(err, &e):
		return e.code == codeVersion
	}
	return false
}

// Meet finds out how the server wants to be spoken to, unless that is known. Calls do so by themselves.
func (c *Client) Meet(ctx context.Context) error {
	if c.how().version != "" {
		return nil
	}
	_, err := c.meet(ctx)
	return err
}

// Listen asks a stateless server to say when its list of tools is another one, and waits until it no longer does.
func (c *Client) Listen(ctx context.Context) {
	_, _ = c.send(ctx, c.how(), "subscriptions/listen", params{Listen: map[string]bool{"toolsListChanged": true}}) // one that cannot says so
}

// meet finds out how a server wants to be spoken to: whether it is stateless, else by the handshake.
func (c *Client) meet(ctx context.Context) (manner, error) {
	how := manner{version: Stateless, stateless: true}
	raw, err := c.send(ctx, how, "server/discover", params{})
	if err == nil {
		var found struct {
			Versions []string `json:"supportedVersions"`
		}
		if json.Unmarshal(raw, &found) == nil && slices.Contains(found.Versions, Stateless) {
			c.now(how)
			return how, nil
		}
	} else if !older(err) {
		return manner{}, err
	}
	return c.handshake(ctx)
}

// older reports an answer that a server gives which does not know server/discover.
func older(err error) bool {
	var s *statusError
	var e *refusedError
	if errors.As(err, &s) {
		switch s.status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests:
			return false
		}
		return s.status < 500 || s.status == http.StatusInternalServerError || s.status == http.StatusNotImplemented
	}
	return errors.As(err, &e)
}

// handshake begins a session of the versions before.
func (c *Client) handshake(ctx context.Context) (manner, error) {
	id := c.nextID()
	raw, err := json.Marshal(request{"2.0", id, "initialize", map[string]any{
		"protocolVersion": newestOld, "capabilities": map[string]any{}, "clientInfo": c.info()}})
	if err != nil {
		return manner{}, fmt.Errorf("encode handshake: %w", err)
	}
	resp, err := c.post(ctx, raw, c.header(manner{}, "", ""))
	if err != nil {
		return manner{}, err
	}
	defer resp.Body.Close()
	m, err := c.read(ctx, resp, id)
	if err != nil {
		return manner{}, err
	}
	if m.Error != nil {
		return manner{}, fmt.Errorf("the server refuses the handshake: %s: %w", Quote(m.Error.Message, c.Token), tidemark.ErrConflict)
	}
	var hello struct {
		Version string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(m.Result, &hello); err != nil || !slices.Contains(handshakes[:], hello.Version) {
		return manner{}, fmt.Errorf("the server speaks version %q of MCP, and here are spoken %s and %s: %w", Quote(hello.Version, c.Token), Stateless, strings.Join(handshakes[:], ", "), tidemark.ErrConflict)
	}
	how := manner{version: hello.Version, session: resp.Header.Get("Mcp-Session-Id")}
	if err := c.notify(ctx, how, "notifications/initialized", nil); err != nil {
		return manner{}, err
	}
	c.now(how)
	return how, nil
}

// notify sends what is not answered.
func (c *Client) notify(ctx context.Context, how manner, method string, params any) error {
	raw, err := json.Marshal(request{JSONRPC: "2.0", Method: method, Params: params})
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	resp, err := c.post(ctx, raw, c.header(how, "", ""))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// send makes one request and returns its result. An error of the protocol is a *refusedError.
func (c *Client) send(ctx context.Context, how manner, method string, p params) (json.RawMessage, error) {
	id := c.nextID()
	if how.stateless {
		p.Meta = map[string]any{metaVersion: how.version, metaInfo: c.info(), metaCapabilities: map[string]any{}}
	}
	raw, err := json.Marshal(request{"2.0", id, method, p})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w: %w", method, err, tidemark.ErrInvalid)
	}
	header := c.header(how, method, p.Name)
	if how.stateless && p.Name != "" {
		for _, b := range c.bound(p.Name) {
			if v := b.value(p.Arguments); v != "" {
				header.Set(b.header, v)
			}
		}
	}
	m, err := c.exchange(ctx, raw, header, id)
	if err != nil {
		if ctx.Err() != nil && !how.stateless {
			c.cancel(ctx, how, id)
		}
		return nil, err
	}
	if m.Error != nil {
		return nil, m.Error.fault(c.Token)
	}
	return m.Result, nil
}

func (c *Client) exchange(ctx context.Context, raw []byte, header http.Header, id int64) (message, error) {
	resp, err := c.post(ctx, raw, header)
	if err != nil {
		return message{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return message{}, fmt.Errorf("the server answers %d, which is no answer to a request: %w", resp.StatusCode, tidemark.ErrUnavailable)
	}
	return c.read(ctx, resp, id)
}

// cancel tells a server that an answer is no longer wanted. (The stateless protocol has the end of the request for
// that.)
func (c *Client) cancel(ctx context.Context, how manner, id int64) {
	alone := context.WithoutCancel(ctx)
	c.Runtime.Go(func() {
		limited, stop := c.Runtime.WithTimeout(alone, cancelTime)
		defer stop()
		_ = c.notify(limited, how, "notifications/cancelled", map[string]any{"requestId": id, "reason": "no longer wanted"}) // nobody waits for it
	})
}

func (c *Client) nextID() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	return c.lastID
}

func (c *Client) bound(name string) []bound {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers[name]
}

func (c *Client) info() map[string]any {
	return map[string]any{"name": "tidemark", "version": cmp.Or(c.Agent, "dev")}
}

// header is that of a message.
func (c *Client) header(how manner, method, name string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if c.Token != "" {
		h.Set("Authorization", "Bearer "+c.Token)
	}
	if how.version != "" {
		h.Set("Mcp-Protocol-Version", how.version)
	}
	if how.session != "" {
		h.Set("Mcp-Session-Id", how.session)
	}
	if how.stateless {
		h.Set("Mcp-Method", method)
		if name != "" {
			h.Set("Mcp-Name", headerValue(name))
		}
	}
	return h
}
