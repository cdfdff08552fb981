package stream

import (
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// readWhole reads an answer that came in one piece.
func (f *Filter) readWhole() {
	l := &f.leg
	data := l.body
	var at [8]span
	end, ok := pick(data, 0, []string{"id", "model", "usage", "error", "stop_reason", "content", "choices", "type"}, at[:])
	if !ok || len(strings.TrimSpace(string(data[end:]))) > 0 || f.err != nil {
		l.odd = true
		return
	}
	l.id, l.model = text(at[0].Of(data)), text(at[1].Of(data))
	if isObject(at[2].Of(data)) {
		l.usage = at[2].Of(data)
	}
	if !isNull(at[3].Of(data)) {
		l.failed = true
	}
	if f.first == "" {
		f.first = l.id
	}
	if f.o.Dialect == Chat {
		l.odd = !f.wholeChat(at[6].Of(data))
		return
	}
	if l.stop = text(at[4].Of(data)); !there(at[5]) || data[at[5].From] != '[' {
		l.odd = true
		return
	}
	elements(data, at[5].From, func(s span) { l.odd = !f.wholeBlock(s.Of(data)) || l.odd })
}

// wholeBlock takes a block that is whole.
func (f *Filter) wholeBlock(raw []byte) bool {
	p, ok := f.o.newPart(len(f.leg.parts), raw)
	if !ok || len(f.leg.parts) >= maxParts {
		return false
	}
	f.leg.parts = append(f.leg.parts, p)
	switch {
	case p.kind == phantom:
		f.shifted = true
	case p.kind == words && f.o.Tags:
		g := &gate{part: p}
		p.gate = g
		g.take(text(whole(p.text)), false)
		f.close(g)
		g.started = !g.took() || g.ready()
		f.shifted = f.shifted || g.took()
	}
	return true
}

// wholeChat takes the choices of chat completions. More than one is not looked into.
func (f *Filter) wholeChat(choices []byte) bool {
	count, message := 0, []byte(nil)
	if len(choices) == 0 || choices[0] != '[' {
		return false
	}
	elements(choices, 0, func(s span) {
		count++
		message = valueOf(s.Of(choices), "message")
	})
	if count != 1 || !isObject(message) {
		return false
	}
	g := f.leg.gate
	if content := valueOf(message, "content"); quoted(content) {
		g.part.text = inner(nil, content)
		g.take(text(content), false)
		f.close(g)
		f.shifted = f.shifted || g.took()
	}
	if calls := valueOf(message, "tool_calls"); len(calls) > 0 && calls[0] == '[' {
		f.chatCalls(calls, true)
	}
	reason := ""
	elements(choices, 0, func(s span) { reason = text(valueOf(s.Of(choices), "finish_reason")) })
	if reason != "" {
		f.leg.stop = f.leg.chatStop(reason)
	}
	return true
}

// assemble makes one JSON of the legs: the last answer, with what the client is to see of all of them. If
// nothing is different it is the very bytes, as is an answer that cannot be read.
func (f *Filter) assemble(t Turn) []byte {
	last := &f.leg
	again := f.legs[len(f.legs)-1].Again()
	if last.odd || last.failed || len(f.legs) == 1 && !f.shifted && !again {
		return last.body
	}
	out := last.body
	if len(f.legs) > 1 {
		if f.first != "" {
			out = set(out, "id", json.AppendString(nil, f.first))
		}
		if sum := addUsage(f.total, last.usage); sum != nil {
			out = set(out, "usage", sum)
		}
	}
	if f.o.Dialect == Chat {
		return set(out, "choices", f.assembleChoices(valueOf(out, "choices"), again))
	}
	if again {
		out = set(out, "stop_reason", []byte(`"`+stopEnd+`"`))
	}
	content := []byte{'['}
	for i, b := range t.Seen.Content {
		if i > 0 {
			content = append(content, ',')
		}
		content = b.AppendJSON(content)
	}
	return set(out, "content", append(content, ']'))
}

// assembleChoices is the one choice with the texts of all legs, and without calls of ours.
func (f *Filter) assembleChoices(choices []byte, again bool) []byte {
	var choice []byte
	elements(choices, 0, func(s span) { choice = s.Of(choices) })
	message := valueOf(choice, "message")
	if len(f.words) > 0 || quoted(valueOf(message, "content")) {
		message = set(message, "content", json.AppendString(nil, string(f.words)))
	}
	if calls := valueOf(message, "tool_calls"); len(calls) > 0 && calls[0] == '[' {
		message = set(message, "tool_calls", f.theirCalls(calls))
	}
	choice = set(choice, "message", message)
	if again {
		choice = set(choice, "finish_reason", []byte(`"stop"`))
	}
	return append(append([]byte{'['}, choice...), ']')
}

// theirCalls is a list of calls without ours; nil for none that is left.
func (f *Filter) theirCalls(calls []byte) []byte {
	out := []byte{'['}
	elements(calls, 0, func(s span) {
		if f.o.phantom(text(valueOf(valueOf(s.Of(calls), "function"), "name"))) {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, s.Of(calls)...)
	})
	if len(out) == 1 {
		return nil
	}
	return append(out, ']')
}
