package provider

import (
	"bytes"
	"context"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const (
	anthropicURL     = "https://api.anthropic.com"
	anthropicVersion = "2023-06-01" // https://docs.anthropic.com/en/api/versioning
	anthropicFirst   = 2 * time.Minute
	// midSystem names system messages between the others. Newer models take them without it, older ones never
	// (https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages), so it is how settings say
	// that the model does.
	midSystem = "mid-conversation-system-2026-04-07"
	// defaultMaxTokens is what the smallest current models can answer; the API has no default.
	defaultMaxTokens tidemark.Tokens = 8192
)

// Anthropic is the streaming Messages API (https://docs.anthropic.com/en/api/messages-streaming) or
// an endpoint that speaks it. It asks for prompt caching by up to four markers
// (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching), see [Anthropic.Stream].
// Only Transport must be set. The fields may not change after the first call.
type Anthropic struct {
	Key       string            // x-api-key; none is sent when empty
	BaseURL   string            // without /v1/messages; https://api.anthropic.com when empty
	Model     string            // for requests that name none
	Transport http.RoundTripper // natively http.DefaultTransport
	Runtime   tidemark.Runtime  // nil: no deadlines
	MaxTokens tidemark.Tokens   // bound on replies of requests without one, 0: 8192
	Thinking  tidemark.Tokens   // budget for extended thinking, 0: off, else at least 1024
	Beta      []string          // anthropic-beta
	FirstByte time.Duration     // longest wait for the answer to begin, 0: 2 minutes
	Idle      time.Duration     // longest silence within it, 0: 90 seconds

	bounds bounds
}

var _ tidemark.Provider = (*Anthropic)(nil)

// Stream makes one call. A reply that ends in a refusal without a word is an error of [tidemark.ClassRefusal], one
// that met the end of the window an error of [tidemark.ClassOverflow], one without content an error
// of [tidemark.ClassNetwork], since a message without content could never be sent again.
//
// # Cache markers
//
// They stand on the last tool, on the system text, on the last block of the last message before
// [tidemark.Request.Note], and on the last block before the last reply, which is where the call
// before this one had its last marker: the API looks for a cached prefix at most 20 blocks before a
// marker, and a round of parallel tools is easily longer. So markers only move forward, and since
// all content goes out as lists of blocks, whether it came as a string or not, the bytes up to a
// marker are the same in the next call but for the marker itself. Thinking blocks are never marked,
// and markers that came with a message are dropped.
func (a *Anthropic) Stream(ctx context.Context, req tidemark.Request) iter.Seq2[tidemark.Delta, error] {
	return func(yield func(tidemark.Delta, error) bool) {
		fit := a.valid(req)
		ans, err := a.call().do(ctx, a.encode(fit.Request))
		if a.bounds.learn(or(req.Model, a.Model), a.bound(req), err) {
			ans, err = a.call().do(ctx, a.encode(fit.Request))
		}
		if err != nil {
			yield(tidemark.Delta{}, fit.explained(err, fit.spot))
			return
		}
		defer ans.end()
		yield = fit.own(yield)
		dec := &anthropicReply{key: a.Key, req: fit.Request, call: tidemark.Call{Model: or(req.Model, a.Model), RequestID: requestID(ans.header)}}
		if ans.json() {
			readWhole(ans, dec.whole, yield)
			return
		}
		readStream(ans, dec, yield)
	}
}

func (a *Anthropic) call() call {
	h := http.Header{}
	h.Set("Anthropic-Version", anthropicVersion)
	h.Set("Accept", "text/event-stream, application/json")
	if a.Key != "" {
		h.Set("X-Api-Key", a.Key)
	}
	if len(a.Beta) > 0 {
		h.Set("Anthropic-Beta", strings.Join(a.Beta, ","))
	}
	return call{
		url: strings.TrimSuffix(or(a.BaseURL, anthropicURL), "/") + "/v1/messages", header: h, key: a.Key,
		transport: a.Transport, runtime: a.Runtime, first: or(a.FirstByte, anthropicFirst), idle: or(a.Idle, defaultIdle),
	}
}

// cacheMark stands behind the last field of what it marks.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// takesSystem reports whether the model takes system messages between the others.
func (a *Anthropic) takesSystem() bool { return slices.Contains(a.Beta, midSystem) }

// encode writes a valid request in the order in which the API caches it, with what may change from call
// to call at its end.
func (a *Anthropic) encode(req tidemark.Request) []byte {
	b := append(make([]byte, 0, 4096), `{"model":`...)
	b = json.AppendString(b, or(req.Model, a.Model))
	b = append(b, `,"stream":true`...)
	b = appendPrompt(b, req)
	if a.Thinking > 0 {
		b = a.appendThinking(b, req)
	}
	b = append(b, `,"max_tokens":`...)
	return append(appendOptions(strconv.AppendInt(b, int64(a.bound(req)), 10), req.Options, a), '}')
}

// bound is that on the output: the API counts thinking into it.
func (a *Anthropic) bound(req tidemark.Request) tidemark.Tokens {
	return a.bounds.within(or(req.Model, a.Model), or(or(req.MaxTokens, a.MaxTokens), defaultMaxTokens)+a.Thinking)
}

// appendPrompt appends what the model is asked with: tools, system text, messages.
func appendPrompt(b []byte, req tidemark.Request) []byte {
	b = appendTools(b, req.Tools)
	if req.System != "" {
		b = append(b, `,"system":[{"type":"text","text":`...)
		b = json.AppendString(b, req.System)
		b = append(b, cacheMark+`}]`...)
	}
	b = append(b, `,"messages":[`...)
	now, before := markers(req)
	for i, m := range req.Sent() {
		if i > 0 {
			b = append(b, ',')
		}
		at := -1
		switch i {
		case now.message:
			at = now.block
		case before.message:
			at = before.block
		}
		b = appendMessage(b, m, at)
	}
	return append(b, ']')
}

// appendThinking asks for thinking, but not in the middle of a round of tools that began without: the last message of the
// assistant must begin with thinking then, and one that another model wrote, or that was cut off, cannot.
// (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#toggling-thinking-modes-in-conversations)
func (a *Anthropic) appendThinking(b []byte, req tidemark.Request) []byte {
	if n := len(req.Messages); n > 1 && len(req.Messages[n-1].Results()) > 0 {
		if asked := req.Messages[n-2]; len(asked.Calls()) > 0 && !thinks(asked.Content[0]) {
			return b
		}
	}
	const least = 1024 // tokens, and less than the bound on the reply
	budget := a.Thinking
	if most := a.bound(req); budget >= most { // the model answers with less: half is for the answer
		if budget = most / 2; budget < least {
			return b
		}
	}
	b = append(b, `,"thinking":{"type":"enabled","budget_tokens":`...)
	return append(strconv.AppendInt(b, int64(budget), 10), '}')
}

// appendTools appends the tool definitions; the last one is marked, for all of them.
func appendTools(b []byte, tools []tidemark.Tool) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = json.AppendString(b, t.Name)
		if t.Description != "" {
			b = append(b, `,"description":`...)
			b = json.AppendString(b, t.Description)
		}
		b = append(b, `,"input_schema":`...)
		b = append(b, schema(t)...)
		if i == len(tools)-1 {
			b = append(b, cacheMark...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// schema returns a tool's input schema; a tool without one takes no arguments.
func schema(t tidemark.Tool) []byte {
	if len(t.InputSchema) == 0 {
		return []byte(`{"type":"object","properties":{}}`)
	}
	return t.InputSchema
}

// appendMessage appends a message, with a marker on the block at the index mk unless that is -1.
func appendMessage(b []byte, m tidemark.Message, mk int) []byte {
	b = append(b, `{"role":`...)
	b = json.AppendString(b, string(m.Role))
	b = append(b, `,"content":[`...)
	for i, block := range m.Content {
		if i > 0 {
			b = append(b, ',')
		}
		start := len(b)
		b = block.AppendJSON(b)
		if raw := b[start:]; block.Type != tidemark.TypeThinking && block.Type != tidemark.TypeRedactedThinking {
			if clean := unmark(raw, 0); len(clean) != len(raw) {
				b = append(b[:start], clean...)
			}
		}
		if i == mk {
			b = bytes.TrimRight(b, " \t")
			b = append(b[:len(b)-1], cacheMark+`}`...) // before the brace that ends the block
		}
	}
	return append(b, `]}`...)
}

// place is a block of a request, or message -1.
type place struct{ message, block int }

// markers returns where the last marker of this call stands, and where that of the call before
// stood: at the end of the last user message before the last reply.
func markers(req tidemark.Request) (now, before place) {
	now, before = place{-1, -1}, place{-1, -1}
	last := len(req.Messages) - 1
	if last < 0 {
		return now, before
	}
	now = markable(req.Messages, last)
	i := last
	for i >= 0 && req.Messages[i].Role != tidemark.Assistant {
		i--
	}
	for i >= 0 && req.Messages[i].Role == tidemark.Assistant {
		i--
	}
	if i >= 0 && i != last {
		before = markable(req.Messages, i)
	}
	return now, before
}

// markable returns the last block of a message that the API lets us mark: no thinking, no empty text.
func markable(messages []tidemark.Message, i int) place {
	blocks := messages[i].Content
	for k := len(blocks) - 1; k >= 0; k-- {
		switch b := blocks[k]; {
		case b.Type == tidemark.TypeThinking, b.Type == tidemark.TypeRedactedThinking:
		case b.Type == tidemark.TypeText && b.Text == "":
		default:
			return place{i, k}
		}
	}
	return place{-1, -1}
}
