package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// handlerTransport answers requests by a handler of this process. The answer streams: its body can
// be read while the handler still writes.
type handlerTransport struct{ h http.Handler }

var _ http.RoundTripper = handlerTransport{}

// InThisProcess answers by a handler of this process.
func InThisProcess(h http.Handler) http.RoundTripper { return handlerTransport{h} }

// RoundTrip implements http.RoundTripper. The handler ends when the context of the request does or
// the body of the answer is closed.
func (t handlerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	in := req.Clone(ctx)
	in.RemoteAddr, in.Host, in.RequestURI = "127.0.0.1:0", "localhost", req.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	r, w := io.Pipe()
	a := &answerWriter{header: http.Header{}, pipe: w, begun: make(chan struct{})}
	go func() {
		defer func() {
			if p := recover(); p != nil {
				err, ok := p.(error)
				if !ok || !errors.Is(err, http.ErrAbortHandler) {
					err = fmt.Errorf("panic in the handler: %v", p)
				}
				w.CloseWithError(err)
			}
			a.WriteHeader(http.StatusOK)
			w.Close() // after CloseWithError it changes nothing
			cancel(context.Canceled)
		}()
		t.h.ServeHTTP(a, in)
	}()
	<-a.begun
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: &answerBody{r, cancel}, ContentLength: -1, Request: req,
	}, nil
}

// answerWriter is the handler's side.
type answerWriter struct {
	header, sent http.Header
	pipe         *io.PipeWriter
	once         sync.Once
	status       int
	begun        chan struct{} // closed when status and sent are there
}

// Header implements http.ResponseWriter.
func (a *answerWriter) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answerWriter) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

// Write implements http.ResponseWriter. It waits until the client has read.
func (a *answerWriter) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.pipe.Write(p)
}

// FlushError is for http.ResponseController: nothing is held back.
func (a *answerWriter) FlushError() error { return nil }

// answerBody is the client's side.
type answerBody struct {
	*io.PipeReader
	cancel context.CancelCauseFunc
}

// Close ends the handler too.
func (b *answerBody) Close() error {
	b.cancel(errors.New("the client has gone"))
	return b.PipeReader.Close()
}
