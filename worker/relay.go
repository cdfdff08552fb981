package worker

import (
	"bytes"
	"cmp"
	"context"
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
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// Where the APIs are unless an Upstream says otherwise.
const (
	defaultMessages = "https://api.anthropic.com"
	defaultChat     = "https://api.openai.com/v1"
)

// Upstream is an API that requests of its clients are passed on to.
type Upstream struct {
	Base string // base URL; empty: the vendor's own
	Key  string // ours, for a client that has none; empty: it must have its own
}

// passage is a request of a client on its way to the API that the client means. The key is the client's own, or
// ours; a token of this server goes nowhere. It ends when the client leaves.
type passage struct {
	*request
	path        string // behind the API's version, as it came
	chat, count bool   // it is of OpenAI's API, or only asks for a size
	treatment   string // off, or as package proxy names them
	url         string
	header      http.Header // as they go on
	plain       []byte      // the body without its coding, if it came in one
	credential  string      // whose conversations it is of: the key that goes on, or ownCredential
	taken       int64       // bytes that Admit let in
	ctx         context.Context
	stop        context.CancelFunc
}

// ownCredential stands for the key of this server, which all clients without one share.
const ownCredential = "own"

// passage prepares to pass a request on to a path behind the API's version.
func (c *request) passage(path string) (*passage, error) {
	mode, err := c.mode()
	if err != nil {
		return nil, err
	}
	if c.Network == nil || c.Model == nil {
		return nil, &refused{http.StatusNotImplemented, "not_implemented", "this host passes no requests on; name a conversation in " + headerSession}
	}
	model, err := c.Config.Model(c.r.Context())
	if err != nil {
		return nil, err
	}
	p := &passage{request: c, path: path, chat: ofOpenAI(path, c.r.Header), count: path == countPath, treatment: cmp.Or(mode, model.Treatment, modeOff), header: c.onward()}
	if err := p.address(model); err != nil {
		return nil, err
	}
	p.ctx, p.stop = c.Runtime.WithTimeout(c.r.Context(), c.Wait)
	return p, nil
}

// address says where the request goes, and under which key.
func (p *passage) address(m Model) error {
	up, base, version := m.Messages, defaultMessages, "/v1/"
	if p.chat {
		up, base, version = m.Chat, defaultChat, "/"
	}
	p.url = strings.TrimSuffix(cmp.Or(up.Base, base), "/") + version + p.path
	if p.r.URL.RawQuery != "" {
		p.url += "?" + p.r.URL.RawQuery
	}
	p.credential = cmp.Or(strings.Join(p.header.Values("X-Api-Key"), ", "), strings.Join(p.header.Values("Authorization"), ", "))
	if p.credential != "" {
		return nil
	}
	p.credential = ownCredential
	switch {
	case up.Key != "" && p.chat:
		p.header.Set("Authorization", "Bearer "+up.Key)
	case up.Key != "":
		p.header.Set("X-Api-Key", up.Key)
	case p.chat && up.Base != "": // a model of one's own may want none
	case p.chat:
		return noKey("OpenAI", "authorization", "/t/TOKEN/v1/chat/completions")
	default:
		return noKey("Anthropic", "x-api-key or authorization", "/t/TOKEN/v1/messages")
	}
	return nil
}

func noKey(whose, header, path string) error {
	return &refused{http.StatusUnauthorized, "unauthorized", fmt.Sprintf(
		"no key of %s: without %s the request goes to its API with your own key in %s, and Tidemark's token travels in x-tidemark-token or the path %s",
		whose, headerSession, header, path)}
}

// relay passes a request on and its answer back, both as they are: the body's bytes, the status, the headers
// but those of ownHeader. A size below 0 is not known.
func (p *passage) relay(body io.Reader, size int64) error {
	res, err := p.post(p.ctx, p.header, body, size)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	p.end()
	return p.back(res, p.stop)
}

// post sends a body to where the request goes.
func (p *passage) post(ctx context.Context, header http.Header, body io.Reader, size int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, p.r.Method, p.url, body)
	if err != nil {
		return nil, fmt.Errorf("pass on to %s: the base URL is not a URL: %w", clip.To(p.url, 100), tidemark.ErrUnavailable)
	}
	if req.ContentLength == 0 && size > 0 {
		req.ContentLength = size
	}
	req.Header = header.Clone()
	res, err := p.Network.RoundTrip(req)
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil && p.r.Context().Err() == nil:
		return nil, fmt.Errorf("pass on: the API did not answer: %w", tidemark.ErrTimeout)
	case errors.Is(err, tidemark.ErrTooLarge):
		return nil, fmt.Errorf("pass on: %w", err)
	}
	if p.r.Context().Err() == nil {
		p.Logger.Warn("no answer from an API", "id", p.w.id, "host", req.URL.Host, "err", err)
	}
	return nil, &tidemark.APIError{Class: tidemark.ClassNetwork, Message: "no answer from " + req.URL.Host}
}

// onward copies the headers that go on. What holds the token of this server stays here, whatever header
// it is: it may be in x-api-key or authorization of a client that was set up for another door.
func (c *request) onward() http.Header {
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
func (c *request) holdsToken(value string) bool {
	if c.Token == "" {
		return false
	}
	want, got := sha256.Sum256([]byte(c.Token)), sha256.Sum256([]byte(value))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1 || strings.Contains(value, c.Token)
}

// head sends the head of an answer as it came; whole says that its body comes as it is, too.
func (c *request) head(res *http.Response, whole bool) {
	h := c.w.Header()
	for name, values := range res.Header {
		switch {
		case name == "Vary": // ours is of the page's origin
			h[name] = append(h[name], values...)
		case !whole && (name == "Content-Length" || name == "Content-Encoding"):
		case ownHeader(name) && name != "Content-Length", h[name] != nil: // what stands there is for safety, or the request's id
		default:
			h[name] = values
		}
	}
	c.w.WriteHeader(res.StatusCode)
}

// back sends an answer as it comes; stop ends it early.
func (c *request) back(res *http.Response, stop func()) error {
	c.head(res, true)
	s := &stream{c: c, ctl: http.NewResponseController(c.w)}
	defer s.end()
	gap := between{events: eventStream(res.Header)}
	err := attend(c, chunks(res.Body), stop, func(p []byte, err error) (bool, error) {
		if err != nil {
			return false, fmt.Errorf("pass back: %w", err) // the answer is broken off, as that of the API was
		}
		gap.pass(p)
		return false, s.write(p)
	}, gap.open, s.ping)
	if isStopping(err) {
		return s.fail(errorFormOf(c.r), err)
	}
	return err
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
	return mediaOf(h) == codeEventStream && h.Get("Content-Encoding") == "" && h.Get("Content-Length") == ""
}

// mediaOf is the type of an answer without its parameters, empty for none that can be read.
func mediaOf(h http.Header) string {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
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
