package sdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/mcp"
)

// Bounds of processes.
const (
	endTime   = 2 * time.Second // for a process to end after its input has
	maxLogged = 64 << 10        // bytes of standard error of one process
	maxLine   = 1 << 10
)

// process is a server that was started, as the SDK speaks to it.
type process struct {
	*gosdk.IOTransport
	cmd    *exec.Cmd
	stdin  io.Closer
	ended  chan struct{} // closed when it has
	ending sync.Once
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
	p := &process{cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	p.IOTransport = &gosdk.IOTransport{Reader: &readable{ReadCloser: out, most: 2*c.maxBytes() + slack}, Writer: closer{stdin, p.Close}, MaxLineLength: 2*c.maxBytes() + slack}
	go func() { // it ends with the process, which Close ends at the latest
		defer close(p.ended)
		err := cmd.Wait()
		c.log().Debug("tool server ended", "server", c.Name, "err", err)
	}()
	return p, nil
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

// closer is the input of a process: closing it ends the process.
type closer struct {
	io.Writer
	end func() error
}

func (c closer) Close() error { return c.end() }

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
		if closed := p.Reader.Close(); err == nil && !errors.Is(closed, os.ErrClosed) {
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
