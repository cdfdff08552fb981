package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"syscall/js"
)

// errGone ends a request whose client has left.
var errGone = errors.New("the client has left")

// event runs one event of the object and answers it, whatever happens.
func (o *Obj) event(n int, kind string, payload js.Value) {
	ctx, cancel := context.WithCancelCause(o.ctx)
	o.mu.Lock()
	o.calls[n] = cancel
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		delete(o.calls, n)
		o.mu.Unlock()
		cancel(context.Canceled)
	}()
	switch kind {
	case "fetch":
		o.serve(ctx, n, payload)
	case "alarm":
		o.ring(ctx, n)
	case "socket":
		o.hear(ctx, n, payload)
	default:
		o.tell("fail", n, "unknown kind of event "+kind)
	}
}

// gone cancels the request of a client that has left.
func (o *Obj) gone(n int) {
	o.mu.Lock()
	cancel := o.calls[n]
	o.mu.Unlock()
	if cancel != nil {
		cancel(errGone)
	}
}

func (o *Obj) ring(ctx context.Context, n int) {
	err := o.guarded(func() error {
		if o.app.Alarm == nil {
			return nil
		}
		return o.app.Alarm(ctx)
	})
	if err != nil {
		o.b.logger.Error("alarm failed", "object", o.name, "err", err)
		o.tell("fail", n, err.Error())
		return
	}
	o.tell("done", n)
}

// serve runs the handler. A panic fails the event: a 500, or the end of the stream when that has begun.
func (o *Obj) serve(ctx context.Context, n int, payload js.Value) {
	w := &response{o: o, ctx: ctx, n: n, header: http.Header{}}
	err := o.guarded(func() error {
		req, err := requestOf(ctx, o, payload)
		if err != nil {
			return err
		}
		defer req.Body.Close()
		if o.app.HTTP == nil {
			http.NotFound(w, req)
			return nil
		}
		o.app.HTTP.ServeHTTP(w, req)
		return nil
	})
	w.finish(err)
}

// guarded runs f and gives its panic as an error.
func (o *Obj) guarded(f func() error) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if e, ok := p.(error); ok && errors.Is(e, http.ErrAbortHandler) {
			err = http.ErrAbortHandler
			return
		}
		o.panics.Add(1)
		o.b.logger.Error("panic in a handler", "object", o.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		err = fmt.Errorf("panic: %v", p)
	}()
	return f()
}

// requestOf reads [method, url, body, ...headers].
func requestOf(ctx context.Context, o *Obj, payload js.Value) (*http.Request, error) {
	rows, err := unpackRows(fromBytes(payload))
	if err != nil || len(rows) != 1 || len(rows[0]) < 3 {
		return nil, errWire
	}
	head := rows[0]
	req, err := http.NewRequestWithContext(ctx, head.Text(0), head.Text(1), nil)
	if err != nil {
		newBody(ctx, o, int(head.Int(2))).Close()
		return nil, fmt.Errorf("read request: %w", err)
	}
	req.Header = headerOf(head[3:])
	req.RequestURI = req.URL.RequestURI()
	req.RemoteAddr = req.Header.Get("Cf-Connecting-Ip")
	req.Body = newBody(ctx, o, int(head.Int(2)))
	req.ContentLength = 0
	if head.Int(2) != 0 {
		req.ContentLength = -1
		if n, err := strconv.ParseInt(req.Header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
			req.ContentLength = n
		}
	}
	return req, nil
}
