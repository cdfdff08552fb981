package body

import (
	"bytes"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// chatList writes the messages of chat completions. Instructions, which are no items, keep their place before
// the message that followed them.
func (w *writer) chatList(plan []outgoing) {
	r := w.r
	w.add("[")
	end := r.list.To - 1
	if n := len(r.chat); n > 0 {
		w.copy(r.list.From+1, r.chat[0].at.From)
		end = r.chat[n-1].at.To
	}
	w.many = false
	next := 0 // message
	for _, o := range plan {
		if place := r.chatPlace(o.anchor); place > next {
			w.instructions(next, place)
			next = place
		}
		if o.item >= 0 {
			next = r.chatItems[o.item].last + 1
		}
		switch {
		case o.edited:
		case o.item >= 0:
			for n := r.chatItems[o.item].first; n < next; n++ {
				w.chatRaw(n)
			}
			continue
		default:
			it, err := NewItem(o.raw)
			if err != nil {
				continue // it was read before
			}
			o.elems, o.src = it.elements(-1), -1
		}
		if o.role == tidemark.Assistant {
			w.chatAssistant(o)
		} else {
			w.chatUser(o)
		}
	}
	w.instructions(next, len(r.chat))
	w.copy(end, r.list.To)
}

// chatPlace is the first message of an item, or the end.
func (r *Request) chatPlace(item int) int {
	switch {
	case item < 0:
		return 0
	case item < len(r.chatItems):
		return r.chatItems[item].first
	}
	return len(r.chat)
}

// instructions writes what is no item from one message to before another.
func (w *writer) instructions(from, to int) {
	for n := from; n < to; n++ {
		if w.r.chat[n].item < 0 {
			w.chatRaw(n)
		}
	}
}

// chatRaw writes a message as it came.
func (w *writer) chatRaw(n int) {
	w.chatComma(n)
	at := w.r.chat[n].at
	w.copy(at.From, at.To)
}

// chatComma separates message n from the one before as the client did; -1 is a message of ours.
func (w *writer) chatComma(n int) {
	if n > 0 {
		w.comma(w.r.raw[w.r.chat[n-1].at.To:w.r.chat[n].at.From])
		return
	}
	w.comma(comma)
}

// origin is where a block comes from, if the client sent it.
func (w *writer) origin(o outgoing, e element) (origin, bool) {
	if o.src < 0 || e.orig < 0 {
		return origin{}, false
	}
	return w.r.chatItems[o.src].blocks[e.orig], true
}

// chatUser writes tool messages for the results, then a message of the user for all else.
func (w *writer) chatUser(o outgoing) {
	var rest []element
	for _, e := range o.elems {
		from, known := w.origin(o, e)
		if known && w.r.partly(from) && e.kind != text {
			e.kind = other
		}
		if e.kind != result {
			rest = append(rest, e)
			continue
		}
		switch {
		case known && e.same:
			w.chatRaw(from.message)
		case known:
			m := w.r.chat[from.message]
			w.chatComma(from.message)
			w.chatSplice(m, quote(resultText(chatBlock(e.raw))), m.calls.Of(w.r.raw))
		default:
			b := chatBlock(e.raw)
			w.chatComma(-1)
			w.add(`{"role":"tool","tool_call_id":`)
			w.bytes(quote(b.ToolUseID))
			w.add(`,"content":`)
			w.bytes(quote(resultText(b)))
			w.add("}")
		}
	}
	if len(rest) == 0 {
		return
	}
	if o.item >= 0 && w.r.chat[w.r.chatItems[o.item].first].role == "user" {
		n := w.r.chatItems[o.item].first
		w.chatComma(n)
		w.chatSplice(w.r.chat[n], w.chatText(o, rest), nil)
		return
	}
	w.chatComma(-1)
	w.add(`{"role":"user","content":`)
	w.bytes(w.chatText(o, rest))
	w.add("}")
}

// chatAssistant writes a reply: its text and its calls. Thinking has no form here.
func (w *writer) chatAssistant(o outgoing) {
	var texts, calls []element
	for _, e := range o.elems {
		if from, known := w.origin(o, e); known && w.r.partly(from) && e.kind != text {
			e.kind = other // some servers have thinking as a part
		}
		switch e.kind {
		case thinking:
		case call:
			calls = append(calls, e)
		default:
			texts = append(texts, e)
		}
	}
	if o.item >= 0 {
		n := w.r.chatItems[o.item].first
		w.chatComma(n)
		w.chatSplice(w.r.chat[n], w.chatText(o, texts), w.chatCalls(o, calls))
		return
	}
	if len(texts)+len(calls) == 0 {
		return
	}
	w.chatComma(-1)
	w.add(`{"role":"assistant","content":`)
	w.bytes(w.chatText(o, texts))
	if len(calls) > 0 {
		w.add(`,"tool_calls":`)
		w.bytes(w.chatCalls(o, calls))
	}
	w.add("}")
}

// chatText is the content of a message: the client's bytes if it is all that came and nothing else, a string if
// it can be one, else parts. Many servers know nothing but strings.
func (w *writer) chatText(o outgoing, elems []element) []byte {
	r := w.r
	list := false
	if o.src >= 0 {
		m := r.chat[r.chatItems[o.src].first]
		list = len(m.parts) > 0
		if o.item >= 0 && len(elems) == r.chatItems[o.src].texts() && allSame(elems) {
			return m.content.Of(r.raw)
		}
	}
	if len(elems) == 0 {
		return []byte("null")
	}
	for _, e := range elems {
		if _, alone := textOf(e.raw); e.kind == text && !alone || (e.kind == other || e.kind == media) && chatImage(e.raw) != nil {
			list = true
		}
	}
	out := []byte{'['}
	var text []byte
	for n, e := range elems {
		from, known := w.origin(o, e)
		part := e.raw
		if known && e.same && !r.chat[from.message].bare {
			part = from.at.Of(r.raw)
		} else if e.kind == other || e.kind == media {
			if part = chatImage(e.raw); part == nil {
				part = textBlock(quote(blockText(chatBlock(e.raw))))
			}
		}
		if n > 0 {
			out = append(out, ',')
			text = append(text, "\n\n"...)
		}
		out = append(out, part...)
		quoted, _ := textOf(part)
		text = append(text, jsonscan.Unquoted(quoted)...)
	}
	if list {
		return append(out, ']')
	}
	if quoted, alone := textOf(elems[0].raw); alone && len(elems) == 1 {
		return quoted // in the form that it has
	}
	return quote(string(text))
}

// texts is how many blocks of an item are its content.
func (ci chatItem) texts() int {
	n := 0
	for _, b := range ci.blocks {
		if b.call < 0 {
			n++
		}
	}
	return n
}

func allSame(elems []element) bool {
	for _, e := range elems {
		if !e.same {
			return false
		}
	}
	return true
}

// chatCalls is tool_calls: nil if there are none.
func (w *writer) chatCalls(o outgoing, elems []element) []byte {
	if o.item >= 0 && allSame(elems) {
		ci := w.r.chatItems[o.item]
		if len(elems) == len(ci.blocks)-ci.texts() {
			return w.r.chat[ci.first].calls.Of(w.r.raw)
		}
	}
	if len(elems) == 0 {
		return nil
	}
	out := []byte{'['}
	for n, e := range elems {
		if n > 0 {
			out = append(out, ',')
		}
		from, known := w.origin(o, e)
		switch {
		case known && e.same:
			out = append(out, from.at.Of(w.r.raw)...)
		case known && from.call >= 0:
			out = w.chatArguments(out, w.r.chat[from.message].calling[from.call], e.raw)
		default:
			b := chatBlock(e.raw)
			out = append(append(out, `{"id":`...), quote(b.ID)...)
			out = append(append(out, `,"type":"function","function":{"name":`...), quote(b.Name)...)
			out = append(append(out, `,"arguments":`...), quote(string(b.Input))...)
			out = append(out, '}', '}')
		}
	}
	return append(out, ']')
}

// chatArguments appends the client's call with other arguments.
func (w *writer) chatArguments(dst []byte, k chatCall, raw []byte) []byte {
	dst = append(dst, w.r.raw[k.at.From:k.args.From]...)
	input := []byte(chatBlock(raw).Input)
	if w.r.raw[k.args.From] == '"' {
		input = quote(string(input))
	}
	dst = append(dst, input...)
	return append(dst, w.r.raw[k.args.To:k.at.To]...)
}

// chatSplice writes the client's message with that content and those calls, nil for none.
func (w *writer) chatSplice(m chatMessage, content, calls []byte) {
	raw := m.at.Of(w.r.raw)
	if !bytes.Equal(content, m.content.Of(w.r.raw)) {
		raw = setMember(raw, "content", content)
	}
	switch {
	case bytes.Equal(calls, m.calls.Of(w.r.raw)):
	case calls != nil:
		raw = setMember(raw, "tool_calls", calls)
	case len(m.calling) > 0:
		raw = dropMember(raw, "tool_calls")
	}
	w.bytes(raw)
}
