package sdk

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/mcp"
)

// reconnects is how often a stream that was cut off in the middle of a call is taken up again.
const reconnects = 2

// maxRefusal bounds what is read of a refusal, in bytes.
const maxRefusal = 4 << 10

// wire is what the SDK sends its requests through: it adds the token, bounds answers, and keeps why the server
// refused one, which the SDK does not tell.
type wire struct {
	client *Client

	mu   sync.Mutex // guards the following
	err  error
	sent int // messages
}

// count is how many messages were sent so far. What fails while it stays the same did not reach the server.
func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

func (w *wire) refused() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *wire) refuse(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	return err
}

func (w *wire) limit() int { return 2*w.client.maxBytes() + slack }

func (w *wire) transport() gosdk.Transport {
	return &gosdk.StreamableClientTransport{Endpoint: w.client.URL, MaxRetries: reconnects, MaxEventSize: w.limit(),
		HTTPClient: &http.Client{Transport: w, CheckRedirect: func(req *http.Request, via []*http.Request) error {
			const most = 3
			if sameOrigin(req.URL, w.client.URL) && req.Method == via[0].Method && len(via) <= most {
				return nil
			}
			where := mcp.Quote(req.URL.Scheme+"://"+req.URL.Host+req.URL.Path, w.client.Token)
			return w.refuse(fmt.Errorf("the server redirects to %s, which is not followed; set tools.mcp.%s.url to that address if it is yours: %w", where, w.client.Name, tidemark.ErrForbidden))
		}}}
}

func sameOrigin(u *url.URL, address string) bool {
	own, err := url.Parse(address)
	return err == nil && u.Scheme == own.Scheme && u.Host == own.Host
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		w.mu.Lock()
		w.sent++
		w.mu.Unlock()
	}
	if w.client.Token != "" && sameOrigin(req.URL, w.client.URL) {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+w.client.Token)
	}
	resp, err := w.client.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if s := resp.StatusCode; s == http.StatusUnauthorized || s == http.StatusForbidden {
		_ = resp.Body.Close() // its words are not needed
		return nil, w.refuse(mcp.Unauthorized(w.client.Name, s, w.client.Token != ""))
	}
	if err := w.lost(req, resp); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = &limited{resp.Body, w, w.limit()}
	}
	resp.Body = &readable{ReadCloser: resp.Body, most: w.limit()}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode == http.StatusOK && req.Method == http.MethodPost && strings.HasPrefix(kind, "text/html") {
		_ = resp.Body.Close()
		return nil, w.refuse(fmt.Errorf("the server answers text/html and no JSON: is tools.mcp.%s.url where it speaks MCP?: %w", w.client.Name, tidemark.ErrUnavailable))
	}
	return resp, nil
}

// lost makes of an answer that says that the session is over one that the SDK takes for that: some servers answer
// 400, and some with an error of the protocol.
func (w *wire) lost(req *http.Request, resp *http.Response) error {
	if req.Header.Get("Mcp-Session-Id") == "" || resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusNotFound {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return err
	}
	rest := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(raw), rest), rest}
	if resp.StatusCode == http.StatusNotFound || strings.Contains(strings.ToLower(string(raw)), "session") {
		resp.StatusCode, resp.Status = http.StatusNotFound, "404 Not Found"
		resp.Header.Set("Content-Type", "text/plain")
		resp.Body = struct {
			io.Reader
			io.Closer
		}{strings.NewReader("session is over"), rest}
	}
	return nil
}

// limited is a body that fails beyond a number of bytes.
type limited struct {
	io.ReadCloser
	w    *wire
	left int
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, l.w.refuse(fmt.Errorf("the answer is too long: %w", tidemark.ErrTooLarge))
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
