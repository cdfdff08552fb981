// Package offline is a model that needs neither key nor network and always says the same to the same request: no clock, no
// chance. It does not think; it looks things up. It answers by quoting what fits best in the messages it was sent, the
// memory in its system prompt and a summary among them; it calls memory and history tools when they are offered and a
// person asks in plain words; and it answers a request for a summary with an extract of the conversation.
//
// Non-goals: understanding a language, and saying anything that nobody said.
package offline

import (
	"context"
	"iter"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/provider"
)

// Name is the model name that [Model] reports.
const Name = "offline"

// Model is the model. Its usage figures are estimates, given as reported, so that all that counts on them can be shown.
type Model struct{}

var _ tidemark.Provider = Model{}

// Stream answers. A request that breaks [tidemark.Check] is refused, as the APIs do, unless it is one that
// chat completions allow.
func (Model) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		req = provider.Valid(req)
		if err := tidemark.Check(req.Messages); err != nil {
			yield(tidemark.Delta{}, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusBadRequest, Type: "invalid_request_error", Message: err.Error()})
			return
		}
		m := reply(req)
		call := tidemark.Call{Model: Name, Stop: "end_turn", Reported: true}
		if len(m.Calls()) > 0 {
			call.Stop = "tool_use"
		} else if cut, ok := within(m.PlainText(), req.MaxTokens); !ok {
			m, call.Stop = tidemark.NewText(tidemark.Assistant, cut), "max_tokens"
		}
		call.Usage = tidemark.Usage{Input: provider.Estimate(req), Output: tidemark.Estimate(m)}
		for _, b := range m.Content {
			for d := range pieces(b) {
				if ctx.Err() != nil {
					yield(tidemark.Delta{}, context.Cause(ctx))
					return
				}
				if !yield(d, nil) {
					return
				}
			}
		}
		yield(tidemark.Delta{Reply: &tidemark.Reply{Message: m, Call: call}}, nil)
	}
}

// within cuts a text to a bound in tokens, 0 for none.
func within(s string, limit tidemark.Tokens) (string, bool) {
	if limit <= 0 || tidemark.EstimateText(s) <= limit {
		return s, true
	}
	n := min(len(s), max(1, int(limit)*10/3))
	return strings.ToValidUTF8(s[:n], ""), false
}

// pieces yields a block as deltas: text in pieces of a few words.
func pieces(b tidemark.Block) iter.Seq[tidemark.Delta] {
	return func(yield func(tidemark.Delta) bool) {
		if b.Type == tidemark.TypeToolUse {
			yield(tidemark.Delta{Tool: b.Name})
			return
		}
		const size = 24
		for rest := b.Text; rest != ""; {
			n := len(rest)
			if n > size {
				if i := strings.IndexByte(rest[size:], ' '); i >= 0 {
					n = size + i + 1
				}
			}
			if !yield(tidemark.Delta{Text: rest[:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// reply decides what to say or call.
func reply(req tidemark.Request) tidemark.Message {
	at := len(req.Messages) - 1
	last := req.Messages[at]
	summary, text := parts(last)
	say := func(s string) tidemark.Message { return tidemark.NewText(tidemark.Assistant, s) }
	if r, ok := readRequest(last.PlainText(), req.System, req.MaxTokens); ok {
		return say(r.answer())
	}
	if len(last.Results()) > 0 {
		return say(afterTools(req, text))
	}
	if name, input := toolFor(req, text); name != "" {
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(callID(req), name, input)}}
	}
	if text == "" && summary != "" {
		return say("I have read the summary. What comes next?")
	}
	return say(converse(req, at, text))
}

// callID names a call by all that was said before it, so that the same request gives the same id and no two calls of a
// conversation share one.
func callID(req tidemark.Request) string {
	var all []byte
	for _, m := range req.Messages {
		all = m.AppendJSON(all)
	}
	return "call_" + string(tidemark.HashOf(all))[:20]
}
