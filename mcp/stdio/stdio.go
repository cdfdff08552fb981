// Package stdio is the client of package mcp for servers that are processes on this machine. It starts a process when it is
// first used, and again when it has ended, and is not for Workers. Begin with [Client].
package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/mcp"
)

// Bounds of a Client.
const (
	DefaultMaxBytes = 4 << 20
	DefaultIdle     = 5 * time.Minute // after which a process is stopped that nobody calls
	firstRestart    = time.Second     // after a process has died; doubled with each
	lastRestart     = time.Minute
	slack           = 64 << 10
)

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
	deaths  int         // since a call went well
	after   time.Time   // when the next process may be started
	rpc     *mcp.Client // of the last process
	change  int64
}

// session is one process and what is spoken with it.
type session struct {
	*process
	rpc    *mcp.Client
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
	if c.rpc == nil {
		return ""
	}
	return c.rpc.Version()
}

// Fresh tells how long the last list is good, 0 where the server did not say, and a number that grows when it says
// that there is another.
func (c *Client) Fresh() (ttl time.Duration, change int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rpc != nil {
		ttl, _ = c.rpc.Fresh()
	}
	return ttl, c.change
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
	err := c.with(ctx, func(s *session) (err error) {
		out, err = s.rpc.Tools(ctx)
		return err
	})
	return out, err
}

// Call runs a tool. Its errors are those of mcp.Client.
func (c *Client) Call(ctx context.Context, call tidemark.Block) (tidemark.Block, error) {
	if len(call.Input) == 0 {
		call.Input = []byte("{}")
	}
	var out tidemark.Block
	err := c.with(ctx, func(s *session) (err error) {
		out, err = s.rpc.Call(ctx, call)
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
	c.release(ctx, s, err)
	return err
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
	c.session, c.rpc, s.busy = s, s.rpc, 1
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

// release counts a caller out. A process that answers no more is left.
func (c *Client) release(ctx context.Context, s *session, err error) {
	lost := false
	select {
	case <-s.done:
		lost = true
	default:
	}
	c.mu.Lock()
	s.busy--
	if s.silent++; !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.silent = 0
	}
	lost = (lost || s.silent >= mostSilent) && c.session == s
	if lost {
		c.session = nil
	}
	if err == nil {
		c.deaths = 0
	}
	if s.busy == 0 && c.session == s {
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

// connect starts the process and finds out how it wants to be spoken to. It outlives ctx.
func (c *Client) connect(ctx context.Context) (*session, error) {
	p, err := c.start()
	if err != nil {
		return nil, err
	}
	rpc := &mcp.Client{Name: c.Name, URL: "http://stdio", Transport: p, Runtime: native.NewRuntime(c.Logger), MaxBytes: c.maxBytes(), Agent: c.Agent}
	if err := rpc.Meet(ctx); err != nil {
		_ = p.Close() // nobody else knows of it
		return nil, err
	}
	if rpc.Version() == mcp.Stateless {
		go rpc.Listen(context.WithoutCancel(ctx)) // it ends with the process
	}
	return &session{process: p, rpc: rpc}, nil
}

// listChanged counts the lists that a process says are others now.
func (c *Client) listChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change++
}
