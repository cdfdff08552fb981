package provider

import (
	"fmt"
	"net/http"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// openaiReply builds a reply from the chunks of one stream
// (https://platform.openai.com/docs/api-reference/chat-streaming).
type openaiReply struct {
	key     string
	call    tidemark.Call
	req     tidemark.Request
	newID   func() string
	used    map[string]bool // ids of calls in the request and in this reply
	text    strings.Builder
	refusal strings.Builder
	thought strings.Builder
	calls   []*chatCall
	pieces  struct{ text, refusal, thought halves }
	finish  string
	size    int
	out     []tidemark.Delta
}

// chatCall is a tool call in the making.
type chatCall struct {
	index    int
	id, name string
	args     strings.Builder
	pieces   halves
}

type openaiChunk struct {
	ID      looseName                    `json:"id"`
	Model   looseName                    `json:"model"`
	Error   json.RawMessage              `json:"error"`
	Usage   loose[*openaiUsage]          `json:"usage"`
	Choices loose[[]loose[openaiChoice]] `json:"choices"`
}

type openaiChoice struct {
	Index        looseInt           `json:"index"`
	Delta        loose[*openaiPart] `json:"delta"`
	Message      loose[*openaiPart] `json:"message"`
	FinishReason looseName          `json:"finish_reason"`
}

type openaiPart struct {
	Content   looseText                  `json:"content"`
	Refusal   looseText                  `json:"refusal"`
	Reasoning looseText                  `json:"reasoning"`         // OpenRouter, Ollama
	Thoughts  looseText                  `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp
	ToolCalls loose[[]loose[openaiCall]] `json:"tool_calls"`
}

type openaiCall struct {
	Index    looseInt              `json:"index"`
	ID       looseName             `json:"id"`
	Function loose[openaiFunction] `json:"function"`
}

type openaiFunction struct {
	Name      looseName `json:"name"`
	Arguments looseText `json:"arguments"`
}

// newOpenAIReply returns a decoder of the answer to req; newID names calls that come without an id.
func newOpenAIReply(req tidemark.Request, key string, newID func() string) *openaiReply {
	return &openaiReply{key: key, req: req, newID: newID}
}

func (r *openaiReply) event(ev sse.Event) (ds []tidemark.Delta, done bool, err error) {
	if r.size += len(ev.Data); r.size > maxReplyBody {
		return nil, false, fmt.Errorf("read reply: over %d bytes: %w", maxReplyBody, tidemark.ErrTooLarge)
	}
	if string(ev.Data) == "[DONE]" {
		if r.finished() || r.text.Len() > 0 || len(r.calls) > 0 {
			return nil, true, nil
		}
		return nil, false, networkError("the stream ended before the reply did", r.key)
	}
	var c openaiChunk
	if err := json.Unmarshal(ev.Data, &c); err != nil {
		return nil, false, networkError("a chunk is not JSON: "+clip.To(string(ev.Data), 200), r.key)
	}
	ds, err = r.chunk(c, ev.Data)
	return ds, false, err
}

// chunk takes up a chunk; data is its JSON, for the words of an error.
func (r *openaiReply) chunk(c openaiChunk, data []byte) ([]tidemark.Delta, error) {
	if err := r.head(c, data); err != nil {
		return nil, err
	}
	r.out = r.out[:0]
	for _, choice := range c.Choices.is {
		if choice.is.Index.n != 0 {
			continue // we ask for one
		}
		r.finish = or(string(choice.is.FinishReason), r.finish)
		if p := choice.is.Delta.is; p != nil {
			if err := r.add(*p); err != nil {
				return nil, err
			}
		}
	}
	return r.out, nil
}

// head takes up what a chunk holds beside its choices.
func (r *openaiReply) head(c openaiChunk, data []byte) error {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return streamError(data, r.call.RequestID, r.key)
	}
	r.call.Model = or(string(c.Model), r.call.Model)
	r.call.RequestID = or(r.call.RequestID, string(c.ID))
	if u, ok := c.Usage.is.usage(); ok {
		r.call.Usage, r.call.Reported = u, true
	}
	return nil
}

// add takes up a piece of the message and leaves in out what a reader should see of it.
func (r *openaiReply) add(p openaiPart) error {
	text, refusal := r.pieces.text.next(string(p.Content)), r.pieces.refusal.next(string(p.Refusal))
	thought := r.pieces.thought.next(string(or(p.Thoughts, p.Reasoning)))
	r.text.WriteString(text)
	r.refusal.WriteString(refusal)
	r.thought.WriteString(thought)
	r.out = append(r.out, tidemark.Delta{Text: text + refusal, Thinking: thought})
	for _, t := range p.ToolCalls.is {
		c, isNew := r.slot(t.is.Index, string(t.is.ID))
		if c == nil {
			return fmt.Errorf("read reply: over %d tool calls: %w", maxBlocks, tidemark.ErrTooLarge)
		}
		f := t.is.Function.is
		if name := string(f.Name); c.name == "" && name != "" {
			c.name = name
			r.out = append(r.out, tidemark.Delta{Tool: c.name})
		} else if !isNew && name != "" && name != c.name {
			c.name += name // in pieces
		}
		c.args.WriteString(c.pieces.next(string(f.Arguments)))
	}
	return nil
}

// ended takes up the halves of surrogate pairs whose others never came.
func (r *openaiReply) ended() {
	r.text.WriteString(r.pieces.text.rest())
	r.refusal.WriteString(r.pieces.refusal.rest())
	r.thought.WriteString(r.pieces.thought.rest())
	for _, c := range r.calls {
		c.args.WriteString(c.pieces.rest())
	}
}

// slot returns the call that a piece belongs to. Pieces are told apart by index; some endpoints
// send none, or 0 for all, and begin each call with its id.
func (r *openaiReply) slot(index looseInt, id string) (c *chatCall, isNew bool) {
	last := len(r.calls) - 1
	for i := last; i >= 0; i-- {
		c := r.calls[i]
		if index.set && c.index != int(index.n) {
			continue
		}
		if id == "" || c.id == id {
			return c, false
		}
		if c.id == "" && index.set {
			c.id = id
			return c, false
		}
		break
	}
	if len(r.calls) >= maxBlocks {
		return nil, false
	}
	at := len(r.calls)
	if index.set {
		at = int(index.n)
	}
	c = &chatCall{index: at, id: id}
	r.calls = append(r.calls, c)
	return c, true
}

func (r *openaiReply) finished() bool { return r.finish != "" }

func (r *openaiReply) reply() (tidemark.Reply, error) {
	r.ended()
	m := tidemark.Message{Role: tidemark.Assistant}
	if text := r.text.String(); strings.TrimSpace(text) != "" {
		m.Content = append(m.Content, tidemark.Text(text))
	}
	for _, c := range r.calls {
		if c.name != "" {
			m.Content = append(m.Content, tidemark.ToolUse(r.unique(c.id), c.name, ToolInput(c.args.String())))
		}
	}
	switch r.finish {
	case finishLength, "model_length":
		r.call.Stop = stopLength
	case "content_filter":
		r.call.Stop = tidemark.StopRefusal
	case "error":
		return tidemark.Reply{}, &tidemark.APIError{Class: tidemark.ClassOverloaded, Status: http.StatusOK, Type: r.finish,
			Message: "the model stopped with an error", RequestID: r.call.RequestID}
	default: // stop, tool_calls, function_call, eos, nothing: what counts is whether there are calls
		r.call.Stop = stopEnd
		if len(m.Calls()) > 0 {
			r.call.Stop = stopTool
		}
	}
	// What declined says so in words of its own: they are the answer (https://platform.openai.com/docs/guides/structured-outputs#refusals).
	if refusal := r.refusal.String(); strings.TrimSpace(refusal) != "" && len(m.Calls()) == 0 {
		m.Content = append(m.Content, tidemark.Text(refusal))
		r.call.Stop = tidemark.StopRefusal
		return answered(r.req, m, r.call)
	}
	if thought := r.thought.String(); len(m.Content) == 0 && strings.TrimSpace(thought) != "" && r.call.Stop != tidemark.StopRefusal {
		m.Content = []tidemark.Block{{Type: tidemark.TypeThinking, Text: thought}} // it was paid for, and asking again would bring the same
	}
	return complete(r.req, m, r.call)
}

// unique returns an id for a call that no other call of the conversation has: some endpoints send
// none, others count from 0 in each reply.
func (r *openaiReply) unique(id string) string {
	if r.used == nil {
		r.used = map[string]bool{"": true}
		for _, m := range r.req.Messages {
			for _, c := range m.Calls() {
				r.used[c] = true
			}
		}
	}
	for r.used[id] {
		id = "call_" + r.newID()
	}
	r.used[id] = true
	return id
}

// whole reads the answer of an endpoint that does not stream.
func (r *openaiReply) whole(data []byte) (tidemark.Reply, error) {
	var c openaiChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return tidemark.Reply{}, networkError("the answer is not JSON: "+clip.To(string(data), 200), r.key)
	}
	return r.wholeChunk(c, data)
}

// wholeChunk reads such an answer, decoded; data is its JSON, for the words of an error.
func (r *openaiReply) wholeChunk(c openaiChunk, data []byte) (tidemark.Reply, error) {
	if err := r.head(c, data); err != nil {
		return tidemark.Reply{}, err
	}
	if len(c.Choices.is) == 0 {
		return tidemark.Reply{}, streamError(data, r.call.RequestID, r.key)
	}
	r.finish = string(c.Choices.is[0].is.FinishReason)
	if p := c.Choices.is[0].is.Message.is; p != nil {
		// Calls of a whole message have no index; each element is one.
		for i := range p.ToolCalls.is {
			p.ToolCalls.is[i].is.Index = looseInt{int64(i), true}
		}
		if err := r.add(*p); err != nil {
			return tidemark.Reply{}, err
		}
	}
	return r.reply()
}
