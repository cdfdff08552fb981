package worker

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// defaultMessages is where the Messages API is unless model.baseUrl says otherwise.
const defaultMessages = "https://api.anthropic.com"

// relay passes a request on to the Messages API and its answer back, both as they are: the body's bytes,
// the status, the headers but those of ownHeader. The key is the client's own, and a token of ours goes
// nowhere. It ends when the client leaves.
func (c *call) relay(body []byte) error {
	if c.Network == nil || c.Model == nil {
		return &refused{http.StatusNotImplemented, "not_implemented", "this host passes no requests on; name a conversation in " + headerSession}
	}
	model, err := c.Config.Model(c.r.Context())
	if err != nil {
		return err
	}
	ctx, cancel := c.Runtime.WithTimeout(c.r.Context(), c.Wait)
	defer cancel()
	base := strings.TrimSuffix(model.Messages, "/")
	if base == "" {
		base = defaultMessages
	}
	to := base + c.r.URL.EscapedPath()
	if c.r.URL.RawQuery != "" {
		to += "?" + c.r.URL.RawQuery
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("pass on to %s: the base URL is not a URL: %w", clip(base, 100), tidemark.ErrUnavailable)
	}
	req.Header = c.onward()
	if req.Header.Get("X-Api-Key") == "" && req.Header.Get("Authorization") == "" {
		return &refused{http.StatusUnauthorized, "unauthorized",
			"no key of Anthropic: without " + headerSession + " the request goes to its API with your own key in x-api-key or authorization, and Tidemark's token travels in x-tidemark-token or the path /t/TOKEN/v1/messages"}
	}
	res, err := c.Network.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil && c.r.Context().Err() == nil {
			return fmt.Errorf("pass on: the API did not answer: %w", tidemark.ErrTimeout)
		}
		return &tidemark.APIError{Class: tidemark.ClassNetwork, Message: "no answer from " + req.URL.Host}
	}
	defer res.Body.Close()
	c.end()
	return c.back(res, cancel)
}

// onward copies the headers that go on. What holds the token of this server stays here, whatever header
// it is: it may be in x-api-key or authorization of a client that was set up for another door.
func (c *call) onward() http.Header {
	out := http.Header{}
	drop := map[string]bool{}
	for _, line := range c.r.Header.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			drop[http.CanonicalHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	for name, values := range c.r.Header {
		if ownHeader(name) || drop[name] {
			continue
		}
		for _, v := range values {
			if !c.holdsToken(v) {
				out[name] = append(out[name], v)
			}
		}
	}
	if out["User-Agent"] == nil {
		out["User-Agent"] = []string{""} // or Go would send its own
	}
	return out
}

// holdsToken reports whether a value is the token of this server, or has it in it.
func (c *call) holdsToken(value string) bool {
	if c.Token == "" {
		return false
	}
	want, got := sha256.Sum256([]byte(c.Token)), sha256.Sum256([]byte(value))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1 || strings.Contains(value, c.Token)
}

// back sends an answer as it comes; stop ends it early.
func (c *call) back(res *http.Response, stop func()) error {
	h := c.w.Header()
	for name, values := range res.Header {
		switch {
		case name == "Vary": // ours is of the page's origin
			h[name] = append(h[name], values...)
		case ownHeader(name) && name != "Content-Length", h[name] != nil: // what stands there is for safety, or the request's id
		default:
			h[name] = values
		}
	}
	c.w.WriteHeader(res.StatusCode)
	s := &stream{c: c, ctl: http.NewResponseController(c.w)}
	defer s.end()
	gap := between{events: eventStream(res.Header)}
	return attend(c, chunks(res.Body), stop, func(p []byte, err error) (bool, error) {
		if err != nil {
			return false, fmt.Errorf("pass back: %w", err) // the answer is broken off, as that of the API was
		}
		gap.pass(p)
		return false, s.write(p)
	}, func() error {
		if !gap.open() {
			return nil
		}
		return s.ping()
	})
}

// chunks reads a body to its end. A chunk stands until the one behind the next is asked for.
func chunks(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var bufs [2][]byte
		for i := 0; ; i = 1 - i {
			if bufs[i] == nil {
				bufs[i] = make([]byte, 32<<10)
			}
			n, err := r.Read(bufs[i])
			if n > 0 && !yield(bufs[i][:n], nil) || errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// eventStream reports an answer of plain server-sent events, to which a comment may be added.
func eventStream(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == codeEventStream && h.Get("Content-Encoding") == "" && h.Get("Content-Length") == ""
}

// between knows whether a stream stands between two events, where a comment of ours changes none of them.
// It is pure.
type between struct {
	events bool
	tail   [4]byte // the last ones that passed
}

func (b *between) pass(p []byte) {
	p = p[max(0, len(p)-len(b.tail)):]
	copy(b.tail[:], b.tail[len(p):])
	copy(b.tail[len(b.tail)-len(p):], p)
}

func (b *between) open() bool {
	tail := b.tail[:]
	return b.events && (b.tail == [4]byte{} || bytes.HasSuffix(tail, []byte("\n\n")) || bytes.Equal(tail, []byte("\r\n\r\n")))
}
