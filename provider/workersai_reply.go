package provider

import (
	"fmt"
	"net/http"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// workersaiReply brings the chunks of Workers AI into the shape of chat completions and hands them to
// that decoder. Where both shapes come they say the same
// (https://github.com/cloudflare/agents-starter/issues/157), so text and calls are each taken from the
// shape in which they came first.
type workersaiReply struct {
	*openaiReply
	limit tidemark.Tokens // bound that was sent
	texts shape           // where the text comes from
	tools shape           // where the calls come from
	empty bool            // a whole answer had nothing in it: a model that cannot stream gives that
}

// finishLength is how chat completions name the bound on a reply.
const finishLength = "length"

// shape is where a part of the reply comes from.
type shape int

const (
	unknown shape = iota
	flat          // response and tool_calls beside the choices
	choices
)

// take reports whether what came in shape s counts; the first shape stays.
func (have *shape) take(s shape) bool {
	if *have == unknown {
		*have = s
	}
	return *have == s
}

func newWorkersAIReply(req tidemark.Request, key string, limit tidemark.Tokens, newID func() string) *workersaiReply {
	return &workersaiReply{openaiReply: newOpenAIReply(req, key, newID), limit: limit}
}

func (r *workersaiReply) event(ev sse.Event) (ds []tidemark.Delta, done bool, err error) {
	if string(ev.Data) == "[DONE]" {
		return r.openaiReply.event(ev)
	}
	if r.size += len(ev.Data); r.size > maxReplyBody {
		return nil, false, fmt.Errorf("read reply: over %d bytes: %w", maxReplyBody, tidemark.ErrTooLarge)
	}
	var c workersaiChunk
	if err := json.Unmarshal(ev.Data, &c); err != nil {
		return nil, false, networkError("a chunk is not JSON: "+clip.To(string(ev.Data), 200), r.key)
	}
	if c.failed() {
		return nil, false, streamError(ev.Data, r.call.RequestID, r.key)
	}
	choice := c.first()
	if choice.Delta.is == nil {
		choice.Delta.is = &openaiPart{}
	}
	r.merge(choice.Delta.is, c)
	choice.FinishReason = or(choice.FinishReason, c.FinishReason)
	ds, err = r.chunk(c.openaiChunk, ev.Data)
	return ds, false, err
}

// failed reports whether a chunk is an error in one of the service's own shapes.
func (c *workersaiChunk) failed() bool {
	return len(c.Internal) > 0 && string(c.Internal) != "null" ||
		len(c.Errors) > 0 && string(c.Errors) != "null" && string(c.Errors) != "[]"
}

// first returns the choice that we asked for; there is one afterwards.
func (c *workersaiChunk) first() *openaiChoice {
	for i := range c.Choices.is {
		if c.Choices.is[i].is.Index.n == 0 {
			return &c.Choices.is[i].is
		}
	}
	c.Choices.is = append(c.Choices.is, loose[openaiChoice]{})
	return &c.Choices.is[len(c.Choices.is)-1].is
}

// merge completes the part of a choice by what stands beside it.
func (r *workersaiReply) merge(p *openaiPart, c workersaiChunk) {
	if p.Content != "" && !r.texts.take(choices) {
		p.Content = ""
	}
	if c.Response != "" && r.texts.take(flat) {
		p.Content = c.Response
	}
	if len(p.ToolCalls.is) > 0 && !r.tools.take(choices) {
		p.ToolCalls.is = nil
	}
	for _, f := range c.ToolCalls.is {
		call := f.is.openaiCall
		said := &call.Function.is
		if f.is.Name != "" && said.Name == "" { // whole: a call of its own
			at := len(r.calls) + len(p.ToolCalls.is)
			call.Index, said.Name, said.Arguments = looseInt{int64(at), true}, f.is.Name, f.is.Arguments
		}
		if string(call.ID)+string(said.Name)+string(said.Arguments) != "" && r.tools.take(flat) {
			p.ToolCalls.is = append(p.ToolCalls.is, loose[openaiCall]{call})
		}
	}
}

// reply says that a reply without a reason to stop was cut off when it is as long as its bound.
func (r *workersaiReply) reply() (tidemark.Reply, error) {
	if r.finish == "" && r.call.Reported && r.call.Usage.Output >= r.limit {
		r.finish = finishLength
	}
	return r.openaiReply.reply()
}

// whole reads an answer in one piece, bare as the binding gives it or in the REST API's envelope.
func (r *workersaiReply) whole(data []byte) (tidemark.Reply, error) {
	var c workersaiChunk
	err := json.Unmarshal(data, &c)
	if err == nil && len(c.Result) > 0 && c.Result[0] == '{' && !c.failed() {
		data = c.Result
		c = workersaiChunk{}
		err = json.Unmarshal(data, &c)
	}
	switch {
	case err != nil:
		return tidemark.Reply{}, networkError("the answer is not JSON: "+clip.To(string(data), 200), r.key)
	case c.failed():
		return tidemark.Reply{}, streamError(data, r.call.RequestID, r.key)
	case len(c.Error) == 0 && len(c.Choices.is) == 0 && c.Response == "" && len(c.ToolCalls.is) == 0:
		r.empty = true
		return tidemark.Reply{}, &tidemark.APIError{Class: tidemark.ClassNetwork, Status: http.StatusOK, Type: tidemark.EmptyReply, Message: "the answer has no content"}
	}
	choice := c.first()
	if choice.Message.is == nil {
		choice.Message.is = &openaiPart{}
	}
	r.merge(choice.Message.is, c)
	choice.FinishReason = or(choice.FinishReason, c.FinishReason)
	if u := c.Usage.is; choice.FinishReason == "" && u != nil && u.Completion.tokens() >= r.limit {
		choice.FinishReason = finishLength
	}
	c.Choices.is[0].is = *choice
	return r.wholeChunk(c.openaiChunk, data)
}
