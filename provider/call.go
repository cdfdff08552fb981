package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
)

const (
	defaultIdle  = 90 * time.Second // both APIs send something at least every 15 s
	maxErrorBody = 64 << 10
	maxReplyBody = 32 << 20 // a whole reply; the APIs' own limit on requests
)

// call is one HTTP request to a model API.
type call struct {
	url       string
	header    http.Header
	key       string // to redact
	transport http.RoundTripper
	runtime   tidemark.Runtime // nil: no deadlines
	first     time.Duration    // until the first byte of the answer
	idle      time.Duration    // between two pieces of it
}

// answer is a response with status 200 and the deadlines on reading it.
type answer struct {
	header http.Header
	body   io.Reader
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	close  func() error
	call   call
	keep   bool // HTTP/1: worth reading to the end, to use the connection again
}

// do sends body and returns the answer, or an *APIError, or the cause of ctx. The caller calls end.
func (c call) do(ctx context.Context, body []byte) (*answer, error) {
	if c.transport == nil {
		return nil, &tidemark.APIError{Class: tidemark.ClassBadRequest, Message: "no transport: set Transport, natively to http.DefaultTransport"}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	a := &answer{parent: ctx, call: c, close: func() error { return nil }}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(a.ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		a.end()
		return nil, &tidemark.APIError{Class: tidemark.ClassBadRequest, Message: "the base URL is not a URL"}
	}
	req.Header = c.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	w := &watch{}
	if c.runtime != nil {
		c.runtime.Go(func() { w.run(a.ctx, c, a.cancel) })
	}
	w.enter()
	resp, err := c.transport.RoundTrip(req) //nolint:bodyclose // answer.end closes it
	w.leave()
	if err != nil {
		err = a.fault(err)
		a.end()
		return nil, err
	}
	a.header, a.close, a.keep = resp.Header, resp.Body.Close, resp.ProtoMajor == 1
	a.body = &watchedReader{resp.Body, w}
	if resp.StatusCode != http.StatusOK {
		defer a.end()
		text, _ := io.ReadAll(io.LimitReader(a.body, maxErrorBody)) // what came of it
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, statusError(resp.StatusCode, resp.Header, text, c.key, c.now())
	}
	return a, nil
}

func (c call) now() time.Time {
	if c.runtime == nil {
		return time.Time{}
	}
	return c.runtime.Now()
}

// end closes the connection, whatever state the answer is in.
func (a *answer) end() {
	a.cancel(nil)
	_ = a.close() // we are done with it, nobody can use its error
}

// drain reads the end of an answer whose reply is complete, so that its connection can be used
// again; a server that does not end it is not waited for.
func (a *answer) drain() {
	if !a.keep || a.call.runtime == nil {
		return
	}
	ctx, stop := context.WithCancel(a.ctx)
	defer stop()
	a.call.runtime.Go(func() {
		if a.call.runtime.Sleep(ctx, time.Second) == nil {
			a.cancel(nil)
		}
	})
	_, _ = io.Copy(io.Discard, io.LimitReader(a.body, 4<<10)) // the reply is complete whatever happens here
}

// fault returns what a failed read or round trip means.
func (a *answer) fault(err error) error {
	if a.parent.Err() != nil {
		return context.Cause(a.parent)
	}
	var api *tidemark.APIError
	if errors.As(context.Cause(a.ctx), &api) { // a deadline of ours
		return api
	}
	if errors.As(err, &api) {
		if api.RequestID == "" {
			api.RequestID = redact(requestID(a.header), a.call.key, 120)
		}
		return api
	}
	if errors.Is(err, tidemark.ErrTooLarge) {
		return &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusOK, Message: err.Error()}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the answer was cut off")
	}
	return networkError(err.Error(), a.call.key)
}

// json reports whether the answer is one JSON document: the endpoint ignored that we asked for a
// stream.
func (a *answer) json() bool {
	t, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// all reads an answer that is one document.
func (a *answer) all() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(a.body, maxReplyBody+1))
	if err == nil && len(data) > maxReplyBody {
		err = fmt.Errorf("read reply: over %d bytes: %w", maxReplyBody, tidemark.ErrTooLarge)
	}
	return data, err
}

// watch ends a call that waits for bytes too long. Time that the reader of the reply takes does not
// count, so a slow client is not mistaken for a dead server.
type watch struct {
	steps atomic.Int64 // odd while a read waits
	begun atomic.Bool  // the first byte of the body came
}

func (w *watch) enter() { w.steps.Add(1) }
func (w *watch) leave() { w.steps.Add(1) }

// run looks eight times in a deadline, so it fires after one deadline and an eighth at the latest.
// It ends with ctx.
func (w *watch) run(ctx context.Context, c call, cancel context.CancelCauseFunc) {
	last, quiet := int64(1), time.Duration(0) // step 1 is the wait for the headers
	for {
		limit := c.first
		if w.begun.Load() {
			limit = c.idle
		}
		tick := max(limit/8, time.Millisecond)
		if c.runtime.Sleep(ctx, tick) != nil {
			return
		}
		now := w.steps.Load()
		if now%2 == 1 && now == last {
			quiet += tick
		} else {
			quiet = 0
		}
		last = now
		if quiet >= limit {
			cancel(networkError(fmt.Sprintf("no data for %s", limit), ""))
			return
		}
	}
}

type watchedReader struct {
	r io.Reader
	w *watch
}

func (r *watchedReader) Read(p []byte) (int, error) {
	r.w.enter()
	defer r.w.leave()
	n, err := r.r.Read(p)
	if n > 0 {
		r.w.begun.Store(true)
	}
	return n, err
}

// or returns a, or b when a is not set.
func or[T comparable](a, b T) T {
	var zero T
	if a == zero {
		return b
	}
	return a
}
