package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// stream writes server-sent events. One goroutine uses it.
type stream struct {
	c    *request
	ctl  *http.ResponseController
	buf  []byte
	dead error
}

// streaming reports whether the client asked for events.
func (c *request) streaming() bool {
	accepts := strings.Contains(c.r.Header.Get("Accept"), codeEventStream)
	return c.flag("stream", accepts)
}

// begin sends the head of a stream.
func (c *request) begin() *stream {
	h := c.w.Header()
	h.Set("Content-Type", codeEventStream)
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back
	c.w.WriteHeader(http.StatusOK)
	return &stream{c: c, ctl: http.NewResponseController(c.w)}
}

// headOnly answers a HEAD request with the head of a stream: the stream itself would never end, and hold up the
// next request of the connection.
func (c *request) headOnly() bool {
	if c.r.Method != http.MethodHead {
		return false
	}
	c.begin().end()
	return true
}

// event sends a value under a name. After an error all further ones are the same error.
func (s *stream) event(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", name, err)
	}
	s.buf = sse.Append(s.buf[:0], name, string(raw))
	return s.write(s.buf)
}

// ping is a sign of life that no client sees.
func (s *stream) ping() error { return s.write([]byte(": ping\n\n")) }

// fail ends a stream with an error that the client is told of, in the words of its API.
func (s *stream) fail(t errorForm, err error) error {
	f, name := failureOf(err), "error"
	_, body := t.put(f, s.c.w)
	switch t {
	case native:
		body = wireError{Type: "error", Error: f.wire(s.c.w)}
	case openAI:
		name = ""
	}
	if e := s.event(name, body); e != nil {
		return e
	}
	return errors.Join(err, errTold)
}

// write sends bytes within the write timeout: a client that does not read holds nothing up.
func (s *stream) write(p []byte) error {
	if s.dead != nil {
		return s.dead
	}
	deadline := s.c.Runtime.Now().Add(s.c.WriteTimeout)
	err := s.ctl.SetWriteDeadline(deadline)
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		_, err = s.c.w.Write(p)
	}
	if err == nil {
		err = s.ctl.Flush()
	}
	if err != nil {
		s.dead = fmt.Errorf("write event: %w: %w", err, errLeft)
	}
	return s.dead
}

// end gives the connection back without the deadline of the last write.
func (s *stream) end() {
	if err := s.ctl.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.c.Logger.Debug("end stream", "id", s.c.w.id, "err", err)
	}
}

// every ticks until ctx ends. A tick that nobody takes is kept, not added to.
func (d *door) every(ctx context.Context, pause time.Duration) <-chan struct{} {
	c := make(chan struct{}, 1)
	d.Runtime.Go(func() {
		for d.Runtime.Sleep(ctx, pause) == nil {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	})
	return c
}
