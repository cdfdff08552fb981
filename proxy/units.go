package proxy

import (
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// place names a block of a message among what the model wrote, calls of ours included: it is the same in all forms of the
// message.
type place struct {
	N       int `json:"n"`                 // so many blocks that count stand before it
	Thought int `json:"thought,omitempty"` // the block of thinking behind those, from 1; 0: the block that counts
}

// unit is a block of a message as the model wrote it: the client's, or one that it never saw.
type unit struct {
	place
	own    int    // block of the item, -1 for one of ours
	put    int    // else where it was put back
	raw    []byte // and what,
	result []byte // with the result of a call
}

// units lists the blocks of a message in the order in which the model wrote them. Reminders are none of them. Where ours
// stood within a text (chat completions), that stands behind them.
func (f form) units(p *put) []unit {
	out := make([]unit, 0, len(f)+1)
	places := p.places()
	n, thoughts, next := 0, 0, 0
	for k := 0; k <= len(f); k++ {
		for next < len(places) && places[next].before(f) <= k {
			for _, raw := range places[next].Blocks {
				out = append(out, unit{place{N: n}, -1, next, raw, nil})
				n, thoughts = n+1, 0
			}
			for i, raw := range places[next].Calls {
				out = append(out, unit{place{N: n}, -1, next, raw, places[next].Results[i]})
				n, thoughts = n+1, 0
			}
			next++
		}
		if k == len(f) {
			break
		}
		switch f[k] {
		case counts:
			out = append(out, unit{place{N: n}, k, -1, nil, nil})
			n, thoughts = n+1, 0
		case thought:
			thoughts++
			out = append(out, unit{place{n, thoughts}, k, -1, nil, nil})
		}
	}
	return out
}

// before is the block of a message before which it stands, as package body finds it.
func (p *placed) before(f form) int {
	at := 0
	for seen := 0; seen < p.Visible && at < len(f); at++ {
		if f[at] != thought {
			seen++
		}
	}
	for k := 0; k < p.Thinking && at < len(f) && f[at] == thought; k++ {
		at++
	}
	return at
}

// of is the JSON of a block as the model wrote it, of which the client's stands in an item.
func (u unit) of(it body.Item) []byte {
	if u.own >= 0 {
		return it.Block(u.own)
	}
	return u.raw
}

// work is what a graph takes of a message: its calls and results, and no words. Thinking is not in it, not even its size: a
// client may have dropped it before the message was seen again.
type work struct {
	blocks []tidemark.Block
	tokens tidemark.Tokens
}

// maxArguments bounds the arguments of a call that are kept as they are, in bytes.
const maxArguments = 2_000

// workOf reads a message for graphs.
func workOf(n *node, it body.Item) *work {
	w := &work{blocks: []tidemark.Block{}}
	for _, u := range n.form.units(n.put) {
		if u.Thought > 0 {
			continue
		}
		var b tidemark.Block
		if json.Unmarshal(u.of(it), &b) != nil {
			b = tidemark.Block{Type: tidemark.TypeText}
		}
		w.tokens += sizeOf(b)
		w.blocks = append(w.blocks, slim(b))
	}
	return w
}

// sizeOf estimates a block by what it says: cache markers and forms, which wander from request to request, do not count.
func sizeOf(b tidemark.Block) tidemark.Tokens { return tidemark.EstimateBlock(plain(b)) }

// plain is a block in the one form that says the same.
func plain(b tidemark.Block) tidemark.Block {
	switch b.Type {
	case tidemark.TypeText:
		return tidemark.Text(b.Text)
	case tidemark.TypeToolUse:
		return tidemark.ToolUse(b.ID, b.Name, b.Input)
	case tidemark.TypeToolResult:
		out := tidemark.Block{Type: b.Type, ToolUseID: b.ToolUseID, IsError: b.IsError, Content: make([]tidemark.Block, len(b.Content))}
		for i := range b.Content {
			out.Content[i] = plain(b.Content[i])
		}
		return out
	}
	return b
}

// slim is a block without its words.
func slim(b tidemark.Block) tidemark.Block {
	out := tidemark.Block{Type: b.Type}
	switch b.Type {
	case tidemark.TypeToolUse:
		out.ID, out.Name, out.Input = b.ID, b.Name, b.Input
		var fields map[string]json.RawMessage
		if len(b.Input) > maxArguments && b.Name != episodes.ToolName && json.Unmarshal(b.Input, &fields) == nil {
			for name, value := range fields {
				if len(value) > maxArguments/4 {
					delete(fields, name)
				}
			}
			if raw, err := json.Marshal(fields); err == nil {
				out.Input = raw
			}
		}
	case tidemark.TypeToolResult:
		out.ToolUseID, out.IsError = b.ToolUseID, b.IsError
	}
	return out
}

// tokens is how large the results of ours are, with or without those that the model has seen in a later leg.
func (p *put) tokens(all bool) (n tidemark.Tokens) {
	for _, at := range p.places() {
		if !all && at.Split {
			continue
		}
		for _, raw := range at.Results {
			n += tidemark.EstimateChars(tidemark.UTF16Len(string(raw)))
		}
	}
	return n
}

// answered are the results of the calls that a client never saw.
func (p *put) answered() (out []tidemark.Block) {
	for _, at := range p.places() {
		for _, raw := range at.Results {
			var b tidemark.Block
			if json.Unmarshal(raw, &b) == nil {
				out = append(out, b)
			}
		}
	}
	return out
}
