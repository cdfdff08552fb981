package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// Headers of clients that keep their history themselves.
const (
	headerMode  = "X-Tidemark-Mode"  // what is done with the request
	headerProxy = "X-Tidemark-Proxy" // the name of its conversation

	// Of an answer: why the request went on as it came though it was to be treated, as KIND: REASON.
	headerUntouched = "X-Tidemark-Untouched"
)

// modeOff passes a request on and keeps nothing of it.
const modeOff = "off"

// mode is what the request asks to be done with it, empty when it does not say.
func (c *request) mode() (string, error) {
	mode := c.r.Header.Get(headerMode)
	if all := append([]string{modeOff}, proxy.Treatments()...); mode != "" && !slices.Contains(all, mode) {
		slices.Sort(all)
		return "", fmt.Errorf("header %s: %q: want one of %s: %w", strings.ToLower(headerMode), clip.To(mode, 40), strings.Join(all, ", "), tidemark.ErrInvalid)
	}
	return mode, nil
}

// named is what the request calls its conversation, by header or by path.
func (c *request) named() string {
	if name := c.r.Header.Get(headerProxy); name != "" {
		return name
	}
	return c.r.PathValue("name")
}

// elsewhere reports a request of chat completions that is meant for OpenAI's API, or one like it: it says what
// is to be done with it, or which conversation it is of.
func (c *request) elsewhere() bool { return c.r.Header.Get(headerMode) != "" || c.named() != "" }

// ownKey reports that the client brought a key of its own beside the token of this server. Where there is no
// token, a key says nothing: clients of OpenAI's API must send one, whatever it is.
func (c *request) ownKey() bool { return c.Token != "" && c.onward().Get("Authorization") != "" }

// pass is a request of a client that keeps its history itself: it goes on to the API that it is for.
func pass(c *request, path string) (any, error) {
	p, err := c.passage(path)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	raw, whole, err := p.read()
	if whole && err == nil {
		return nil, p.through(raw)
	}
	kind, why := proxy.TooLarge, fmt.Sprintf("the body has more than the %d bytes that are held", p.MaxBody)
	switch coded := errors.Is(err, errCoded); {
	case coded:
		kind, why = proxy.Unreadable, failureOf(err).text
	case err != nil && (p.packed == nil || !errors.Is(err, tidemark.ErrTooLarge)):
		return nil, err
	}
	p.Logger.Warn("a request is passed on untouched", "id", p.w.id, "reason", kind)
	p.untouched(kind, why)
	p.Metrics.passed(modeOff, p.treatment != modeOff)
	if p.packed != nil {
		return nil, p.relay(p.packed.all(), p.packed.size)
	}
	return nil, p.relay(io.MultiReader(bytes.NewReader(raw), p.r.Body), p.r.ContentLength) // only a few pieces of it are in memory at a time
}

// admitWait is how long a large body waits for others to leave. Behind that its client is asked to come again.
const (
	admitWait  = 10 * time.Second
	admitPause = 50 * time.Millisecond
)

// read reads the body. Where memory is no concern of the host it may be of any size: one that is over the bound is
// read in parts, and whole is false.
func (p *passage) read() (raw []byte, whole bool, err error) {
	if p.treatment != modeOff {
		if err := p.unpack(); err != nil {
			return nil, false, err
		}
	}
	if p.Admit != nil {
		raw, err = p.admitted(p.MaxBody, freeBody, p.patiently)
		return raw, true, err
	}
	size := p.r.ContentLength
	if size > p.MaxBody {
		return nil, false, nil
	}
	var b bytes.Buffer
	if size > 0 { // else it grows by copies
		b.Grow(int(size) + bytes.MinRead)
	}
	if _, err = b.ReadFrom(io.LimitReader(p.r.Body, p.MaxBody+1)); err != nil {
		return nil, false, fmt.Errorf("read body: %w", err)
	}
	return b.Bytes(), int64(b.Len()) <= p.MaxBody, nil
}

// patiently is Admit for requests that are not refused for the sake of our memory at once.
func (p *passage) patiently(size int64) (release func(), ok bool) {
	for until := p.Runtime.Now().Add(admitWait); ; {
		if release, ok = p.Admit(size); ok {
			p.taken = size
		}
		if ok || p.Runtime.Now().After(until) || p.Runtime.Sleep(p.ctx, admitPause) != nil {
			return release, ok
		}
	}
}

// keptShare is how much of what a large request takes is held while its answer comes: its body, to be sent again, and
// no longer the copies that were made on its way.
const keptShare = 3

// shrink gives back what a request no longer takes.
func (p *passage) shrink() {
	if p.release == nil {
		return
	}
	p.end()
	if release, ok := p.Admit(p.taken / keptShare); ok {
		p.release = release
	}
}

// through has the conversation of a request say what goes on and what comes back. What goes wrong on this side is no
// matter of the client's: the request goes on as it came.
func (p *passage) through(raw []byte) error {
	p.plain = raw
	conv, key, err := p.conversation(raw)
	if p.r.Context().Err() != nil { // nobody waits, and nothing is wrong here
		return errLeft
	}
	if err != nil {
		p.Logger.Warn("a request is passed on untouched", "id", p.w.id, "reason", proxy.Stored, "err", err)
		p.untouched(proxy.Stored, err.Error())
	}
	var x *proxy.Exchange
	if conv != nil {
		ask := proxy.Ask{Treatment: p.treatment, Body: raw, Count: p.count}
		if p.chat {
			ask.Dialect = body.Chat
		}
		if x, err = conv.Begin(p.ctx, ask); err != nil {
			p.Logger.Warn("a request is passed on untouched", "id", p.w.id, "session", key, "reason", proxy.Other, "err", err)
			p.untouched(proxy.Other, err.Error())
		}
	}
	if x == nil {
		p.Metrics.passed(modeOff, p.treatment != modeOff)
		raw, _ = p.wire(raw)
		return p.relay(bytes.NewReader(raw), int64(len(raw)))
	}
	treatment := x.Treatment()
	p.Metrics.passed(treatment, true)
	p.untouched(x.Untouched())
	p.w.Header().Set(headerSession, string(key))
	return p.exchange(x)
}

// untouched tells that the request goes on as it came, and why: who counts, and whoever runs the client, by the head of the
// answer. An empty kind is a request that is treated.
func (p *passage) untouched(kind, why string) {
	if kind == "" || p.treatment == modeOff {
		return
	}
	why = clip.To(strings.Join(strings.FieldsFunc(why, func(r rune) bool { return r <= ' ' || r > '~' }), " "), 300)
	p.Metrics.untouched(kind, why)
	p.w.Header().Set(headerUntouched, kind+": "+why)
}

// conversation returns what the request is a part of, nil for nothing that is kept.
func (p *passage) conversation(raw []byte) (*proxy.Conversation, tidemark.Key, error) {
	if p.treatment == modeOff {
		return nil, "", nil
	}
	name := p.named()
	if name == "" {
		name = sessionOf(raw, p.chat)
	}
	if name == "" { // it is no request that the API would take
		p.Logger.Warn("a request is passed on untouched", "id", p.w.id, "reason", proxy.Unreadable)
		p.untouched(proxy.Unreadable, "the body is no JSON object with messages")
		return nil, "", nil
	}
	if p.Proxies == nil {
		p.untouched(proxy.Other, "this host keeps no conversations")
		return nil, "", nil
	}
	key := proxyKey(p.credential, name)
	conv, err := p.Proxies(p.ctx, key)
	if err != nil {
		return nil, "", fmt.Errorf("open conversation %s: %w", key, err)
	}
	return conv, key, nil
}

// writable refuses to say anything in a conversation whose client keeps the history: what that does not know
// would be gone with its next request.
func writable(key tidemark.Key) error {
	if key.Channel() != proxyChannel {
		return nil
	}
	return fmt.Errorf("session %s: its client keeps the history, so only that goes on with it; read it here, or begin another one: %w", key, tidemark.ErrConflict)
}

// exchange carries a request and its answer.
func (p *passage) exchange(x *proxy.Exchange) error {
	e := &exchange{passage: p, x: x}
	p.header.Set("Accept-Encoding", "identity") // the answer is read on its way
	ctx, stop := context.WithCancel(p.ctx)
	defer stop()
	res, err := e.send(ctx)
	if err == nil && x.Refused(res.StatusCode) { // without the edits it may be taken
		res.Body.Close()
		if res, err = e.send(ctx); err == nil && res.StatusCode < http.StatusBadRequest {
			e.untouched(x.Untouched()) // else it was not our edits: the request is refused as the client sent it
		}
	}
	if err != nil {
		e.x.Broken(e.late(), err)
		return err
	}
	defer res.Body.Close()
	media := mediaOf(res.Header)
	if coded := res.Header.Get("Content-Encoding"); coded != "" && coded != "identity" {
		e.x.Broken(e.late(), fmt.Errorf("the API answered in %s, which it was not asked for", clip.To(coded, 40)))
		return e.back(res, stop)
	}
	if !x.Answer(e.late(), res.StatusCode, media == codeEventStream) {
		if _, err := x.Finish(e.late()); err != nil {
			e.Logger.Warn("a request was not kept", "id", e.w.id, "err", err)
		}
		e.end()
		return e.back(res, stop)
	}
	e.res, e.live = res, media == codeEventStream
	e.shrink()
	return e.run(stop)
}

// exchange is a request whose answer is read on its way to the client, and may take several calls of the API.
type exchange struct {
	*passage
	x    *proxy.Exchange
	res  *http.Response // the first answer, whose head the client sees
	live bool           // it is a stream

	out  *stream // nil while nothing was sent
	gap  between
	some bool // of the answers a byte came
}

// send makes the next call of the API.
func (e *exchange) send(ctx context.Context) (*http.Response, error) {
	raw, header := e.wire(e.x.Body())
	return e.post(ctx, header, bytes.NewReader(raw), int64(len(raw)))
}

// late is for what is written down of a request whose client may have gone.
func (e *exchange) late() context.Context { return context.WithoutCancel(e.r.Context()) }

// begin sends the head of the answer.
func (e *exchange) begin() {
	e.head(e.res, false)
	e.out, e.gap = &stream{c: e.request, ctl: http.NewResponseController(e.w)}, between{events: true}
}

// run carries the answer; stop ends the first call of the API.
func (e *exchange) run(stop func()) error {
	if e.live {
		e.begin()
		defer e.out.end()
	}
	if err := e.calls(stop); err != nil {
		return e.broken(err)
	}
	rest, err := e.x.Finish(e.late())
	if err != nil {
		e.Logger.Warn("an answer was not kept", "id", e.w.id, "err", err)
	}
	if !e.live {
		if len(rest) == 0 && e.some { // an empty answer is the API's
			return fmt.Errorf("the API's answer could not be read: %w", errors.Join(err, tidemark.ErrUnavailable))
		}
		e.w.Header().Set("Content-Length", fmt.Sprint(len(rest)))
		e.begin()
		defer e.out.end()
	}
	return e.write(rest)
}

// write sends what the client is to have now.
func (e *exchange) write(p []byte) error {
	if len(p) == 0 || e.out == nil {
		return nil
	}
	e.gap.pass(p)
	return e.out.write(p)
}

// calls carries the answers of the API, one behind the other: each is asked for when the one before had nothing but
// questions to us.
func (e *exchange) calls(stop func()) error {
	for first := true; first || e.x.Next(e.ctx); first = false {
		answer := chunks(e.res.Body)
		if !first {
			var ctx context.Context
			ctx, stop = context.WithCancel(e.ctx)
			answer = e.again(ctx, e.x.Body())
		}
		if err := attend(e.request, answer, stop, e.take, e.open, e.ping); err != nil {
			return err
		}
	}
	return nil
}

func (e *exchange) take(p []byte, err error) (bool, error) {
	if err != nil {
		return false, e.cut(err)
	}
	e.some = e.some || len(p) > 0
	out, err := e.x.Feed(p)
	if err != nil { // whatever it is, the request is not to blame
		return false, &tidemark.APIError{Class: tidemark.ClassNetwork, Message: "its answer could not be read: " + err.Error()}
	}
	return false, e.write(out)
}

// cut is why an answer of the API is not whole. What the network says of it is no matter of the client's.
func (e *exchange) cut(err error) error {
	var no *refusal
	var api *tidemark.APIError
	switch {
	case errors.As(err, &no), errors.As(err, &api), errors.Is(err, tidemark.ErrTimeout), e.r.Context().Err() != nil:
		return err
	case errors.Is(context.Cause(e.ctx), tidemark.ErrTimeout):
		return fmt.Errorf("the API's answer did not end: %w", tidemark.ErrTimeout)
	}
	return &tidemark.APIError{Class: tidemark.ClassNetwork, Message: "the answer broke off"}
}

// open reports that an event of ours would change none of the API's.
func (e *exchange) open() bool { return e.out == nil || e.gap.open() }

// ping is a sign of life between two events, for which both APIs have comments.
func (e *exchange) ping() error {
	if e.out == nil {
		return nil
	}
	return e.out.ping()
}

// broken ends an answer that is not whole.
func (e *exchange) broken(err error) error {
	said := e.x.Broken(e.late(), err)
	if no := (*refusal)(nil); e.out == nil && errors.As(err, &no) {
		return e.say(no)
	}
	if e.out != nil && isStopping(err) {
		return e.out.fail(errorFormOf(e.r), err)
	}
	if e.out == nil || len(said) == 0 || e.treatment == proxy.Observe || errors.Is(err, errLeft) || e.r.Context().Err() != nil {
		return err
	}
	if err := e.write(said); err != nil {
		return err
	}
	return errors.Join(err, errTold)
}
