package stream

import (
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxParts bounds the blocks of an answer.
const maxParts = 4096

// messagesFrame takes an event of the Messages API.
func (f *Filter) messagesFrame(fr frame) {
	var at [6]span
	data := fr.data
	if _, ok := pick(data, 0, []string{"type", "index", "delta", "content_block", "message", "usage"}, at[:]); !ok {
		f.pass(fr)
		return
	}
	typ := at[0].Of(data)
	switch {
	case is(typ, "content_block_delta"):
		f.blockDelta(fr, at[1], at[2])
	case is(typ, "content_block_start"):
		f.blockStart(fr, at[1], at[3])
	case is(typ, "content_block_stop"):
		f.blockStop(fr, at[1])
	case is(typ, "message_start"):
		f.messageStart(fr, at[4])
	case is(typ, "message_delta"):
		f.messageDelta(fr, at[2], at[5])
	case is(typ, "message_stop") && f.holding:
		f.hold(fr)
	case is(typ, "error"):
		f.shut(f.gate)
		f.leg.failed = true
		f.pass(fr)
	default:
		f.pass(fr)
	}
}

// open finds the block with an index that has no end yet.
func (l *leg) open(index int) *part {
	for i := len(l.parts) - 1; i >= 0; i-- {
		if p := l.parts[i]; p.index == index {
			if p.open {
				return p
			}
			return nil
		}
	}
	return nil
}

// moved is the edit that gives a block the index that it has for the client, if that is another.
func moved(p *part, at span) []edit {
	if p.to == p.index {
		return nil
	}
	return []edit{{Span: at, With: decimal(p.to)}}
}

func (f *Filter) blockDelta(fr frame, index, delta span) {
	n, ok := number(index.Of(fr.data))
	p := f.leg.open(n)
	if !ok || p == nil || !isObject(delta.Of(fr.data)) {
		f.pass(fr)
		return
	}
	p.add(delta.Of(fr.data))
	edits := moved(p, index)
	if p.kind == phantom {
		f.drop(fr)
		return
	}
	g := p.gate
	if g == nil || g.done {
		f.pass(fr, edits...)
		return
	}
	var at [2]span
	pick(fr.data, delta.From, []string{"type", "text"}, at[:])
	if is(at[0].Of(fr.data), "text_delta") && quoted(at[1].Of(fr.data)) {
		f.text(g, fr, text(at[1].Of(fr.data)), at[1], edits)
		return
	}
	if len(g.queue) == 0 {
		f.emit(fr, edits...)
		return
	}
	if f.wait(g, entry{role: own}, fr, edits); g.size > maxQueue {
		f.force(g)
	}
}

func (f *Filter) blockStart(fr frame, index, block span) {
	f.force(f.gate)
	n, ok := number(index.Of(fr.data))
	p, is := f.o.newPart(n, block.Of(fr.data))
	if !ok || !is || len(f.leg.parts) >= maxParts {
		f.leg.odd = true
		f.pass(fr)
		return
	}
	f.leg.parts = append(f.leg.parts, p)
	p.to, p.open = f.n, true
	if p.kind == phantom {
		f.shifted = true
		f.drop(fr)
		return
	}
	edits := moved(p, index)
	if p.kind == words && f.o.Tags {
		f.blockText(p, fr, block, edits)
		return
	}
	f.n++
	f.pass(fr, edits...)
}

// blockText begins a text. One that has words from its beginning is sent with them, if all are visible.
func (f *Filter) blockText(p *part, fr frame, block span, edits []edit) {
	g := &gate{part: p}
	p.gate, f.gate = g, g
	var at [1]span
	pick(fr.data, block.From, []string{"text"}, at[:])
	s := text(at[0].Of(fr.data))
	if s == "" {
		f.wait(g, entry{role: start}, fr, edits)
		return
	}
	g.take(s, false)
	if g.acc == s && g.tags.Held() == 0 && g.ready() {
		g.acc, g.started = "", true
		f.n++
		f.emit(fr, edits...)
		return
	}
	f.wait(g, entry{role: start}, fr, insert(edits, edit{Span: at[0], With: []byte(`""`)}))
}

func (f *Filter) blockStop(fr frame, index span) {
	n, ok := number(index.Of(fr.data))
	p := f.leg.open(n)
	if !ok || p == nil {
		f.pass(fr)
		return
	}
	p.open = false
	f.shut(p.gate)
	if p.kind == phantom || p.gate != nil && !p.gate.started {
		f.drop(fr)
		return
	}
	f.pass(fr, moved(p, index)...)
}

func (f *Filter) messageStart(fr frame, message span) {
	m := message.Of(fr.data)
	var at [3]span
	if pick(m, 0, []string{"id", "model", "usage"}, at[:]); f.leg.id == "" {
		f.leg.id, f.leg.model = text(at[0].Of(m)), text(at[1].Of(m))
		f.leg.usage = append([]byte(nil), at[2].Of(m)...)
	}
	if len(f.legs) > 0 {
		f.drop(fr)
		return
	}
	f.pass(fr)
}

// messageDelta takes the end of an answer. Its figures are totals of the leg; the client is told those of
// all legs. If calls of ours are what ended it, it is held back: a continuation follows, or else the turn
// ends for the client.
func (f *Filter) messageDelta(fr frame, delta, usage span) {
	f.shut(f.gate)
	d := fr.data
	var at [1]span
	pick(d, delta.From, []string{"stop_reason"}, at[:])
	stop := text(at[0].Of(d))
	if stop != "" {
		f.leg.stop = stop
	}
	var edits []edit
	if isObject(usage.Of(d)) {
		f.leg.usage = append([]byte(nil), overUsage(f.leg.usage, usage.Of(d))...)
		if len(f.legs) > 0 {
			edits = insert(edits, edit{Span: usage, With: addUsage(f.total, f.leg.usage)})
		}
	}
	if !f.leg.ours() {
		if stop != "" && !f.spoke && f.mute() {
			f.speak()
		}
		f.pass(fr, edits...)
		return
	}
	if stop != "" {
		edits = insert(edits, edit{Span: at[0], With: []byte(`"` + stopEnd + `"`)})
	}
	f.hold(fr, edits...)
}

// ours says whether the leg stopped for calls of ours and no others.
func (l *leg) ours() bool {
	ours, others := l.calls()
	return ours > 0 && others == 0 && l.stop == stopTool
}

// calls counts the calls of a leg.
func (l *leg) calls() (ours, others int) {
	for _, p := range l.parts {
		switch p.kind {
		case phantom:
			ours++
		case theirs:
			others++
		}
	}
	return ours, others
}

// delta is a piece of text as a frame.
func (f *Filter) delta(g *gate, s string) []byte {
	if f.o.Dialect == Chat {
		return f.chatDelta(s)
	}
	data := append([]byte(`{"type":"content_block_delta","index":`), decimal(g.part.to)...)
	data = append(data, `,"delta":{"type":"text_delta","text":`...)
	data = append(json.AppendString(data, s), '}', '}')
	return f.event("content_block_delta", data)
}
