package proxy

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/proxy/body"
	"github.com/tidemark-ai/tidemark/proxy/stream"
)

// put is what a client never saw of a reply: our own calls with their results, and text that was nothing but tags.
type put struct {
	Places []placed `json:"places"`
}

// places are none for a reply of which the client saw all.
func (p *put) places() []placed {
	if p == nil {
		return nil
	}
	return p.Places
}

// placed is what stood at one place of a reply; see [body.Insert].
type placed struct {
	Visible  int               `json:"visible"`
	Thinking int               `json:"thinking,omitempty"`
	Offset   int               `json:"offset,omitempty"`
	Split    bool              `json:"split,omitempty"`
	Blocks   []json.RawMessage `json:"blocks,omitempty"`
	Calls    []json.RawMessage `json:"calls,omitempty"`
	Results  []json.RawMessage `json:"results,omitempty"`
}

// putOf joins the places of a turn with the answers to their calls.
func putOf(t stream.Turn, results map[string]tidemark.Block) *put {
	var out put
	for _, p := range t.Places {
		one := placed{Visible: p.Visible, Thinking: p.Thinking, Offset: p.Offset, Split: p.Split}
		for _, b := range p.Blocks {
			one.Blocks = append(one.Blocks, b.AppendJSON(nil))
		}
		for _, call := range p.Calls {
			one.Calls = append(one.Calls, call.AppendJSON(nil))
			one.Results = append(one.Results, results[call.ID].AppendJSON(nil))
		}
		out.Places = append(out.Places, one)
	}
	if len(out.Places) == 0 {
		return nil
	}
	return &out
}

// insert is the place for a request in which the reply is an item. stubs are results that are out.
func (p placed) insert(item int, stubs map[string][]byte) body.Insert {
	in := body.Insert{Item: item, Visible: p.Visible, Thinking: p.Thinking, Offset: p.Offset, Split: p.Split}
	for _, b := range p.Blocks {
		in.Blocks = append(in.Blocks, b)
	}
	for _, b := range p.Calls {
		in.Calls = append(in.Calls, b)
	}
	for _, b := range p.Results {
		if s := stubs[string(b)]; s != nil {
			b = s
		}
		in.Results = append(in.Results, b)
	}
	return in
}

// extra are the blocks that were put back of a message: calls of ours in a reply, and what the reply before it asked us.
// To pagers they stand behind the client's own, in one message, whatever the reply was parted into: so a block has the
// same number for all, and what leaves and when does not depend on that.
func (n *node) extra() (out [][]byte) {
	for _, p := range n.put.places() {
		for _, raw := range p.Calls {
			out = append(out, raw)
		}
	}
	if n.parent != nil {
		for _, p := range n.parent.put.places() {
			for _, raw := range p.Results {
				out = append(out, raw)
			}
		}
	}
	return out
}

// whole is the message as pagers take it.
func (n *node) whole(it body.Item) []byte {
	if n.foreign {
		if m, _, err := messageOf(it); err == nil {
			return m.AppendJSON(nil)
		}
	}
	extra := n.extra()
	if len(extra) == 0 {
		return it.Alone()
	}
	for i := range it.Blocks() {
		extra = slices.Insert(extra, i, it.Block(i))
	}
	return message(n.role, extra)
}

// logged is a message of the log as an item of a request.
func logged(m tidemark.Message) body.Item {
	raw := m.AppendJSON(nil)
	it, err := body.NewItem(raw)
	if err != nil { // it was an item once
		return body.Item{Role: m.Role, Raw: raw}
	}
	return it
}
