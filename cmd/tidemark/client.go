package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// client speaks to the routes of docs/http.md, over the network or in this process.
type client struct {
	base  string // URL without a slash at its end
	token string
	rt    http.RoundTripper
	where string       // for people
	local *node        // nil when a server has the store
	end   func() error // gives up what the client stands on
}

// connect finds the store: a server that is named, the local store, or the server that has it.
func (m *Main) connect(ctx context.Context) (*client, error) {
	base, err := m.named()
	if err != nil {
		return nil, err
	}
	if base != "" {
		return m.remote(base), nil
	}
	home, err := m.homeDir()
	if err != nil {
		return nil, err
	}
	cfg, _, err := m.load(ctx, home)
	if err != nil {
		return nil, err
	}
	n, err := openStore(ctx, home, cfg, m.logger(cfg, true), false)
	var locked *native.LockedError
	if s := readServerFile(home); errors.As(err, &locked) && s.PID == locked.PID && s.URL != "" {
		return m.remote(s.URL), nil
	}
	if err != nil {
		return nil, err
	}
	return inProcess(n), nil
}

// named is the URL of the server that --server or TIDEMARK_SERVER names, empty for none.
func (m *Main) named() (string, error) {
	named := cmp.Or(m.server, m.env("TIDEMARK_SERVER"))
	if named == "" {
		return "", nil
	}
	u, err := url.Parse(named)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", usagef("--server %s: want a URL such as http://127.0.0.1:8787", named)
	}
	return strings.TrimSuffix(strings.TrimRight(named, "/"), "/v1"), nil
}

func (m *Main) remote(base string) *client {
	return &client{base: base, token: m.env("TIDEMARK_TOKEN"), rt: native.Transport(), where: base, end: func() error { return nil }}
}

// inProcess speaks to a node of this process.
func inProcess(n *node) *client {
	return &client{base: "http://localhost", rt: handlerTransport{n.handler("")}, where: n.home, local: n, end: n.close}
}

// ready refuses what needs the model when this process would call it without a key. A server has
// looked at its start.
func (c *client) ready() error {
	if c.local == nil {
		return nil
	}
	return needKey(c.local.cfg)
}

// with connects, carries f out and gives the store up again. A turn that the store had in work
// before, or that f left in work, may end first.
func (m *Main) with(ctx context.Context, f func(*client) error) error {
	c, err := m.connect(ctx)
	if err != nil {
		return err
	}
	err = f(c)
	if c.local != nil && err == nil && c.local.working() {
		if m.Progress {
			m.err.line("(a turn is in work here; waiting for its end, Ctrl-C leaves it for the next command)")
		}
		c.local.drain(ctx)
	}
	return errors.Join(err, c.end())
}

// do sends a request. An answer that reports a failure is an *apiError.
func (c *client) do(ctx context.Context, method, path string, body io.Reader, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.rt.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &fixed{fmt.Errorf("no answer from %s: %w", c.where, err), "check the address given by --server or TIDEMARK_SERVER, and that `tidemark serve` or `make dev` runs there"}
	}
	const ok = 300
	if resp.StatusCode < ok {
		return resp, nil
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxDocument)) // what was read of it is the message
	var w struct{ Error apiError }
	if json.Unmarshal(raw, &w) != nil {
		w.Error.Message = ""
	}
	if w.Error.Message == "" { // a proxy's, perhaps
		first, _, _ := strings.Cut(strings.TrimSpace(string(raw)), "\n")
		if first != "" && !strings.HasPrefix(first, "<") && !strings.HasPrefix(first, "{") {
			const most = 200
			w.Error.said = oneLine(first, most)
		}
	}
	w.Error.Status, w.Error.where, w.Error.path = resp.StatusCode, c.where, path
	return nil, &w.Error
}

// call sends in, unless it is nil, and decodes the answer into out, unless that is nil.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", c.where, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("answer of %s to %s %s: %w", c.where, method, path, err)
	}
	return nil
}

func (c *client) get(ctx context.Context, path string, out any) error {
	return c.call(ctx, http.MethodGet, path, nil, out)
}

func (c *client) post(ctx context.Context, path string, in, out any) error {
	return c.call(ctx, http.MethodPost, path, in, out)
}

// raw copies the body of an answer.
func (c *client) raw(ctx context.Context, path string, w io.Writer) error {
	resp, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read answer of %s: %w", c.where, err)
	}
	return nil
}

// events sends a body and gives each server-sent event of the answer to f. An error event is an
// *apiError.
func (c *client) events(ctx context.Context, method, path string, body io.Reader, f func(name string, data []byte) error) error {
	resp, err := c.do(ctx, method, path, body, "Accept", "text/event-stream")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	ended := false
	err = readEvents(resp.Body, func(name string, data []byte) error {
		ended = ended || name == "done"
		if name != "error" {
			return f(name, data)
		}
		var w struct{ Error apiError }
		if err := json.Unmarshal(data, &w); err != nil {
			return fmt.Errorf("error event of %s: %w", c.where, err)
		}
		w.Error.where, w.Error.path = c.where, path
		return &w.Error
	})
	if err == nil && !ended {
		err = io.ErrUnexpectedEOF
	}
	var told *apiError
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !errors.As(err, &told) && !errors.Is(err, errTold) {
		return &fixed{fmt.Errorf("the stream of %s broke off: %w", c.where, err), "what was said is in the log; `tidemark log KEY` shows it"}
	}
	return err
}

// maxEvent bounds one event; a done event holds a whole reply.
const maxEvent = 64 << 20

// readEvents reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func readEvents(r io.Reader, f func(name string, data []byte) error) error {
	in := bufio.NewReaderSize(r, 32<<10)
	name, data := "", []byte(nil)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if err = io.ErrUnexpectedEOF; len(line) == 0 && data == nil {
				err = nil
			}
			return err
		}
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if data != nil {
				if err := f(name, data); err != nil {
					return err
				}
			}
			name, data = "", nil
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			if data != nil {
				data = append(data, '\n')
			}
			if data = append(data, value...); len(data) > maxEvent {
				return fmt.Errorf("event %s over %d bytes", name, maxEvent)
			}
		}
	}
}

// sessionPath is the path of a session, with what lies below it.
func sessionPath(key, rest string) string { return "/v1/sessions/" + url.PathEscape(key) + rest }

// agentPath is the path of an agent, with what lies below it.
func agentPath(agent, rest string) string { return "/v1/agents/" + url.PathEscape(agent) + rest }
