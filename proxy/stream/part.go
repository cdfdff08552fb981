package stream

import (
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// kind says what becomes of a block.
type kind uint8

const (
	other    kind = iota // passes: what we do not read, server tools
	words                // text, from which cleanup blocks are taken
	thinking             // passes; not counted among the visible ones
	theirs               // a call of one of the client's tools
	phantom              // a call of one of ours: never seen
	unsure               // a call whose name has not come
)

// maxInput bounds the input of a phantom call; one that is longer is taken as empty.
const maxInput = 1 << 20

// part is a block in the making. Strings are collected as they are escaped in JSON, which costs no
// decoding and keeps them as they came.
type part struct {
	kind  kind
	index int // upstream
	to    int // for the client
	raw   []byte
	id    string
	name  string

	text, signature, input, content []byte
	citations                       []byte // elements with their commas
	changed, open, large            bool
	gate                            *gate // of words, if tags are looked for
}

// newPart begins a block with what a content_block_start says, or with a block that is whole. ok is false
// for what is no block.
func (o *Options) newPart(index int, raw []byte) (p *part, ok bool) {
	var at [4]span
	if _, ok := pick(raw, 0, []string{"type", "id", "name", "text"}, at[:]); !ok || !quoted(at[0].Of(raw)) {
		return nil, false
	}
	p = &part{index: index, raw: append([]byte(nil), raw...)}
	switch text(at[0].Of(raw)) {
	case tidemark.TypeText:
		p.kind = words
	case tidemark.TypeThinking, tidemark.TypeRedactedThinking:
		p.kind = thinking
	case tidemark.TypeToolUse:
		p.id, p.name, p.kind = text(at[1].Of(raw)), text(at[2].Of(raw)), theirs
		if o.phantom(p.name) {
			p.kind = phantom
		}
	}
	switch p.kind {
	case words:
		p.text = inner(p.text, at[3].Of(raw))
	case thinking:
		p.text = inner(p.text, valueOf(raw, "thinking"))
		p.signature = inner(p.signature, valueOf(raw, "signature"))
	}
	return p, true
}

// inner appends what stands between the quotes of a string.
func inner(dst, raw []byte) []byte {
	if !quoted(raw) {
		return dst
	}
	return append(dst, raw[1:len(raw)-1]...)
}

// add takes a delta.
func (p *part) add(delta []byte) {
	var at [6]span
	if _, ok := pick(delta, 0, []string{"type", "text", "partial_json", "thinking", "signature", "citation"}, at[:]); !ok {
		return
	}
	typ := at[0].Of(delta)
	switch {
	case is(typ, "text_delta"):
		p.text = inner(p.text, at[1].Of(delta))
	case is(typ, "input_json_delta"):
		if p.kind == phantom && len(p.input) > maxInput {
			p.large = true
		} else {
			p.input = inner(p.input, at[2].Of(delta))
		}
	case is(typ, "thinking_delta"):
		p.text = inner(p.text, at[3].Of(delta))
	case is(typ, "signature_delta"):
		p.signature = inner(p.signature, at[4].Of(delta))
	case is(typ, "compaction_delta"):
		p.content = inner(p.content, valueOf(delta, "content"))
	case is(typ, "citations_delta") && there(at[5]):
		if len(p.citations) > 0 {
			p.citations = append(p.citations, ',')
		}
		p.citations = append(p.citations, at[5].Of(delta)...)
	default:
		return
	}
	p.changed = true
}

// whole is a JSON string of what was collected.
func whole(inner []byte) []byte {
	return append(append(append(make([]byte, 0, len(inner)+2), '"'), inner...), '"')
}

// block is the block as the model made it; ok is false where it cannot be read.
func (p *part) block() (b tidemark.Block, ok bool) {
	if p.raw == nil {
		return p.chatBlock(), true
	}
	raw := p.raw
	if p.changed {
		raw = p.filled(p.text)
	}
	ok = json.Unmarshal(raw, &b) == nil
	return b, ok
}

// filled is the block's JSON with all that was added to it.
func (p *part) filled(text []byte) []byte {
	raw := p.raw
	switch p.kind {
	case words:
		raw = set(raw, "text", whole(text))
	case thinking:
		if len(text) > 0 || valueOf(raw, "thinking") != nil {
			raw = set(raw, "thinking", whole(text))
		}
		if len(p.signature) > 0 {
			raw = set(raw, "signature", whole(p.signature))
		}
	}
	if len(p.input) > 0 || p.large {
		raw = set(raw, "input", p.arguments())
	}
	if len(p.content) > 0 {
		raw = set(raw, "content", whole(p.content))
	}
	if len(p.citations) > 0 {
		had := valueOf(raw, "citations")
		list := append(append([]byte{'['}, p.citations...), ']')
		if len(had) > 0 && had[0] == '[' {
			list = join(had, list)
		}
		raw = set(raw, "citations", list)
	}
	return raw
}

// arguments is the input of a call, as one JSON object. What was cut off or is none is empty for a call
// of the Messages API; of chat completions it is put into an object, as a request with it is read.
func (p *part) arguments() []byte {
	if p.large || p.kind == phantom && len(p.input) > maxInput {
		return []byte("{}")
	}
	words := text(whole(p.input))
	args := strings.TrimSpace(words)
	switch {
	case strings.HasPrefix(args, "{") && json.Valid([]byte(args)):
		return []byte(args)
	case p.raw != nil || p.kind == phantom || args == "":
		return []byte("{}")
	}
	return append(json.AppendString([]byte(`{"arguments":`), words), '}')
}

// chatBlock is a part of chat completions as a block of the Messages API.
func (p *part) chatBlock() tidemark.Block {
	if p.kind == words {
		return tidemark.Text(text(whole(p.text)))
	}
	return tidemark.ToolUse(p.id, p.name, p.arguments())
}

// shown is the block as the client received it; ok is false when it received none.
func (p *part) shown() (b tidemark.Block, ok bool) {
	switch {
	case p.kind == phantom || p.gate != nil && !p.gate.started:
		return b, false
	case p.gate == nil || !p.gate.took():
		return p.block()
	}
	s := json.AppendString(nil, string(p.gate.shown))
	ok = json.Unmarshal(p.filled(s[1:len(s)-1]), &b) == nil
	return b, ok
}
