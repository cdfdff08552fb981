package stream

import (
	"bytes"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// between parts the texts of two legs in chat completions, where they are one string.
const between = "\n\n"

// chunk is where the parts of a chunk stand.
type chunk struct {
	id, model, choices, usage, fault span
	count                            int // choices
	index, delta, finish             span
	role, content, calls             span
	others                           int // members of delta beside content
}

// readChunk finds the parts of a chunk.
func readChunk(data []byte) (c chunk, ok bool) {
	var top [5]span
	if _, ok = pick(data, 0, []string{"id", "model", "choices", "usage", "error"}, top[:]); !ok {
		return c, false
	}
	c.id, c.model, c.choices, c.usage, c.fault = top[0], top[1], top[2], top[3], top[4]
	if !there(c.choices) || data[c.choices.From] != '[' {
		return c, true
	}
	var first span
	elements(data, c.choices.From, func(s span) {
		if c.count++; c.count == 1 {
			first = s
		}
	})
	if c.count == 0 || data[first.From] != '{' {
		return c, c.count == 0
	}
	var at [3]span
	pick(data, first.From, []string{"index", "delta", "finish_reason"}, at[:])
	c.index, c.delta, c.finish = at[0], at[1], at[2]
	if !there(c.delta) || data[c.delta.From] != '{' {
		return c, true
	}
	members(data, c.delta.From, func(key []byte, s span) {
		c.others++
		switch string(key) {
		case "content":
			c.content = s
			c.others--
		case "role":
			c.role = s
		case "tool_calls":
			c.calls = s
		}
	})
	return c, true
}

// chatFrame takes a chunk of chat completions.
func (f *Filter) chatFrame(fr frame) {
	if string(bytes.TrimSpace(fr.data)) == "[DONE]" {
		if f.holding {
			f.hold(fr)
			return
		}
		f.shut(f.gate)
		f.pass(fr)
		return
	}
	c, ok := readChunk(fr.data)
	switch {
	case !ok:
		f.pass(fr)
		return
	case !isNull(c.fault.Of(fr.data)):
		f.shut(f.gate)
		f.leg.failed = true
		f.pass(fr)
		return
	case c.count > 1 || there(c.index) && string(c.index.Of(fr.data)) != "0": // several answers at once are not looked into
		f.letPass()
		f.put(f.held)
		f.held, f.holding = nil, false
		f.emit(fr)
		return
	}
	stripped := false
	if there(c.calls) || there(c.role) && len(f.legs) > 0 {
		if fr, stripped = f.strip(fr, c); stripped {
			c, _ = readChunk(fr.data)
		}
	}
	f.chatPart(fr, c, stripped, f.chatHead(fr, c))
}

// chatHead notes what a chunk says beside its choices, and returns what of that is changed for the
// client: all legs have the id of the first, and the figures of those before.
func (f *Filter) chatHead(fr frame, c chunk) (edits []edit) {
	data := fr.data
	if f.leg.id == "" {
		f.leg.id, f.leg.model = text(c.id.Of(data)), text(c.model.Of(data))
	}
	if f.first == "" {
		f.first = f.leg.id
	}
	if f.leg.head == nil && c.count > 0 {
		f.leg.head = set(set(set(data, "choices", nil), "usage", nil), "id", json.AppendString(nil, f.first))
	}
	if len(f.legs) > 0 && there(c.id) && f.first != "" && f.first != f.leg.id {
		edits = insert(edits, edit{Span: c.id, With: json.AppendString(nil, f.first)})
	}
	if isObject(c.usage.Of(data)) {
		f.leg.usage = append([]byte(nil), c.usage.Of(data)...)
		if len(f.legs) > 0 {
			edits = insert(edits, edit{Span: c.usage, With: addUsage(f.total, f.leg.usage)})
		}
	}
	return edits
}

// chatPart sends a chunk, of which calls of ours are taken out already.
func (f *Filter) chatPart(fr frame, c chunk, stripped bool, edits []edit) {
	data, g := fr.data, f.leg.gate
	finish := !isNull(c.finish.Of(data))
	counts := isObject(c.usage.Of(data))
	s := ""
	if quoted(c.content.Of(data)) {
		s = text(c.content.Of(data))
		g.part.text = inner(g.part.text, c.content.Of(data))
	}
	bare := c.others == 0 && !finish && !counts
	switch {
	case stripped && bare && s == "":
		f.drop(fr)
		return
	case f.holding:
		f.hold(fr, edits...)
		return
	case bare && quoted(c.content.Of(data)) && !g.done:
		f.text(g, fr, s, c.content, edits)
		return
	}
	if finish {
		f.leg.stop = f.leg.chatStop(text(c.finish.Of(data)))
	}
	ours := finish && f.leg.ours()
	if s != "" && !g.done {
		edits = f.along(g, c.content, s, edits, finish, ours)
	} else if finish {
		f.shut(g)
	}
	if ours {
		f.hold(fr, insert(edits, edit{Span: c.finish, With: []byte(`"stop"`)})...)
		return
	}
	if finish && !f.spoke && f.mute() {
		f.speak()
	}
	f.pass(fr, edits...)
}

// along puts text through the gate that came in a chunk with something else, which does not wait. last is
// true with the end of the text; held, when the chunk itself is kept back.
func (f *Filter) along(g *gate, at span, s string, edits []edit, last, held bool) []edit {
	if g.take(s, false); last {
		f.close(g)
	}
	f.drain(g)
	f.unqueue(g)
	show := g.acc
	g.acc, g.altered, g.lost = "", !last && g.tags.Held() > 0, g.taken()
	if held && show != "" {
		f.put(f.delta(g, show))
		show = ""
	}
	if show == s {
		return edits
	}
	return insert(edits, edit{Span: at, With: json.AppendString(nil, show)})
}

// chatStop is a finish reason in the words of the Messages API. Some servers say "stop" where there are
// calls: what counts is whether there are any.
func (l *leg) chatStop(reason string) string {
	ours, others := l.calls()
	switch {
	case reason == "length" || reason == "model_length":
		return stopLength
	case reason == "content_filter":
		return stopRefusal
	case ours+others > 0:
		return stopTool
	}
	return stopEnd
}

// strip takes calls of ours out of a chunk, and from that of a later leg who speaks, which the client
// knows.
func (f *Filter) strip(fr frame, c chunk) (frame, bool) {
	delta := c.delta.Of(fr.data)
	changed := false
	if there(c.calls) && c.calls.Of(fr.data)[0] == '[' {
		list, some := f.chatCalls(c.calls.Of(fr.data), false)
		if changed = some; some {
			if len(list) == len("[]") {
				list = nil
			}
			delta = set(delta, "tool_calls", list)
		}
	}
	if there(c.role) && len(f.legs) > 0 {
		delta, changed = set(delta, "role", nil), true
	}
	if !changed {
		return fr, false
	}
	return f.parse(render(nil, fr, edit{Span: c.delta, With: delta})), true
}

// chatDelta is a piece of text as a chunk.
func (f *Filter) chatDelta(s string) []byte {
	choice := append(json.AppendString([]byte(`[{"index":0,"delta":{"content":`), s), `},"finish_reason":null}]`...)
	head := f.leg.head
	if head == nil {
		head = []byte(`{"object":"chat.completion.chunk"}`)
	}
	return f.event("", set(head, "choices", choice))
}
