package provider

import (
	"fmt"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
	"github.com/tidemark-ai/tidemark/internal/sse"
)

// maxBlocks bounds the blocks of a reply and the tool calls in one.
const maxBlocks = 4096

// anthropicReply builds a reply from the events of one stream, see the list at
// https://docs.anthropic.com/en/docs/build-with-claude/streaming. Pings and events that we do not
// know are ignored, as the API's versioning rules ask.
type anthropicReply struct {
	key   string
	req   tidemark.Request
	call  tidemark.Call
	parts []*part
	size  int
	out   [1]tidemark.Delta
}

// part is a content block in the making: what it began with, and what was added to its fields.
type part struct {
	index     int
	raw       json.RawMessage
	block     tidemark.Block // raw, decoded
	text      strings.Builder
	signature strings.Builder
	input     strings.Builder
	content   strings.Builder // of a compaction block
	pieces    struct{ text, input halves }
	citations []json.RawMessage
	changed   bool
}

type anthropicMessage struct {
	ID         looseName                `json:"id"`
	Model      looseName                `json:"model"`
	Content    loose[[]json.RawMessage] `json:"content"`
	StopReason looseName                `json:"stop_reason"`
	Usage      loose[*anthropicUsage]   `json:"usage"`
}

type anthropicEvent struct {
	Type    looseName                `json:"type"`
	Index   looseInt                 `json:"index"`
	Message loose[*anthropicMessage] `json:"message"`
	Block   json.RawMessage          `json:"content_block"`
	Usage   loose[*anthropicUsage]   `json:"usage"`
	Delta   loose[anthropicDelta]    `json:"delta"`
}

type anthropicDelta struct {
	Type        looseName       `json:"type"`
	Text        looseText       `json:"text"`
	Thinking    looseText       `json:"thinking"`
	Signature   looseText       `json:"signature"`
	PartialJSON looseText       `json:"partial_json"`
	Content     looseText       `json:"content"`
	Citation    json.RawMessage `json:"citation"`
	StopReason  looseName       `json:"stop_reason"`
}

func (r *anthropicReply) event(ev sse.Event) (ds []tidemark.Delta, done bool, err error) {
	if r.size += len(ev.Data); r.size > maxReplyBody {
		return nil, false, fmt.Errorf("read reply: over %d bytes: %w", maxReplyBody, tidemark.ErrTooLarge)
	}
	var e anthropicEvent
	if err := json.Unmarshal(ev.Data, &e); err != nil {
		if ev.Name != "" && !strings.HasPrefix(ev.Name, "content_block") && !strings.HasPrefix(ev.Name, "message") && ev.Name != "error" {
			return nil, false, nil // an event that we do not know need not be JSON
		}
		return nil, false, networkError("an event is not JSON: "+clip.To(string(ev.Data), 200), r.key)
	}
	var d tidemark.Delta
	switch or(string(e.Type), ev.Name) {
	case "message_start":
		r.start(e.Message.is)
	case "content_block_start":
		d, err = r.open(e)
	case "content_block_delta":
		d, err = r.add(e)
	case "message_delta":
		r.call.Stop = or(string(e.Delta.is.StopReason), r.call.Stop)
		r.usage(e.Usage.is)
	case "message_stop":
		return nil, true, nil
	case "error":
		return nil, false, streamError(ev.Data, r.call.RequestID, r.key)
	}
	r.out[0] = d
	return r.out[:], false, err
}

func (r *anthropicReply) start(m *anthropicMessage) {
	if m == nil {
		return
	}
	r.call.Model = or(string(m.Model), r.call.Model)
	r.call.RequestID = or(r.call.RequestID, string(m.ID))
	r.usage(m.Usage.is)
}

// usage takes up figures; those of message_delta are totals, not additions.
func (r *anthropicReply) usage(u *anthropicUsage) {
	r.call.Reported = u.over(&r.call.Usage) || r.call.Reported
}

func (r *anthropicReply) open(e anthropicEvent) (tidemark.Delta, error) {
	p := &part{index: int(e.Index.n)}
	if len(r.parts) >= maxBlocks {
		return tidemark.Delta{}, fmt.Errorf("read reply: over %d blocks: %w", maxBlocks, tidemark.ErrTooLarge)
	}
	var err error
	if p.block, err = looseBlock(e.Block); err != nil {
		return tidemark.Delta{}, networkError("a block of the reply is not one: "+clip.To(string(e.Block), 200), r.key)
	}
	p.raw = p.block.Raw()
	p.text.WriteString(p.block.Text)
	p.signature.WriteString(p.block.Signature)
	r.parts = append(r.parts, p)
	switch p.block.Type {
	case tidemark.TypeText:
		return tidemark.Delta{Text: p.block.Text}, nil
	case tidemark.TypeThinking:
		return tidemark.Delta{Thinking: p.block.Text}, nil
	case tidemark.TypeToolUse:
		return tidemark.Delta{Tool: p.block.Name}, nil
	}
	return tidemark.Delta{}, nil
}

func (r *anthropicReply) add(e anthropicEvent) (tidemark.Delta, error) {
	var p *part
	for i := len(r.parts) - 1; i >= 0 && p == nil; i-- {
		if r.parts[i].index == int(e.Index.n) {
			p = r.parts[i]
		}
	}
	if p == nil {
		return tidemark.Delta{}, networkError(fmt.Sprintf("a delta for block %d, which did not begin", e.Index.n), r.key)
	}
	p.changed = true
	d := e.Delta.is
	switch d.Type {
	case "text_delta":
		text := p.pieces.text.next(string(d.Text))
		p.text.WriteString(text)
		return tidemark.Delta{Text: text}, nil
	case "thinking_delta":
		text := p.pieces.text.next(string(d.Thinking))
		p.text.WriteString(text)
		return tidemark.Delta{Thinking: text}, nil
	case "signature_delta":
		p.signature.WriteString(string(d.Signature))
	case "input_json_delta":
		p.input.WriteString(p.pieces.input.next(string(d.PartialJSON)))
	case "citations_delta":
		p.citations = append(p.citations, d.Citation)
	case "compaction_delta":
		p.content.WriteString(p.pieces.text.next(string(d.Content)))
	}
	return tidemark.Delta{}, nil
}

// finished reports whether a stream that ends here without message_stop, as some proxies do, holds
// a whole reply.
func (r *anthropicReply) finished() bool { return r.call.Stop != "" }

// reply returns the whole answer.
func (r *anthropicReply) reply() (tidemark.Reply, error) {
	m := tidemark.Message{Role: tidemark.Assistant}
	for _, p := range r.parts {
		b, err := p.finish()
		if err != nil {
			return tidemark.Reply{}, networkError("a block of the reply is not one: "+err.Error(), r.key)
		}
		if b.Type == tidemark.TypeText && strings.TrimSpace(b.Text) == "" {
			continue // the API refuses to be sent such a block again
		}
		m.Content = append(m.Content, b)
	}
	return complete(r.req, m, r.call)
}

// finish returns the block with all that was added to it. An untouched one keeps its bytes.
func (p *part) finish() (tidemark.Block, error) {
	if !p.changed {
		return p.block, nil
	}
	p.text.WriteString(p.pieces.text.rest())
	p.input.WriteString(p.pieces.input.rest())
	var sets []field
	set := func(key string, value []byte) { sets = append(sets, field{Key: key, Value: value}) }
	switch p.block.Type {
	case tidemark.TypeText:
		set("text", json.AppendString(nil, p.text.String()))
	case tidemark.TypeThinking:
		set("thinking", json.AppendString(nil, p.text.String()))
		set("signature", json.AppendString(nil, p.signature.String()))
	}
	if p.input.Len() > 0 {
		set("input", ToolInput(p.input.String()))
	}
	if p.content.Len() > 0 {
		set("content", json.AppendString(nil, p.content.String()))
	}
	if len(p.citations) > 0 {
		list, err := json.Marshal(p.citations)
		if err != nil {
			return tidemark.Block{}, err
		}
		set("citations", list)
	}
	var b tidemark.Block
	err := b.UnmarshalJSON(jsonscan.Set(nil, p.raw, sets...))
	return b, err
}

// whole reads the answer of an endpoint that does not stream.
func (r *anthropicReply) whole(data []byte) (tidemark.Reply, error) {
	var m anthropicMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return tidemark.Reply{}, networkError("the answer is not JSON: "+clip.To(string(data), 200), r.key)
	}
	if m.Content.is == nil && m.StopReason == "" {
		return tidemark.Reply{}, streamError(data, r.call.RequestID, r.key)
	}
	r.start(&m)
	r.call.Stop = string(m.StopReason)
	for i, raw := range m.Content.is {
		if _, err := r.open(anthropicEvent{Index: looseInt{int64(i), true}, Block: raw}); err != nil {
			return tidemark.Reply{}, err
		}
	}
	return r.reply()
}
