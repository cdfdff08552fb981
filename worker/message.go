package worker

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// decodeMessage reads the body of a message: exactly one of text, content and message, and beside them
// what its envelope has.
func decodeMessage(raw []byte, beside ...field) (session.Input, error) {
	var in session.Input
	var text *string
	var content, message json.RawMessage
	var channel string
	err := decodeBody(raw, append(beside,
		field{"text", "a string", &text}, field{"content", "a string or a list of blocks", &content},
		field{"message", `{"role":"user","content":…}`, &message}, field{"id", "a string", &in.ID}, field{"channel", "a string", &channel})...)
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
		for i, b := range in.Message.Content {
			if b.Type == "" {
				return in, fmt.Errorf("body: block %d has no \"type\": %w", i, tidemark.ErrInvalid)
			}
		}
	}
	in.Origin = tidemark.Origin{From: tidemark.FromPerson, Channel: "api", Owner: true}
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
func postMessage(c *request) (any, error) {
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	in, err := decodeMessage(raw)
	if err != nil {
		return nil, err
	}
	return deliver(c, in, true)
}

// postCompact queues /compact.
func postCompact(c *request) (any, error) { return command(c, session.InputCompact, "instructions") }

// postReset queues /reset.
func postReset(c *request) (any, error) { return command(c, session.InputReset, "reason") }

func command(c *request, kind, name string) (any, error) {
	in := session.Input{Kind: kind, Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: "api", Owner: true}}
	c.decode(field{name, "a string", &in.Text}, field{"id", "a string", &in.ID})
	return deliver(c, in, false)
}

// deliver makes an input durable and follows it to the end of its turn, in the words of the native API.
func deliver(c *request, in session.Input, create bool) (any, error) {
	c.note(c.identify(&in))
	if err := in.Validate(); err != nil {
		c.note(fmt.Errorf("body: %w", err))
	}
	events := c.streaming()
	wait := c.flag("wait", true)
	s, err := c.session(create)
	if err != nil {
		return nil, err
	}
	if !wait {
		receipt, err := s.Post(c.r.Context(), in)
		return response{http.StatusAccepted, receipt}, err
	}
	return nil, c.say(s, in, &plain{request: c, live: events})
}

// identify takes the id of an input from the header, where a client gave one.
func (c *request) identify(in *session.Input) error {
	key := c.r.Header.Get("Idempotency-Key")
	if key == "" {
		return nil
	}
	if in.ID != "" && in.ID != key {
		return fmt.Errorf("header Idempotency-Key and \"id\" differ; send one of them: %w", tidemark.ErrInvalid)
	}
	in.ID = key
	return nil
}

// liveEvents passes on all notices of a session from now on.
func liveEvents(c *request, s *session.Session) (any, error) {
	if c.headOnly() {
		return nil, nil
	}
	sub, err := s.Subscribe()
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	out := c.begin()
	defer out.end()
	if err := out.event("hello", session.Notice{Type: "hello", Run: sub.Run, Text: sub.Partial}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	tick := c.every(ctx, c.Ping)
	for {
		select {
		case <-sub.Ready:
			for n, ok := sub.Next(); ok; n, ok = sub.Next() {
				if err := out.event(n.Type, c.wireNotice(n)); err != nil {
					return nil, err
				}
			}
			if sub.Behind() {
				return nil, out.fail(native, &refused{http.StatusServiceUnavailable, "behind", "you read too slowly; read the log and listen again"})
			}
		case <-tick:
			if err := out.ping(); err != nil {
				return nil, err
			}
		case <-c.Stopping:
			return nil, out.fail(native, stopping())
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// wireNotice is a notice as others than the one who asked may read it: a failure of ours is not spelt out.
func (c *request) wireNotice(n session.Notice) any { return wireNotice(n, c.w) }

func wireNotice(n session.Notice, to *answer) any {
	if n.Type != session.NoticeError || n.Err() == nil {
		return n
	}
	f := failureOf(n.Err())
	n.Text = f.text
	return struct {
		session.Notice
		Error wireFault `json:"error"`
	}{n, f.wire(to)}
}
