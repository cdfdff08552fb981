// Package sdk is the client of package mcp for servers that are processes on this machine, on the official SDK of the
// Model Context Protocol. It is not for Workers. Begin with [Client].
package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/mcp"
)

// Bounds of a Client.
const (
	DefaultMaxBytes = 4 << 20
	DefaultIdle     = 5 * time.Minute // after which a process is stopped that nobody calls
	maxPages        = 50
	maxTools        = 1000
	firstRestart    = time.Second // after a process has died; doubled with each
	lastRestart     = time.Minute
	slack           = 64 << 10
)

// rejected is the code by which the SDK says that a request did not reach the server.
const rejected = -32005

// Client is one server. Its process is started when it is first used, and again when it has ended. Its methods may be
// called at once.
type Client struct {
	Name    string // in the configuration, for messages
	Command string
	Args    []string
	Env     []string      // NAME=value, beside PATH, HOME and LANG
	Idle    time.Duration // DefaultIdle

	MaxBytes int
	Agent    string       // version of this program, for the server
	Logger   *slog.Logger // nil: no logging

	connecting sync.Mutex // held while one connects, which is a wait: this package is native only

	mu      sync.Mutex // guards the following
	session *session
	closed  bool
	deaths  int       // since a call went well
	after   time.Time // when the next process may be started
	version string
	ttl     time.Duration
	change  int64
}

// session is one connection.
type session struct {
	*gosdk.ClientSession
	busy   int // calls in work, guarded by Client.mu
	silent int // calls in a row that nothing answered, guarded the same
	idle   *time.Timer
}

func (c *Client) maxBytes() int { return cmp.Or(c.MaxBytes, DefaultMaxBytes) }

func (c *Client) log() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// Version is what is spoken with the server, empty while nothing was.
func (c *Client) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// Fresh tells how long the last list is good, 0 where the server did not say, and a number that grows when it says
// that there is another.
func (c *Client) Fresh() (ttl time.Duration, change int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ttl, c.change
}

// Close ends the connection, and the process. The client cannot be used after it.
func (c *Client) Close() error {
	c.mu.Lock()
	s := c.session
	c.session, c.closed = nil, true
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.end()
}

// end closes a connection that is no longer the client's.
func (s *session) end() error {
	if s.idle != nil {
		s.idle.Stop()
	}
	return s.Close()
}

// Tools lists what the server has.
func (c *Client) Tools(ctx context.Context) ([]tidemark.Tool, error) {
	var out []tidemark.Tool
	ttl := time.Duration(0)
	err := c.with(ctx, func(s *session) error {
		out, ttl = nil, 0
		cursor := ""
		for range maxPages {
			page, err := s.ListTools(ctx, &gosdk.ListToolsParams{Cursor: cursor})
			if err != nil {
				return err
			}
			for _, t := range page.Tools {
				tool, err := toolOf(t)
				if err != nil {
					return err
				}
				out = append(out, tool)
			}
			if d := time.Duration(min(max(page.TTLMs, 0), int(time.Hour/time.Millisecond))) * time.Millisecond; d > 0 && (ttl == 0 || d < ttl) {
				ttl = d
			}
			if page.NextCursor == "" || page.NextCursor == cursor || len(out) >= maxTools {
				break
			}
			cursor = page.NextCursor
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ttl = ttl
	return out[:min(len(out), maxTools)], nil
}

func toolOf(t *gosdk.Tool) (tidemark.Tool, error) {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return tidemark.Tool{}, fmt.Errorf("the schema of %.60q cannot be written: %w: %w", t.Name, err, tidemark.ErrUnavailable)
	}
	a := t.Annotations
	return tidemark.Tool{Name: t.Name, Description: cmp.Or(t.Description, t.Title), InputSchema: schema,
		Idempotent: a != nil && (a.ReadOnlyHint || a.IdempotentHint)}, nil
}

// Call runs a tool. Its errors are those of mcp.Client.
func (c *Client) Call(ctx context.Context, call tidemark.Block) (tidemark.Block, error) {
	var out tidemark.Block
	err := c.with(ctx, func(s *session) error {
		arguments := call.Input
		if len(arguments) == 0 {
			arguments = json.RawMessage("{}")
		}
		r, err := s.CallTool(ctx, &gosdk.CallToolParams{Name: call.Name, Arguments: arguments})
		if err != nil {
			return err
		}
		raw, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("the result of the tool cannot be read: %w: %w", err, tidemark.ErrUnavailable)
		}
		out, err = mcp.Result(call.ID, raw)
		return err
	})
	return out, err
}

// with has something done on a connection. Where that turns out to be broken it is left.
func (c *Client) with(ctx context.Context, do func(*session) error) error {
	s, err := c.connected(ctx)
	if err != nil {
		return err
	}
	err = do(s)
	c.release(s, err)
	return meaning(ctx, err)
}

// connected returns the connection, made if there is none, and counts the caller in.
func (c *Client) connected(ctx context.Context) (*session, error) {
	if s := c.take(); s != nil {
		return s, nil
	}
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if s := c.take(); s != nil {
		return s, nil
	}
	c.mu.Lock()
	closed, wait, deaths := c.closed, time.Until(c.after), c.deaths
	c.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("the server is stopping: %w", tidemark.ErrUnavailable)
	}
	if wait > firstRestart {
		return nil, fmt.Errorf("the process has ended %d times in a row, and is started again in %s: %w", deaths, wait.Round(time.Second), tidemark.ErrBusy)
	}
	if wait > 0 { // a process that served and died once is there again before its caller would ask anew
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	s, err := c.connect(ctx)
	if err != nil {
		c.died()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(fmt.Errorf("the server is stopping: %w", tidemark.ErrUnavailable), s.end())
	}
	c.session, s.busy = s, 1
	c.version = s.InitializeResult().ProtocolVersion
	return s, nil
}

func (c *Client) take() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil {
		c.session.busy++
	}
	return c.session
}

// died counts a process that ended by itself, or did not begin, and has the next one wait.
func (c *Client) died() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaths++
	c.after = time.Now().Add(min(firstRestart<<min(c.deaths-1, 10), lastRestart))
}

// mostSilent is how many calls in a row a process may leave without an answer: one that hangs would be asked for ever.
const mostSilent = 3

// release counts a caller out. A connection on which something else went wrong than the call itself is left.
func (c *Client) release(s *session, err error) {
	var said *jsonrpc.Error
	sound := err == nil || errors.As(err, &said) || tidemark.Sentinel(err) != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	c.mu.Lock()
	s.busy--
	switch {
	case err == nil || errors.As(err, &said):
		s.silent = 0
	case errors.Is(err, context.DeadlineExceeded):
		s.silent++
	}
	lost := (!sound || s.silent >= mostSilent) && c.session == s
	if lost {
		c.session = nil
	}
	if err == nil {
		c.deaths = 0
	}
	if sound && s.busy == 0 && c.session == s {
		c.rest(s)
	}
	c.mu.Unlock()
	if !lost {
		return
	}
	c.died()
	go func() { _ = s.end() }() // it may wait for the other side; what it says is of a connection that is lost
}

// rest has a process stopped when nobody has called it for a while. It is called with the lock held.
func (c *Client) rest(s *session) {
	if s.idle != nil {
		s.idle.Stop()
	}
	s.idle = time.AfterFunc(cmp.Or(c.Idle, DefaultIdle), func() {
		c.mu.Lock()
		quiet := c.session == s && s.busy == 0
		if quiet {
			c.session = nil
		}
		c.mu.Unlock()
		if quiet {
			_ = s.Close() // it was in order until now
		}
	})
}

// connect makes a connection. It outlives ctx.
func (c *Client) connect(ctx context.Context) (*session, error) {
	client := gosdk.NewClient(&gosdk.Implementation{Name: "tidemark", Version: cmp.Or(c.Agent, "dev")}, &gosdk.ClientOptions{
		Capabilities:   &gosdk.ClientCapabilities{}, // no roots, no sampling, no questions
		MultiRoundTrip: &gosdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *gosdk.ToolListChangedRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.change++
		},
	})
	p, err := c.start()
	if err != nil {
		return nil, err
	}
	cs, err := client.Connect(ctx, p, nil)
	if err != nil {
		_ = p.Close() // the SDK does not close what it could not speak to
		return nil, meaning(ctx, err)
	}
	return &session{ClientSession: cs}, nil
}

// meaning is an error as package mcp has it.
func meaning(ctx context.Context, err error) error {
	var said *jsonrpc.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &said) && said.Code != rejected:
		return mcp.Refused(int(said.Code), mcp.Quote(said.Message, ""))
	case tidemark.Sentinel(err) != nil:
		return err
	}
	return fmt.Errorf("the server cannot be reached: %s: %w", mcp.Quote(err.Error(), ""), tidemark.ErrUnavailable)
}
