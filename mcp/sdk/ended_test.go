package sdk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/mcp/mcptest"
)

var errDown = errors.New("connection refused")

// frail is a server whose stream to the client, which the SDK keeps beside its calls, a test cuts, and the transport
// to it.
type frail struct {
	inner http.Handler
	in    chan struct{} // told of each call that has begun, if set; it is then not answered
	out   chan struct{} // lets them end

	mu    sync.Mutex // guards the following
	down  bool       // no stream can be taken up
	calls int
	cut   context.CancelFunc
}

func (f *frail) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		f.mu.Lock()
		f.cut = cut
		f.mu.Unlock()
		r = r.WithContext(ctx)
	}
	raw, _ := io.ReadAll(r.Body)
	if r.Body = io.NopCloser(bytes.NewReader(raw)); bytes.Contains(raw, []byte(`"tools/call"`)) {
		f.mu.Lock()
		f.calls++
		f.mu.Unlock()
		if f.in != nil { // the answer begins, and does not come
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			f.in <- struct{}{}
			<-f.out
			return
		}
	}
	f.inner.ServeHTTP(w, r)
}

// RoundTrip implements http.RoundTripper.
func (f *frail) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	down := f.down && r.Method == http.MethodGet
	f.mu.Unlock()
	if down {
		return nil, errDown
	}
	return http.DefaultTransport.RoundTrip(r)
}

// fell cuts the stream and has it stay away until the SDK has given the session up.
func (f *frail) fell(s *session) {
	f.mu.Lock()
	f.down = true
	f.cut()
	f.mu.Unlock()
	_ = s.Wait() // it says why
	f.mu.Lock()
	f.down = false
	f.mu.Unlock()
}

func (f *frail) called() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func newFrail(t *testing.T) (*frail, *Client) {
	f := &frail{inner: mcptest.Handler(mcptest.Server([]string{"2025-11-25"}), nil)}
	s := httptest.NewServer(f)
	c := &Client{Name: "probe", URL: s.URL, Token: mcptest.Token, Transport: f}
	t.Cleanup(func() {
		_ = c.Close() // the stream may be gone
		s.CloseClientConnections()
		s.Close()
	})
	return f, c
}

func echo(t *testing.T, c *Client) error {
	_, err := c.Call(t.Context(), tidemark.ToolUse("call_1", "echo", json.RawMessage(`{"text":"a"}`)))
	return err
}

// streaming waits until the stream of the session is open.
func (f *frail) streaming(t *testing.T, c *Client) *session {
	if _, err := c.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	for open := false; !open; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		open = f.cut != nil
		f.mu.Unlock()
	}
	return c.session
}

// TestSessionEnded: a session that the SDK gave up between two calls, as behind a slow restart of the server, costs no
// call: the next one is made in a new session, once.
func TestSessionEnded(t *testing.T) {
	f, c := newFrail(t)
	f.fell(f.streaming(t, c))
	if err := echo(t, c); err != nil || f.called() != 1 {
		t.Errorf("%d calls, %v", f.called(), err)
	}
}

// TestSessionEndsInCall: a call that may have run is not made again when its session ends.
func TestSessionEndsInCall(t *testing.T) {
	f, c := newFrail(t)
	s := f.streaming(t, c)
	f.in, f.out = make(chan struct{}), make(chan struct{})
	failed := make(chan error)
	go func() { failed <- echo(t, c) }()
	<-f.in
	f.fell(s)
	if err := <-failed; !errors.Is(err, tidemark.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	close(f.out)
	f.in = nil
	if n := f.called(); n != 1 {
		t.Errorf("%d calls", n)
	}
	if err := echo(t, c); err != nil || f.called() != 2 {
		t.Errorf("the next: %d calls, %v", f.called(), err)
	}
}
