package provider

import (
	"fmt"
	"net/http"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
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
	calls   []*chatCall
	finish  string
	size    int
	out     []tidemark.Delta
}

// chatCall is a tool call in the making.
type chatCall struct {
	index    int
	id, name string
	args     strings.Builder
}

type openaiChunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Usage   *openaiUsage    `json:"usage"`
	Choices []openaiChoice  `json:"choices"`
}

type openaiChoice struct {
	Index        int         `json:"index"`
	Delta        *openaiPart `json:"delta"`
	Message      *openaiPart `json:"message"`
	FinishReason string      `json:"finish_reason"`
}

type openaiPart struct {
	Content   looseText    `json:"content"`
	Refusal   string       `json:"refusal"`
	Reasoning string       `json:"reasoning"`         // OpenRouter, Ollama
	Thoughts  string       `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp
	ToolCalls []openaiCall `json:"tool_calls"`
}

type openaiCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments looseText `json:"arguments"`
	} `json:"function"`
}

type openaiUsage struct {
	Prompt     tidemark.Tokens `json:"prompt_tokens"`
	Completion tidemark.Tokens `json:"completion_tokens"`
	Details    *struct {
		Cached tidemark.Tokens `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit tidemark.Tokens `json:"prompt_cache_hit_tokens"` // DeepSeek
}

// looseText is a string where some endpoints send null, a list of text parts, a number (Workers AI,
// where a token is a numeral) or, for arguments, an object; numbers and objects keep their JSON.
type looseText string

// UnmarshalJSON exists because of these forms.
func (t *looseText) UnmarshalJSON(data []byte) error {
	switch {
	case len(data) == 0 || string(data) == "null":
		return nil
	case data[0] == '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			*t += looseText(p.Text)
		}
		return nil
	case data[0] != '"':
		*t = looseText(data)
		return nil
	}
	var s string
	err := json.Unmarshal(data, &s)
	*t = looseText(s)
	return err
}

// newOpenAIReply returns a decoder of the answer to req; newID names calls that come without an id.
func newOpenAIReply(req tidemark.Request, key string, newID func() string) *openaiReply {
	return &openaiReply{key: key, req: req, newID: newID}
}

func (r *openaiReply) event(ev sseEvent) (ds []tidemark.Delta, done bool, err error) {
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
		return nil, false, networkError("a chunk is not JSON: "+clip(string(ev.Data), 200), r.key)
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
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // we ask for one
		}
		r.finish = or(choice.FinishReason, r.finish)
		if choice.Delta != nil {
			if err := r.add(*choice.Delta); err != nil {
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
	r.call.Model = or(c.Model, r.call.Model)
	r.call.RequestID = or(r.call.RequestID, c.ID)
	if u := c.Usage; u != nil && u.Prompt+u.Completion > 0 {
		cached := u.CacheHit
		if u.Details != nil {
			cached = max(cached, u.Details.Cached)
		}
		cached = min(max(cached, 0), u.Prompt)
		r.call.Usage = tidemark.Usage{Input: u.Prompt - cached, CacheRead: cached, Output: u.Completion}
		r.call.Reported = true
	}
	return nil
}

// add takes up a piece of the message and leaves in out what a reader should see of it.
func (r *openaiReply) add(p openaiPart) error {
	r.text.WriteString(string(p.Content))
	r.refusal.WriteString(p.Refusal)
	r.out = append(r.out, tidemark.Delta{Text: string(p.Content) + p.Refusal, Thinking: or(p.Thoughts, p.Reasoning)})
	for _, t := range p.ToolCalls {
		c, isNew := r.slot(t.Index, t.ID)
		if c == nil {
			return fmt.Errorf("read reply: over %d tool calls: %w", maxBlocks, tidemark.ErrTooLarge)
		}
		if c.name == "" && t.Function.Name != "" {
			c.name = t.Function.Name
			r.out = append(r.out, tidemark.Delta{Tool: c.name})
		} else if !isNew && t.Function.Name != "" && t.Function.Name != c.name {
			c.name += t.Function.Name // in pieces
		}
		c.args.WriteString(string(t.Function.Arguments))
	}
	return nil
}

// slot returns the call that a piece belongs to. Pieces are told apart by index; some endpoints
// send none, or 0 for all, and begin each call with its id.
func (r *openaiReply) slot(index *int, id string) (c *chatCall, isNew bool) {
	last := len(r.calls) - 1
	for i := last; i >= 0; i-- {
		c := r.calls[i]
		if index != nil && c.index != *index {
			continue
		}
		if id == "" || c.id == id {
			return c, false
		}
		if c.id == "" && index != nil {
			c.id = id
			return c, false
		}
		break
	}
	if len(r.calls) >= maxBlocks {
		return nil, false
	}
	at := len(r.calls)
	if index != nil {
		at = *index
	}
	c = &chatCall{index: at, id: id}
	r.calls = append(r.calls, c)
	return c, true
}

func (r *openaiReply) finished() bool { return r.finish != "" }

func (r *openaiReply) reply() (tidemark.Reply, error) {
	m := tidemark.Message{Role: tidemark.Assistant}
	if text := r.text.String(); strings.TrimSpace(text) != "" {
		m.Content = append(m.Content, tidemark.Text(text))
	}
	for _, c := range r.calls {
		if c.name != "" {
			m.Content = append(m.Content, tidemark.ToolUse(r.unique(c.id), c.name, toolInput(c.args.String())))
		}
	}
	switch r.finish {
	case finishLength, "model_length":
		r.call.Stop = stopLength
	case "content_filter":
		r.call.Stop = stopRefusal
	case "error":
		return tidemark.Reply{}, &tidemark.APIError{Class: tidemark.ClassOverloaded, Status: http.StatusOK, Type: r.finish,
			Message: "the model stopped with an error", RequestID: r.call.RequestID}
	default: // stop, tool_calls, function_call, eos, nothing: what counts is whether there are calls
		r.call.Stop = stopEnd
		if len(m.Calls()) > 0 {
			r.call.Stop = stopTool
		}
	}
	return complete(r.req, m, r.call, r.refusal.String())
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
		return tidemark.Reply{}, networkError("the answer is not JSON: "+clip(string(data), 200), r.key)
	}
	return r.wholeChunk(c, data)
}

// wholeChunk reads such an answer, decoded; data is its JSON, for the words of an error.
func (r *openaiReply) wholeChunk(c openaiChunk, data []byte) (tidemark.Reply, error) {
	if err := r.head(c, data); err != nil {
		return tidemark.Reply{}, err
	}
	if len(c.Choices) == 0 {
		return tidemark.Reply{}, streamError(data, r.call.RequestID, r.key)
	}
	r.finish = c.Choices[0].FinishReason
	if p := c.Choices[0].Message; p != nil {
		// Calls of a whole message have no index; each element is one.
		for i := range p.ToolCalls {
			p.ToolCalls[i].Index = &i
		}
		if err := r.add(*p); err != nil {
			return tidemark.Reply{}, err
		}
	}
	return r.reply()
}
