package provider

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const (
	openaiURL  = "https://api.openai.com/v1"
	openaiHost = "api.openai.com"
	// openaiFirst is longer than Anthropic's: a local model sends nothing while it reads a long
	// prompt, or is loaded from disk.
	openaiFirst = 5 * time.Minute
)

// OpenAI is any chat-completions endpoint (https://platform.openai.com/docs/api-reference/chat):
// OpenAI, OpenRouter, Ollama, llama.cpp, vLLM and others. Messages are converted here, once, and
// nowhere else. Thinking is not sent; images of a tool's result follow in a message of their own,
// since a tool message holds only text. Figures of usage that an endpoint does not send are
// estimated and marked as such. Only Transport must be set. The fields may not change after the
// first call.
type OpenAI struct {
	Key       string            // bearer token; none is sent when empty
	BaseURL   string            // without /chat/completions; https://api.openai.com/v1 when empty
	Model     string            // for requests that name none
	Transport http.RoundTripper // natively http.DefaultTransport
	Runtime   tidemark.Runtime  // nil: no deadlines
	MaxTokens tidemark.Tokens   // bound on replies of requests without one, 0: the endpoint's
	FirstByte time.Duration     // longest wait for the answer to begin, 0: 5 minutes
	Idle      time.Duration     // longest silence within it, 0: 90 seconds

	bounds bounds
}

var _ tidemark.Provider = (*OpenAI)(nil)

// Stream makes one call. Finish reasons are given as the Messages API names them: stop is end_turn,
// length is max_tokens, tool_calls and function_call are tool_use. What the model says when it declines is
// a reply that stopped with refusal; one that was filtered is, too, or without text an error of [tidemark.ClassRefusal]. One that only
// thought is a reply of thinking, one with nothing at all an error of [tidemark.ClassNetwork].
func (o *OpenAI) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		r := o.send(ctx, req)
		ans, fit := r.ans, r.fit
		if r.err != nil {
			yield(tidemark.Delta{}, fit.explained(r.err, r.places.find(fit)))
			return
		}
		defer ans.end()
		yield = fit.own(yield)
		dec := newOpenAIReply(fit.Request, o.Key, rand.Text)
		dec.call.Model = or(req.Model, o.Model)
		dec.call.RequestID = requestID(ans.header)
		if ans.json() {
			readWhole(ans, dec.whole, yield)
			return
		}
		readStream(ans, dec, yield)
	}
}

func (o *OpenAI) call() call {
	h := http.Header{}
	h.Set("Accept", "text/event-stream, application/json")
	if o.Key != "" {
		h.Set("Authorization", "Bearer "+o.Key)
	}
	return call{
		url: strings.TrimSuffix(or(o.BaseURL, openaiURL), "/") + "/chat/completions", header: h, key: o.Key,
		transport: o.Transport, runtime: o.Runtime, first: or(o.FirstByte, openaiFirst), idle: or(o.Idle, defaultIdle),
	}
}

// encode writes a valid request, and tells where its blocks are; what may change from call to call stands at its end,
// since these endpoints cache by prefix too.
func (o *OpenAI) encode(req tidemark.Request, usage bool) ([]byte, chatPlaces) {
	b := append(make([]byte, 0, 4096), `{"model":`...)
	b = json.AppendString(b, or(req.Model, o.Model))
	b = append(b, `,"stream":true`...)
	if usage {
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	b = appendFunctions(b, req.Tools)
	b = append(b, `,"messages":[`...)
	model := or(req.Model, o.Model)
	w := chatWriter{buf: b, bounded: o.official(), alternate: o.bounds.lacks(model, quirkAlternate)}
	switch {
	case req.System == "":
	case o.bounds.lacks(model, quirkSystem):
		w.lead = req.System
	default:
		w.text("system", req.System)
	}
	for i, m := range req.Sent() {
		w.message = i
		switch m.Role {
		case tidemark.Assistant:
			w.assistant(m)
		case tidemark.System:
			w.text("system", m.PlainText())
		default:
			w.user(m)
		}
	}
	b = append(w.buf, ']')
	if limit := o.bound(req); limit > 0 {
		b = append(b, `,"`+o.limitField()+`":`...)
		b = strconv.AppendInt(b, int64(limit), 10)
	}
	return append(appendOptions(b, req.Options, o), '}'), w.places
}

func (o *OpenAI) bound(req tidemark.Request) tidemark.Tokens {
	return o.bounds.within(or(req.Model, o.Model), or(req.MaxTokens, o.MaxTokens))
}

// limitField names the bound on the reply: OpenAI's reasoning models know only the new name, most
// other endpoints only the old one.
func (o *OpenAI) limitField() string {
	if o.official() {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// official reports OpenAI's own endpoint.
func (o *OpenAI) official() bool {
	u, err := url.Parse(or(o.BaseURL, openaiURL))
	return err == nil && (u.Hostname() == openaiHost || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
}

func appendFunctions(b []byte, tools []tidemark.Tool) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","function":{"name":`...)
		b = json.AppendString(b, t.Name)
		if t.Description != "" {
			b = append(b, `,"description":`...)
			b = json.AppendString(b, t.Description)
		}
		b = append(b, `,"parameters":`...)
		b = append(b, schema(t)...)
		for _, o := range t.More {
			b = append(json.AppendString(append(b, ','), o.Name), ':')
			b = append(b, o.Value...)
		}
		b = append(b, `}}`...)
	}
	return append(b, ']')
}
