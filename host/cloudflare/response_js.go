package cloudflare

import (
	"context"
	"net/http"
	"time"
)

// response is the http.ResponseWriter of one request. What is not flushed is kept back, up to
// keepBack, so that most answers cross in one piece; from then on a Write or Flush waits while the
// client's side has not taken the bytes before, and fails when the client has left.
type response struct {
	o       *Obj
	ctx     context.Context
	n       int
	header  http.Header // the handler's
	sent    http.Header // as it was when the status was set
	status  int
	buf     []byte
	started bool // the head is out, bytes go into a stream
	err     error
}

var (
	_ http.ResponseWriter = (*response)(nil)
	_ http.Flusher        = (*response)(nil)
)

const (
	// keepBack is what a response holds before it becomes a stream, and the largest piece of one.
	keepBack = 32 << 10
	// maxUnread is what may be on its way to a client that has not taken it.
	maxUnread = 64 << 10
)

// Header is sent with the status.
func (w *response) Header() http.Header { return w.header }

// WriteHeader sets the status; the first one counts.
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 { // interim answers cannot be sent here
		w.status = status
		w.sent = w.header.Clone()
	}
}

// Write keeps p back or streams it.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	written := 0
	for len(p) > 0 && w.err == nil {
		n := min(len(p), keepBack-len(w.buf))
		w.buf = append(w.buf, p[:n]...)
		p = p[n:]
		written += n
		if len(w.buf) == keepBack {
			w.flush()
		}
	}
	return written, w.err
}

// writeTime is how long a client may leave unread what is on its way, as worker.DefaultWriteTimeout
// natively: one that does not read must hold nothing up.
const writeTime = 30 * time.Second

// Flush sends what was kept back.
func (w *response) Flush() { w.flush() }

// FlushError is Flush that reports, for http.ResponseController.
func (w *response) FlushError() error {
	w.flush()
	return w.err
}

func (w *response) flush() {
	if w.err != nil {
		return
	}
	w.WriteHeader(http.StatusOK)
	if !w.started {
		if _, w.err = w.o.host("respond", w.n, w.head()); w.err != nil {
			return
		}
		w.started = true
	}
	if len(w.buf) == 0 {
		return
	}
	w.err = w.send()
	w.buf = w.buf[:0]
	if w.err != nil {
		w.o.gone(w.n)
	}
}

// send hands over what was kept back. It waits for the client only when much is on its way: an event
// for each piece that was taken would cost more than the piece.
func (w *response) send() error {
	if err := w.o.alive(w.ctx); err != nil { // that the client has left ends the context
		return err
	}
	unread, err := w.o.host("send", w.n, toBytes(w.buf))
	if err != nil || unread.Int() <= maxUnread {
		return err
	}
	ctx, cancel := w.o.WithTimeout(w.ctx, writeTime)
	defer cancel()
	_, err = w.o.await(ctx, "sent", w.n)
	return err
}

// finish ends the answer after the handler has returned err. Of one that has failed JavaScript tells the
// client, as of an instance that has ended.
func (w *response) finish(err error) {
	switch {
	case err != nil:
		w.o.tell("fail", w.n, err.Error())
	case w.started:
		w.flush()
		if w.err != nil {
			w.o.tell("fail", w.n, "the client has left")
			return
		}
		w.o.tell("done", w.n)
	default:
		w.WriteHeader(http.StatusOK)
		w.o.tell("reply", w.n, w.head(), toBytes(w.buf))
	}
}

// head packs status and headers. A missing content type is found in what is there, as net/http does.
func (w *response) head() any {
	if _, set := w.sent["Content-Type"]; !set && len(w.buf) > 0 {
		w.sent.Set("Content-Type", http.DetectContentType(w.buf))
	}
	return toBytes(packRows(append([]any{w.status}, flatten(w.sent)...)))
}
