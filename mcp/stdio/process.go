package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
	"github.com/tidemark-ai/tidemark/mcp"
)

// Bounds of processes.
const (
	endTime    = 2 * time.Second // for a process to end after its input has
	maxLogged  = 64 << 10        // bytes of standard error of one process
	maxLine    = 1 << 10
	maxWaiting = 100 // messages that the process has not read
)

// process is a server that was started. To package mcp it is a transport: what is posted is a line of its input, and the
// line of its output with the same id is the answer (https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio).
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	out     io.Closer
	changed func()        // told of each list that changed
	ended   chan struct{} // closed when the process has
	ending  sync.Once

	lines chan []byte   // for the process to read
	done  chan struct{} // closed when no more answers come; then why says why
	over  sync.Once
	why   error

	mu      sync.Mutex // guards the following
	waiting map[int64]chan []byte
}

// start starts the server. Its environment is what is configured and what programs cannot do without: none of our
// secrets is in it.
func (c *Client) start() (*process, error) {
	cmd := exec.Command(c.Command, c.Args...)
	cmd.Env = append(native.BaseEnviron(), c.Env...)
	cmd.Stderr = &lines{log: c.log(), name: c.Name, hide: c.secrets()}
	cmd.WaitDelay = endTime // what it started may hold its output
	native.OwnGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the process: %w: %w", err, tidemark.ErrUnavailable)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the process: %w: %w", err, tidemark.ErrUnavailable)
	}
	cmd.Stdout = in
	err = cmd.Start()
	_ = in.Close() // the process has its own
	if err != nil {
		_ = out.Close() // nothing was written to it
		return nil, fmt.Errorf("tools.mcp.%s.command %s cannot be started: %s: %w", c.Name, mcp.Quote(c.Command, ""), mcp.Quote(err.Error(), ""), tidemark.ErrUnavailable)
	}
	p := &process{cmd: cmd, stdin: stdin, out: out, changed: c.listChanged, ended: make(chan struct{}), lines: make(chan []byte, maxWaiting),
		done: make(chan struct{}), waiting: map[int64]chan []byte{}}
	go func() { // it ends with the process, which Close ends at the latest
		defer close(p.ended)
		err := cmd.Wait()
		c.log().Debug("tool server ended", "server", c.Name, "err", err)
	}()
	go p.read(out, 2*c.maxBytes()+slack) // both end when Close closes the pipes
	go p.write(stdin)
	return p, nil
}

// fail says that no more answers come, and why.
func (p *process) fail(why error) {
	p.over.Do(func() {
		p.why = why
		close(p.done)
	})
}

// write writes lines until no more answers come.
func (p *process) write(stdin io.Writer) {
	for {
		select {
		case line := <-p.lines:
			if _, err := stdin.Write(line); err != nil {
				p.fail(fmt.Errorf("the process takes no more input: %w", err))
				return
			}
		case <-p.done:
			return
		}
	}
}

// read hands out what the process says, line by line, of at most so many bytes each.
func (p *process) read(out io.Reader, most int) {
	for l, err := range jsonscan.Lines(out, most) {
		switch {
		case err != nil:
			p.fail(err)
			return
		case l.Long:
			p.fail(fmt.Errorf("the answer is too long: %w", tidemark.ErrTooLarge))
			return
		}
		h := mcp.Hear(l.Raw) // of a line that is no message, as some servers print, it is nothing
		if h.Changed {
			p.changed()
		}
		if h.Reply != nil {
			p.offer(h.Reply)
		}
		p.mu.Lock()
		answer := p.waiting[h.Answers]
		delete(p.waiting, h.Answers)
		p.mu.Unlock()
		if answer != nil {
			answer <- bytes.Clone(l.Raw)
		}
	}
	p.fail(errors.New("the process has ended"))
}

// RoundTrip implements http.RoundTripper.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	line, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var sent struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(line, &sent); err != nil {
		return nil, err
	}
	answer := make(chan []byte, 1)
	if sent.ID != 0 {
		p.mu.Lock()
		p.waiting[sent.ID] = answer
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.waiting, sent.ID)
		}()
	}
	select {
	case p.lines <- append(line, '\n'):
	case <-p.done:
		return nil, p.why
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	if sent.ID == 0 { // nothing answers it
		return response(http.StatusAccepted, nil), nil
	}
	select {
	case raw := <-answer:
		return response(http.StatusOK, raw), nil
	case <-p.done:
	case <-r.Context().Done():
		if r.Header.Get("Mcp-Method") != "" { // where there is no handshake the client says nothing
			p.offer(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, sent.ID))
		}
		return nil, context.Cause(r.Context())
	}
	select {
	case raw := <-answer: // it came last
		return response(http.StatusOK, raw), nil
	default:
		return nil, p.why
	}
}

// offer has a message written, unless the process reads nothing.
func (p *process) offer(message []byte) {
	select {
	case p.lines <- append(message, '\n'):
	default:
	}
}

func response(status int, body []byte) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}
}

// secrets are values that must not be logged.
func (c *Client) secrets() []string {
	const least = 6 // what is shorter hides words
	var out []string
	for _, e := range c.Env {
		if _, v, _ := strings.Cut(e, "="); len(v) >= least {
			out = append(out, v)
		}
	}
	return out
}

// Close ends the process: its input is closed, and if that is not enough it is killed, with all that it started.
func (p *process) Close() error {
	var err error
	p.ending.Do(func() {
		_ = p.stdin.Close() // the process may have gone
		ctx, stop := context.WithTimeout(context.Background(), endTime)
		defer stop()
		select {
		case <-p.ended:
		case <-ctx.Done():
		}
		err = native.EndGroup(p.cmd) // what it started may live on
		<-p.ended
		if closed := p.out.Close(); err == nil {
			err = closed
		}
	})
	return err
}

// lines logs what a process writes on standard error, line by line, a bounded amount.
type lines struct {
	log  *slog.Logger
	name string
	hide []string
	held []byte // of a line that has not ended
	said int    // bytes
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && l.said < maxLogged {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		l.held = append(l.held, line[:min(len(line), maxLine-min(len(l.held), maxLine))]...)
		if p = rest; !whole {
			break
		}
		text := string(l.held)
		l.held = l.held[:0]
		if l.said += len(text) + 1; l.said >= maxLogged {
			text = "more is not logged"
		}
		for _, secret := range l.hide {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
		l.log.Debug("tool server says", "server", l.name, "line", strings.ToValidUTF8(strings.TrimSpace(text), ""))
	}
	return n, nil
}
