package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// decodeMessage reads the body of a message: exactly one of text, content and message.
func decodeMessage(raw []byte) (session.Input, error) {
	var in session.Input
	var text *string
	var content, message json.RawMessage
	var channel string
	err := decodeBody(raw,
		field{"text", "a string", &text}, field{"content", "a string or a list of blocks", &content},
		field{"message", `{"role":"user","content":…}`, &message}, field{"id", "a string", &in.ID}, field{"channel", "a string", &channel})
	if err != nil {
		return in, err
	}
	given := 0
	for _, there := range []bool{text != nil, content != nil, message != nil} {
		if there {
			given++
		}
	}
	switch {
	case given != 1:
		return in, fmt.Errorf("body: want exactly one of \"text\", \"content\" and \"message\", got %d: %w", given, tidemark.ErrInvalid)
	case text != nil && strings.TrimSpace(*text) == "":
		return in, fmt.Errorf("body: \"text\" is empty; say something: %w", tidemark.ErrInvalid)
	case text != nil:
		in.Message = tidemark.NewText(tidemark.User, *text)
	case content != nil:
		message = append(append([]byte(`{"role":"user","content":`), content...), '}')
		fallthrough
	default:
		if err := in.Message.UnmarshalJSON(message); err != nil {
			return in, fmt.Errorf("body: %w", err)
		}
	}
	in.Origin = tidemark.Origin{From: tidemark.FromPerson, Channel: "api"}
	if channel != "" {
		if len(channel) > 40 || !plainWord(channel) {
			return in, fmt.Errorf("body: \"channel\" must be up to 40 letters, digits, - or _: %w", tidemark.ErrInvalid)
		}
		in.Origin.Channel = channel
	}
	return in, nil
}

func plainWord(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return true
}

// postMessage says something in a session.
func (c *call) postMessage() error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	in, err := decodeMessage(raw)
	if err != nil {
		return err
	}
	return c.deliver(in, true)
}

// postCompact queues /compact.
func (c *call) postCompact() error { return c.command(session.InputCompact, "instructions") }

// postReset queues /reset.
func (c *call) postReset() error { return c.command(session.InputReset, "reason") }

func (c *call) command(kind, name string) error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	in := session.Input{Kind: kind, Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: "api"}}
	if err := decodeBody(raw, field{name, "a string", &in.Text}, field{"id", "a string", &in.ID}); err != nil {
		return err
	}
	return c.deliver(in, false)
}

// deliver makes an input durable and follows it to the end of its turn. It listens before it
// posts, so that no notice is missed; what is missed all the same is in the log.
func (c *call) deliver(in session.Input, create bool) error {
	if key := c.r.Header.Get("Idempotency-Key"); key != "" {
		if in.ID != "" && in.ID != key {
			return fmt.Errorf("header Idempotency-Key and \"id\" differ; send one of them: %w", tidemark.ErrInvalid)
		}
		in.ID = key
	}
	if err := in.Validate(); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	events, err := c.streaming()
	if err != nil {
		return err
	}
	wait, err := c.flag("wait", true)
	if err != nil {
		return err
	}
	s, err := c.session(create)
	if err != nil {
		return err
	}
	if !wait {
		receipt, err := s.Post(c.r.Context(), in)
		if err != nil {
			return err
		}
		return c.reply(http.StatusAccepted, receipt)
	}
	ctx, cancel := c.Runtime.WithTimeout(c.r.Context(), c.Wait)
	defer cancel()
	f := &follower{call: c, s: s}
	if f.sub, err = s.Subscribe(); err != nil {
		return err
	}
	defer func() { f.sub.Close() }()
	receipt, err := s.Post(ctx, in)
	c.end() // what is large stands in the bucket now, and the turn asks for itself
	if err != nil {
		return err
	}
	c.w.input = receipt.ID
	f.watch = newWatch(receipt.ID)
	f.out.Duplicate = receipt.Duplicate
	if events {
		f.stream = c.begin()
		defer f.stream.end()
	}
	return f.follow(ctx, receipt)
}

// follower follows one input for one client.
type follower struct {
	*call
	*watch
	s      *session.Session
	sub    *session.Subscription
	stream *stream // nil when the client waits for the whole
}

// wireReceipt is a receipt as an event.
type wireReceipt struct {
	Type string `json:"type"`
	session.Receipt
}

// follow ends with the turn, or earlier: when the client leaves, the turn goes on without it.
func (f *follower) follow(ctx context.Context, receipt session.Receipt) error {
	err := f.pass(ctx, receipt)
	if err == nil {
		err = f.watch.err
	}
	if err != nil && context.Cause(ctx) != nil && f.r.Context().Err() == nil {
		err = &refused{http.StatusGatewayTimeout, "timeout", "the turn goes on; send the same id again to read its answer"}
	}
	if err == nil {
		info, e := f.s.Info(f.r.Context())
		if err = e; err == nil {
			out := f.watch.outcome(info)
			if f.stream != nil {
				return f.stream.event(out.Type, out)
			}
			return f.reply(http.StatusOK, out)
		}
	}
	if f.stream != nil && !errors.Is(err, errLeft) {
		return f.stream.fail(err)
	}
	return err
}

// pass hands on notices until the turn has ended.
func (f *follower) pass(ctx context.Context, receipt session.Receipt) error {
	if err := f.emit("receipt", wireReceipt{"receipt", receipt}); err != nil {
		return err
	}
	if receipt.Duplicate {
		if err := f.join(ctx, receipt.State); err != nil || f.ended {
			return err
		}
	}
	ticking, stop := context.WithCancel(ctx)
	defer stop()
	tick := f.every(ticking, f.Ping)
	for !f.ended {
		select {
		case <-f.sub.Ready:
			if err := f.drain(ctx); err != nil {
				return err
			}
		case <-tick:
			if f.stream != nil {
				if err := f.stream.ping(); err != nil {
					return err
				}
			}
			if err := f.look(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// emit sends an event to a client that listens.
func (f *follower) emit(name string, v any) error {
	if f.stream == nil {
		return nil
	}
	return f.stream.event(name, v)
}

// look asks the log whether the turn has ended.
func (f *follower) look(ctx context.Context) error {
	e, failure, ok, err := f.s.Reply(ctx, f.id)
	if err != nil || !ok {
		return err
	}
	if e.ID != "" {
		if e, err = f.s.Entry(ctx, e.ID); err != nil {
			return err
		}
	}
	return f.stored(e, failure)
}

// join takes up an input that was received before: its stored answer, or the run that has it.
func (f *follower) join(ctx context.Context, state string) error {
	if err := f.look(ctx); err != nil {
		return err
	}
	if f.ended && f.out.Reply != nil {
		return f.emit(session.NoticeReply, session.Notice{Type: session.NoticeReply, Inputs: []string{f.id}, Entry: f.out.Entry, Message: f.out.Reply})
	}
	if !f.ended && state != "new" && f.sub.Run != "" { // one run a session, so it is this one
		f.run, f.cur = f.sub.Run, f.sub.Run
		return f.partial()
	}
	return nil
}

// again listens anew after the client fell so far behind that the session cut it off.
func (f *follower) again(ctx context.Context) error {
	sub, err := f.s.Subscribe()
	if err != nil {
		return err
	}
	f.sub.Close()
	f.sub = sub
	if err := f.look(ctx); err != nil || f.ended {
		return err
	}
	if f.run == "" || f.run != sub.Run {
		return nil
	}
	if err := f.emit(session.NoticeRestart, session.Notice{Type: session.NoticeRestart, Run: f.run}); err != nil {
		return err
	}
	return f.partial()
}

// partial sends what the run has said before this client listened.
func (f *follower) partial() error {
	if f.sub.Partial == "" {
		return nil
	}
	return f.emit(session.NoticeText, session.Notice{Type: session.NoticeText, Run: f.sub.Run, Text: f.sub.Partial})
}

// drain hands on what is there to read. Who fell behind begins again with what the log says.
func (f *follower) drain(ctx context.Context) error {
	for n, ok := f.sub.Next(); ok && !f.ended; n, ok = f.sub.Next() {
		for _, p := range f.see(n) {
			if err := f.emit(p.Type, p); err != nil {
				return err
			}
		}
	}
	if f.sub.Behind() && !f.ended {
		return f.again(ctx)
	}
	return nil
}

// liveEvents passes on all notices of a session from now on.
func (c *call) liveEvents() error {
	s, err := c.session(false)
	if err != nil {
		return err
	}
	sub, err := s.Subscribe()
	if err != nil {
		return err
	}
	defer sub.Close()
	out := c.begin()
	defer out.end()
	if err := out.event("hello", session.Notice{Type: "hello", Run: sub.Run, Text: sub.Partial}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	tick := c.every(ctx, c.Ping)
	for {
		select {
		case <-sub.Ready:
			for n, ok := sub.Next(); ok; n, ok = sub.Next() {
				if err := out.event(n.Type, c.told(n)); err != nil {
					return err
				}
			}
			if sub.Behind() {
				return out.fail(&refused{http.StatusServiceUnavailable, "behind", "you read too slowly; read the log and listen again"})
			}
		case <-tick:
			if err := out.ping(); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// told is a notice as others than the one who asked may read it: a failure of ours is not spelt out.
func (c *call) told(n session.Notice) any {
	if n.Type != session.NoticeError || n.Err() == nil {
		return n
	}
	f := failureOf(n.Err())
	n.Text = f.text
	return struct {
		session.Notice
		Error wireFault `json:"error"`
	}{n, f.wire(c.w)}
}
