package paging

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// mark is the state after a request.
type mark struct {
	messages, pages, stubs, undo int
	out, same                    int             // bytes of the request
	usage                        *tidemark.Usage // what the provider reported of it
	report                       int             // the newest request that it reported of, from 1; 0 is none
	inline, whole                inline          // of the request, and had nothing been replaced
	replaced                     bool            // the reply to it was cut: its usage counts another one
}

// stage is the state amid the messages of a request, before its decision: a cut into a long one need not take all of it again.
type stage struct {
	messages, pages, stubs, undo int
	fault                        []Fault // of the request so far, as the two below
	pin, unpin                   []*Page
	again                        []*Page
}

// set changes a part of the state so that [Pager.cut] can take it back.
func set[T any](h *history, at *T, v T) {
	old := *at
	h.undo = append(h.undo, func() { *at = old })
	*at = v
}

// cut goes back to n messages: to the last request that had no more, and what it had not yet is
// taken again with what comes.
func (p *Pager) cut(n int) {
	m := mark{}
	for len(p.marks) > 0 && p.marks[len(p.marks)-1].messages > n {
		p.marks = p.marks[:len(p.marks)-1]
	}
	if len(p.marks) > 0 {
		m = p.marks[len(p.marks)-1]
	}
	if m.messages == len(p.messages) {
		return
	}
	if from := p.amid(n); from.messages > m.messages {
		m.messages, m.pages, m.stubs, m.undo = from.messages, from.pages, from.stubs, from.undo
		p.now.Pin, p.now.Unpin = from.pin, from.unpin
		for _, f := range from.fault {
			p.now.Fault = append(p.now.Fault, Fault{f.ID, f.Of, true})
		}
		p.again = from.again
	}
	p.now.Kept = m.stubs
	for i := len(p.undo) - 1; i >= m.undo; i-- {
		p.undo[i]()
		p.undo[i] = nil
	}
	p.undo = p.undo[:m.undo]
	rest := slices.Clone(p.messages[m.messages:n])
	clear(p.messages[m.messages:])
	clear(p.pages[m.pages:])
	p.messages, p.first, p.in = p.messages[:m.messages], p.first[:m.messages], p.in[:m.messages]
	p.pages, p.stubs, p.out = p.pages[:m.pages], p.stubs[:m.stubs], p.out[:m.messages]
	p.unanswered(n)
	for _, r := range rest {
		p.take(r)
	}
}

// amid goes back to the newest state amid a request that had no more than n messages.
func (h *history) amid(n int) stage {
	for len(h.stages) > 0 && h.stages[len(h.stages)-1].messages > n {
		h.stages = h.stages[:len(h.stages)-1]
	}
	if len(h.stages) == 0 {
		return stage{}
	}
	return h.stages[len(h.stages)-1]
}

// divide notes a state amid a request when it is long.
func (p *Pager) divide() {
	n, from := len(p.messages), 0
	if i := len(p.marks); i > 0 {
		from = p.marks[i-1].messages
	}
	if i := len(p.stages); i > 0 {
		from = max(from, p.stages[i-1].messages)
	}
	if n-from < stageMessages {
		return
	}
	d := &p.now
	p.stages = append(p.stages, stage{messages: n, pages: len(p.pages), stubs: len(p.stubs), undo: len(p.undo), fault: slices.Clip(d.Fault),
		pin: slices.Clip(d.Pin), unpin: slices.Clip(d.Unpin), again: slices.Clip(p.again)})
}
