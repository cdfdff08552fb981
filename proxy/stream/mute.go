package stream

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// unsaid is what the client gets where calls of ours, or tags, were all that the model said: a message that has no block, or
// ends with thinking, is refused when the client sends it back.
const unsaid = "(no content)"

// mute reports whether something was taken, and nothing is left that the client could send back.
func (f *Filter) mute() bool {
	parts := f.leg.parts
	took := f.last > 0 || slices.ContainsFunc(parts, func(p *part) bool { return p.kind == phantom || p.gate != nil && p.gate.took() })
	if !took || f.leg.odd || f.leg.pass || len(f.words) > 0 {
		return false
	}
	for _, p := range slices.Backward(parts) {
		switch {
		case p.kind == phantom || p.kind == unsure:
		case p.kind == words && p.gate != nil && (!p.gate.started || f.o.Dialect == Chat && len(p.gate.shown) == 0):
		default:
			return p.kind == thinking
		}
	}
	return f.blocks == 0 || f.behind > 0
}

// speak sends what is said in place of nothing.
func (f *Filter) speak() {
	f.spoke = true
	if f.o.Dialect == Chat {
		f.put(f.chatDelta(unsaid))
		return
	}
	index := decimal(f.n)
	f.n++
	for _, e := range [...]struct{ name, rest string }{
		{"content_block_start", `,"content_block":{"type":"text","text":""}}`},
		{"content_block_delta", `,"delta":{"type":"text_delta","text":"` + unsaid + `"}}`},
		{"content_block_stop", `}`},
	} {
		data := append([]byte(`{"type":"`+e.name+`","index":`), index...)
		f.put(f.event(e.name, append(data, e.rest...)))
	}
}

// spoken notes it as what the client received. Calls of ours that end the turn stand behind it: their results follow them.
func (f *Filter) spoken() {
	for i := range f.places[f.last:] {
		if p := &f.places[f.last+i]; len(p.Calls) > 0 && p.Visible == f.blocks && p.Thinking == f.behind {
			p.Visible, p.Thinking = p.Visible+1, 0
		}
	}
	if f.o.Dialect == Chat {
		f.words = append(f.words, unsaid...)
	} else {
		f.seen = append(f.seen, tidemark.Text(unsaid))
	}
}
