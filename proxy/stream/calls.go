package stream

import (
	"github.com/tidemark-ai/tidemark/internal/json"
)

// chatCalls reads a list of tool calls, or of pieces of them, and returns it without calls of ours, those
// behind them renumbered. whole is true for the list of a message, where each element is a call. changed
// is false when the list stays as it is.
func (f *Filter) chatCalls(raw []byte, whole bool) (list []byte, changed bool) {
	list = []byte{'['}
	elements(raw, 0, func(s span) {
		e, same := f.chatCall(s.Of(raw), whole)
		changed = changed || !same
		if e == nil {
			return
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, e...)
	})
	return append(list, ']'), changed
}

// chatCall takes a piece of a call and returns what of it is for the client, nil for nothing. A call whose
// name has not come yet waits until it has.
func (f *Filter) chatCall(raw []byte, whole bool) (out []byte, same bool) {
	var at [3]span
	if _, ok := pick(raw, 0, []string{"index", "id", "function"}, at[:]); !ok {
		f.leg.odd = true
		return raw, true
	}
	index, numbered := number(at[0].Of(raw))
	p := f.leg.slot(index, numbered, text(at[1].Of(raw)), whole)
	if p == nil {
		f.leg.odd = true
		return raw, true
	}
	var name, args []byte
	if fn := at[2].Of(raw); isObject(fn) {
		name, args = valueOf(fn, "name"), valueOf(fn, "arguments")
	}
	late := p.kind == unsure && p.changed
	p.changed = true
	if p.kind == unsure {
		f.leg.decide(p, text(name), &f.o)
	}
	p.argue(args)
	switch {
	case p.kind == unsure || p.kind == phantom:
		f.shifted = true
		return nil, false
	case late:
		return p.chatWhole(), false
	case numbered && p.to != index:
		return set(raw, "index", decimal(p.to)), false
	}
	return raw, true
}

// decide says whose a call is by its name.
func (l *leg) decide(p *part, name string, o *Options) {
	if name == "" {
		return
	}
	before := 0
	for _, other := range l.parts {
		if other.kind == phantom && other != p {
			before++
		}
	}
	p.name, p.kind, p.to = name, theirs, max(0, p.index-before)
	if o.phantom(name) {
		p.kind = phantom
	}
}

// argue adds a piece of the arguments, which some servers send as an object.
func (p *part) argue(args []byte) {
	switch {
	case isNull(args) || p.large:
	case p.kind == phantom && len(p.input)+len(args) > maxInput:
		p.large, p.input = true, nil
	case quoted(args):
		p.input = inner(p.input, args)
	default:
		p.input = inner(p.input, json.AppendString(nil, string(args)))
	}
}

// slot returns the call that a piece belongs to. Pieces are told apart by index; some servers send none,
// or 0 for all, and begin each call with its id.
func (l *leg) slot(index int, numbered bool, id string, whole bool) *part {
	parts := l.parts[1:]
	for i := len(parts) - 1; i >= 0 && !whole; i-- {
		p := parts[i]
		if numbered && p.index != index {
			continue
		}
		if id == "" || p.id == id {
			return p
		}
		if p.id == "" && numbered {
			p.id = id
			return p
		}
		break
	}
	if len(parts) >= maxParts {
		return nil
	}
	if !numbered {
		index = len(parts)
	}
	p := &part{kind: unsure, index: index, id: id}
	l.parts = append(l.parts, p)
	return p
}

// chatWhole is all that came of a call as one piece.
func (p *part) chatWhole() []byte {
	out := append([]byte(`{"index":`), decimal(p.to)...)
	out = json.AppendString(append(out, `,"id":`...), p.id)
	out = json.AppendString(append(out, `,"type":"function","function":{"name":`...), p.name)
	out = append(append(out, `,"arguments":`...), whole(p.input)...)
	return append(out, '}', '}')
}
