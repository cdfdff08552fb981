// Package wire is what the clients of messaging platforms share: how a request is sent once, and how a file is
// read within a bound. What an answer means is each platform's own. Begin with [Post]: it alone says that a
// message may have been sent, since what may have been sent is never sent again.
package wire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Base reads the address of an API; nil when it is none.
func Base(address string) *url.URL {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Host == "" || u.User != nil {
		return nil
	}
	return u
}

// Within bounds a context, where there is a runtime to do so.
func Within(ctx context.Context, rt tidemark.Runtime, d time.Duration) (context.Context, context.CancelFunc) {
	if rt == nil {
		return ctx, func() {}
	}
	return rt.WithTimeout(ctx, d)
}

// Same compares secrets in constant time, of hashes, so that the length does not show either.
func Same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// ErrAddress is a request that cannot be made: its address is none.
var ErrAddress = errors.New("the address is not a URL")

// Post sends JSON once, with a header of the caller's. begun reports whether some of it was taken from us: where
// there is no answer, it may have arrived. A Worker's fetch always takes it.
func Post(ctx context.Context, t http.RoundTripper, address string, h http.Header, payload []byte) (resp *http.Response, begun bool, err error) {
	taken := &atomic.Bool{}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, newUpload(payload, taken))
	if err != nil {
		return nil, false, ErrAddress // its own text has the address, which may be a secret
	}
	req.ContentLength = int64(len(payload))
	req.GetBody = func() (io.ReadCloser, error) { return newUpload(payload, taken), nil }
	for name, values := range h {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err = t.RoundTrip(req)
	return resp, taken.Load(), err
}

// Lost words a request or an answer that was cut off.
func Lost(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); cause != nil {
		return cause.Error()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the answer was cut off"
	}
	return err.Error()
}

// upload is a request's body that knows whether it was begun.
type upload struct {
	bytes.Reader
	begun *atomic.Bool
}

// newUpload begins anew: a transport asks for a second body only when nothing of the first was sent.
func newUpload(payload []byte, begun *atomic.Bool) *upload {
	begun.Store(false)
	u := &upload{begun: begun}
	u.Reset(payload)
	return u
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.begun.Store(true)
	return u.Reader.Read(p)
}

// WriteTo implements io.WriterTo.
func (u *upload) WriteTo(w io.Writer) (int64, error) {
	u.begun.Store(true)
	return u.Reader.WriteTo(w)
}

// Close implements io.Closer.
func (u *upload) Close() error { return nil }

// Bounded is a body that ends with an error of the caller's when there is more of it than that. Closing it
// calls done, too.
func Bounded(body io.ReadCloser, most int64, more error, done func()) io.ReadCloser {
	return &bounded{body, most, more, done}
}

type bounded struct {
	body io.ReadCloser
	left int64
	more error
	done func()
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.more
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.more
	}
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error {
	defer b.done()
	return b.body.Close()
}
