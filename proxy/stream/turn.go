package stream

import (
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/provider"
)

// collect makes a leg of what came, and notes what of it the client saw.
func (f *Filter) collect() Leg {
	l := &f.leg
	out := Leg{Message: tidemark.Message{Role: tidemark.Assistant}, Stop: l.stop, ID: l.id, Model: l.model}
	if f.o.Dialect == Chat {
		out.Usage, out.Reported = provider.ChatUsage(l.usage)
	} else {
		out.Usage, out.Reported = provider.MessagesUsage(l.usage)
	}
	for i, p := range l.parts {
		if p.kind == unsure || f.o.Dialect == Chat && p.kind == words && len(p.text) == 0 {
			continue
		}
		if p.id == "" && p.raw == nil && p.kind != words {
			p.id = "call_" + l.id + "_" + strconv.Itoa(i)
		}
		b, ok := p.block()
		if !ok {
			l.odd = true
			continue
		}
		l.odd = l.odd || p.open
		if b.Type != tidemark.TypeText || strings.TrimSpace(b.Text) != "" {
			out.Message.Content = append(out.Message.Content, b)
		}
		switch p.kind {
		case phantom:
			out.Phantom = append(out.Phantom, b)
		case theirs:
			out.Real++
		}
		f.see(p, b)
	}
	if f.o.Dialect == Chat {
		f.words = append(f.words, l.gate.shown...)
	}
	out.Whole = l.stop != "" && !l.failed && !l.odd && !l.pass && f.err == nil
	return out
}

// see notes a block as what the client received, or where it stood that the client did not.
func (f *Filter) see(p *part, b tidemark.Block) {
	if f.o.Dialect == Chat && p.kind == words {
		if len(p.gate.shown) == 0 {
			f.place().Blocks = []tidemark.Block{b}
		}
		f.chatText = len(f.words) + len(p.gate.shown)
		return
	}
	if shown, ok := p.shown(); ok {
		f.seen = append(f.seen, shown)
		if p.kind == thinking {
			f.behind++
		} else {
			f.blocks, f.behind = f.blocks+1, 0
		}
		return
	}
	at := f.place()
	switch {
	case p.kind == phantom:
		at.Calls = append(at.Calls, b)
	case len(at.Calls) > 0: // blocks stand before calls
		f.places = append(f.places, Place{Visible: f.blocks, Thinking: f.behind, Offset: f.chatText, Blocks: []tidemark.Block{b}})
	default:
		at.Blocks = append(at.Blocks, b)
	}
}

// place is where the client is now.
func (f *Filter) place() *Place {
	now := Place{Visible: f.blocks, Thinking: f.behind, Offset: f.chatText}
	if n := len(f.places); n > f.last {
		if p := &f.places[n-1]; p.Visible == now.Visible && p.Thinking == now.Thinking && p.Offset == now.Offset {
			return p
		}
	}
	f.places = append(f.places, now)
	return &f.places[len(f.places)-1]
}

// split notes that the last leg was continued: its calls end it.
func (f *Filter) split() {
	var kept []Place
	end := Place{Visible: f.blocks, Thinking: f.behind, Offset: f.chatText, Split: true}
	for _, p := range f.places[f.last:] {
		end.Calls = append(end.Calls, p.Calls...)
		p.Calls = nil
		switch {
		case len(p.Blocks) == 0:
		case p.Visible == end.Visible && p.Thinking == end.Thinking && p.Offset == end.Offset:
			end.Blocks = append(end.Blocks, p.Blocks...)
		default:
			kept = append(kept, p)
		}
	}
	f.places = append(append(f.places[:f.last], kept...), end)
	f.last = len(f.places)
}

// placed are the places among the blocks of Seen. The one text of chat completions is a block, which
// stands before all calls.
func (f *Filter) placed() []Place {
	out := append([]Place(nil), f.places...)
	for i := range out {
		p := &out[i]
		if f.o.Dialect != Chat {
			continue
		}
		if p.Offset == len(f.words) && p.Offset > 0 {
			p.Visible, p.Offset = p.Visible+1, 0
		}
	}
	return out
}
