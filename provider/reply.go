package provider

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// Stop reasons of the Messages API that mean something to us
// (https://docs.anthropic.com/en/api/handling-stop-reasons).
const (
	stopEnd      = "end_turn"
	stopTool     = "tool_use"
	stopLength   = "max_tokens"
	stopOverflow = "model_context_window_exceeded"
)

// decoder builds a reply from the events of a stream.
type decoder interface {
	// event takes up an event. It returns what a reader should see of it, valid until the next
	// call, and whether it was the last.
	event(ev sse.Event) (ds []tidemark.Delta, done bool, err error)
	// finished reports whether a stream that ends without a last event is whole.
	finished() bool
	// reply returns the answer.
	reply() (tidemark.Reply, error)
}

type yielder = func(tidemark.Delta, error) bool

// decode passes on the deltas of a stream and returns its reply; ok is false when the reader
// stopped.
func decode(r io.Reader, dec decoder, yield yielder) (reply tidemark.Reply, ok bool, err error) {
	events := sse.NewReader(r)
	for {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) && dec.finished() {
			break
		}
		if err != nil {
			return reply, true, err
		}
		ds, done, err := dec.event(ev)
		if err != nil {
			return reply, true, err
		}
		for _, d := range ds {
			if d != (tidemark.Delta{}) && !yield(d, nil) {
				return reply, false, nil
			}
		}
		if done {
			break
		}
	}
	reply, err = dec.reply()
	return reply, true, err
}

// readStream yields a streamed answer.
func readStream(a *answer, dec decoder, yield yielder) {
	reply, ok, err := decode(a.body, dec, yield)
	if !ok {
		return
	}
	if err != nil {
		yield(tidemark.Delta{}, a.fault(err))
		return
	}
	a.drain()
	yield(tidemark.Delta{Reply: &reply}, nil)
}

// readWhole yields the answer of an endpoint that ignored that we asked for a stream.
func readWhole(a *answer, read func([]byte) (tidemark.Reply, error), yield yielder) {
	data, err := a.all()
	if err != nil {
		yield(tidemark.Delta{}, a.fault(err))
		return
	}
	reply, err := read(data)
	if err != nil {
		yield(tidemark.Delta{}, a.fault(err))
		return
	}
	passOn(reply, yield)
}

// passOn yields a reply that came in one piece.
func passOn(reply tidemark.Reply, yield yielder) {
	for _, b := range reply.Message.Content {
		d := tidemark.Delta{}
		switch b.Type {
		case tidemark.TypeText:
			d.Text = b.Text
		case tidemark.TypeThinking:
			d.Thinking = b.Text
		case tidemark.TypeToolUse:
			d.Tool = b.Name
		}
		if d != (tidemark.Delta{}) && !yield(d, nil) {
			return
		}
	}
	yield(tidemark.Delta{Reply: &reply}, nil)
}

// maxBilled is more tokens than any model takes or gives in one call.
const maxBilled tidemark.Tokens = 1 << 30

// billed is a call whose figures can be true. A report that counts nothing sent, or more than any model takes, is
// none: the size of the context rests on it, so the figures are estimates then.
func billed(c tidemark.Call, req tidemark.Request, m tidemark.Message) tidemark.Call {
	u := c.Usage
	sound := u.Input+u.CacheRead+u.CacheCreation > 0
	for _, n := range [...]tidemark.Tokens{u.Input, u.CacheRead, u.CacheCreation, u.Output} {
		sound = sound && n >= 0 && n <= maxBilled
	}
	if c.Reported && sound {
		return c
	}
	c.Reported, c.Usage = false, tidemark.Usage{Input: Estimate(req)}
	if len(m.Content) > 0 {
		c.Usage.Output = tidemark.Estimate(m)
	}
	return c
}

// Estimate estimates all that a request sends.
func Estimate(req tidemark.Request) tidemark.Tokens {
	total := tidemark.EstimateText(req.System)
	for _, t := range req.Tools {
		total += tidemark.EstimateChars(tidemark.UTF16Len(t.Name) + tidemark.UTF16Len(t.Description) + tidemark.UTF16Len([]byte(t.InputSchema)))
	}
	for _, m := range req.Sent() {
		total += tidemark.Estimate(m)
	}
	return total
}

// answered is a finished reply to a request.
func answered(req tidemark.Request, m tidemark.Message, c tidemark.Call) (tidemark.Reply, error) {
	c = billed(c, req, m)
	c.Stop = or(c.Stop, stopEnd)
	return tidemark.Reply{Message: m, Call: c}, nil
}

// complete judges a finished reply to a request.
func complete(req tidemark.Request, m tidemark.Message, c tidemark.Call) (tidemark.Reply, error) {
	c = billed(c, req, m)
	fail := func(class tidemark.Class, typ, message string) (tidemark.Reply, error) {
		return tidemark.Reply{}, &tidemark.APIError{Class: class, Status: http.StatusOK, Type: typ, Message: message, RequestID: c.RequestID}
	}
	if c.Stop == stopOverflow && len(m.Content) > 0 { // a valid answer that ends where the window does, as at the bound on a reply
		c.Stop = stopLength
	}
	switch {
	case c.Stop == stopOverflow:
		return fail(tidemark.ClassOverflow, stopOverflow, "the reply met the end of the context window")
	case c.Stop == tidemark.StopRefusal && strings.TrimSpace(m.PlainText()) == "":
		return fail(tidemark.ClassRefusal, tidemark.StopRefusal, "the model declined to answer")
	case c.Stop == tidemark.StopRefusal: // what it said before or about it was read: it is the answer, and no call of it is made
		m.Content = slices.DeleteFunc(slices.Clone(m.Content), func(b tidemark.Block) bool { return b.Type == tidemark.TypeToolUse })
	case len(m.Content) == 0:
		return fail(tidemark.ClassNetwork, tidemark.EmptyReply, "the reply has no content")
	}
	return answered(req, m, c)
}

// Fields of the input that stands for arguments which are no JSON object: cut off, or badly formed
// by the model. The call stays readable, and the tool can say what was wrong.
const (
	invalidArgs = "_invalid"
	invalidWhy  = "_reason"
)

// ToolInput returns a tool call's arguments as one JSON object on one line.
func ToolInput(args string) json.RawMessage {
	trimmed := strings.TrimSpace(args)
	if trimmed == "" || trimmed == "null" {
		return json.RawMessage("{}")
	}
	why := "the arguments are not a JSON object"
	if !json.Valid([]byte(trimmed)) {
		why = "the arguments are not valid JSON, or were cut off"
	} else if trimmed[0] == '{' {
		if !strings.ContainsAny(trimmed, "\r\n") {
			return json.RawMessage(trimmed)
		}
		var line bytes.Buffer
		if json.Compact(&line, []byte(trimmed)) == nil {
			return line.Bytes()
		}
	}
	out := json.AppendString([]byte(`{"`+invalidArgs+`":`), args)
	out = append(out, `,"`+invalidWhy+`":`...)
	return append(json.AppendString(out, why), '}')
}
