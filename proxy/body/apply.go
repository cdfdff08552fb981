package body

import (
	"bytes"
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// none reports whether nothing is to be changed.
func (c Change) none() bool {
	trim := c.Trim != nil && len(c.Trim.texts)+len(c.Trim.tools) > 0
	return !trim && c.Note == "" && len(c.Blocks)+len(c.Spans)+len(c.Inserts)+len(c.Append)+len(c.Tools) == 0
}

// Apply writes the request with a change. The zero Change gives the very bytes that came. A change that
// does not fit the request is tidemark.ErrInvalid. There are never more cache markers than there were.
func (r *Request) Apply(c Change) ([]byte, error) {
	if c.none() {
		return r.raw, nil
	}
	if t := c.Trim; t != nil && t.of != r {
		return nil, fmt.Errorf("apply: the trim is of another request: %w", tidemark.ErrInvalid)
	}
	plan, err := r.plan(c)
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	w := writer{r: r, dst: make([]byte, 0, len(r.raw)+c.size())}
	tools, err := w.definitions(c.Tools)
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	if len(r.tools.Of(r.raw)) > 0 && r.tools.From > r.list.From {
		w.copy(0, r.list.From)
		w.list(plan)
		w.copy(r.list.To, r.tools.From)
		w.tools(c.Trim, tools)
		w.copy(r.tools.To, len(r.raw))
		return w.dst, nil
	}
	switch {
	case r.tools.To > 0:
		w.copy(0, r.tools.From)
		w.tools(c.Trim, tools)
		w.copy(r.tools.To, r.list.From)
	case len(tools) > 0:
		w.copy(0, r.before)
		w.add(`"tools":`)
		w.tools(c.Trim, tools)
		w.add(",")
		w.copy(r.before, r.list.From)
	default:
		w.copy(0, r.list.From)
	}
	w.list(plan)
	w.copy(r.list.To, len(r.raw))
	return w.dst, nil
}

// size is about how many bytes a change adds at most.
func (c Change) size() int {
	n := 256 + len(c.Note)
	add := func(list [][]byte) {
		for _, raw := range list {
			n += len(raw) + 64
		}
	}
	for _, b := range c.Blocks {
		n += len(b.Raw) + 64
	}
	for _, s := range c.Spans {
		add(s.Messages)
	}
	for _, in := range c.Inserts {
		add(in.Blocks)
		add(in.Calls)
		add(in.Results)
	}
	add(c.Append)
	add(c.Tools)
	return n
}

// writer appends a request.
type writer struct {
	r    *Request
	dst  []byte
	many bool // an element of the list that is open was written
}

func (w *writer) add(s string)      { w.dst = append(w.dst, s...) }
func (w *writer) bytes(b []byte)    { w.dst = append(w.dst, b...) }
func (w *writer) copy(from, to int) { w.dst = append(w.dst, w.r.raw[from:to]...) }
func (w *writer) comma(between []byte) {
	if w.many {
		w.bytes(between)
	}
	w.many = true
}

var comma = []byte{','}

// definitions are tools of ours in the form of the dialect.
func (w *writer) definitions(list [][]byte) ([][]byte, error) {
	if len(list) > 0 && w.r.closed {
		return nil, fmt.Errorf("tools to add: the request's are no list: %w", tidemark.ErrInvalid)
	}
	out := make([][]byte, 0, len(list))
	for n, raw := range list {
		raw = bytes.TrimSpace(unmarked(raw))
		c := over(raw)
		c.Members("the tool", func([]byte) { c.Skip() })
		c.End()
		if c.Err() != nil {
			return nil, fmt.Errorf("tool %d to add: %w", n, c.Err())
		}
		if w.r.Dialect == Chat {
			raw = chatTool(raw)
		}
		out = append(out, raw)
	}
	return out, nil
}

// tools writes the list of definitions: the client's, some of them short, and ours behind them.
func (w *writer) tools(t *Trim, ours [][]byte) {
	r := w.r
	at, end := r.tools.From, r.tools.To
	if t != nil {
		for _, e := range t.tools {
			w.copy(at, r.toolList[e.n].From)
			w.bytes(e.raw)
			at = r.toolList[e.n].To
		}
	}
	if len(ours) == 0 {
		w.copy(at, end)
		return
	}
	w.many = len(r.toolList) > 0
	if w.many {
		last := r.toolList[len(r.toolList)-1].To
		w.copy(at, last)
		at = last
	} else {
		w.add("[")
	}
	for _, raw := range ours {
		w.comma(comma)
		w.bytes(raw)
	}
	if len(r.toolList) > 0 {
		w.copy(at, end)
	} else {
		w.add("]")
	}
}

// list writes the messages.
func (w *writer) list(plan []outgoing) {
	if w.r.Dialect == Chat {
		w.chatList(plan)
		return
	}
	r := w.r
	w.add("[")
	end := r.list.To - 1
	if n := len(r.at); n > 0 {
		w.copy(r.list.From+1, r.at[0].From)
		end = r.at[n-1].To
	}
	w.many = false
	for _, o := range plan {
		if o.item > 0 {
			w.comma(r.raw[r.at[o.item-1].To:r.at[o.item].From])
		} else {
			w.comma(comma)
		}
		switch {
		case !o.edited && o.item >= 0:
			w.bytes(r.Items[o.item].Raw)
		case !o.edited:
			w.bytes(o.raw)
		default:
			w.message(o)
		}
	}
	w.copy(end, r.list.To)
}

// message writes an edited message: what the client's had around its blocks stays.
func (w *writer) message(o outgoing) {
	many := w.many
	defer func() { w.many = many }()
	w.many = false
	if o.item < 0 {
		w.add(`{"role":"` + string(o.role) + `","content":[`)
		for _, e := range o.elems {
			w.comma(comma)
			w.bytes(e.raw)
		}
		w.add("]}")
		return
	}
	it := w.r.Items[o.item]
	w.bytes(it.Raw[:it.content.From])
	if quoted := it.string(o.elems); quoted != nil {
		w.bytes(quoted)
	} else {
		w.content(it, o.elems)
	}
	w.bytes(it.Raw[it.content.To:])
}

// string is the content as a string, if it was one and still can be; nil otherwise.
func (i Item) string(elems []element) []byte {
	if !i.bare || len(elems) != 1 {
		return nil
	}
	if quoted, alone := textOf(elems[0].raw); alone {
		return quoted
	}
	return nil
}

// content writes a list of blocks with the client's white space between its own.
func (w *writer) content(it Item, elems []element) {
	w.add("[")
	tail := []byte{']'}
	if n := len(it.blocks); n > 0 {
		w.bytes(it.Raw[it.content.From+1 : it.blocks[0].From])
		tail = it.Raw[it.blocks[n-1].To:it.content.To]
	}
	for _, e := range elems {
		if e.orig > 0 {
			w.comma(it.Raw[it.blocks[e.orig-1].To:it.blocks[e.orig].From])
		} else {
			w.comma(comma)
		}
		w.bytes(e.raw)
	}
	w.bytes(tail)
}
