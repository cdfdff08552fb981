package body

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// settle moves system messages whose neighbours left to the next place where the API takes one: behind a message that
// takes one and before one of the assistant, or at the end. There they are one message, since it takes no two in a row;
// one that cannot be joined goes on to the next place. Behind the last place they go back to it, and where that has no
// room settle is false. Those that stand as the client had them stay where they are.
func (p *planner) settle() bool {
	all := p.out
	p.out = make([]outgoing, 0, len(all))
	var held []outgoing
	for n := 0; n < len(all); {
		end, words, moved := n, false, false
		for ; end < len(all) && all[end].item >= 0 && all[end].role == tidemark.System; end++ {
			if p.instructs(&all[end]) {
				words, moved = true, moved || p.moved(all, end)
			}
		}
		if end == n {
			if all[n].role == tidemark.Assistant {
				held = p.join(held)
			}
			p.out = append(p.out, all[n])
			n++
			continue
		}
		for ; n < end; n++ {
			if (moved || len(held) > 0) && p.instructs(&all[n]) {
				held = append(held, all[n])
			} else {
				p.out = append(p.out, all[n])
			}
		}
		if words && !moved {
			held = p.join(held)
		}
	}
	return p.back(p.join(held))
}

// instructs reports a system message of the client's with words, whose place counts.
func (p *planner) instructs(o *outgoing) bool {
	if o.item < 0 || o.role != tidemark.System {
		return false
	}
	it := p.r.Items[o.item]
	return !it.fixed && !it.silent() && it.Blocks() > 0
}

// place reports whether the API takes a system message behind what was planned so far, or has one there.
func (p *planner) place() bool {
	for n := len(p.out) - 1; n >= 0; n-- {
		if o := &p.out[n]; o.role != tidemark.System {
			return p.takesSystem(o)
		}
	}
	return false
}

// takesSystem is [tidemark.Message.TakesSystem] of an outgoing message.
func (p *planner) takesSystem(o *outgoing) bool {
	m := tidemark.Message{Role: o.role}
	if m.Role == tidemark.Assistant {
		for _, e := range p.elements(o) {
			m.Content = append(m.Content, tidemark.Block{Type: typeOf(e.raw)})
		}
	}
	return m.TakesSystem()
}

// join adds system messages as one to what was planned so far, if the API takes one there. It returns those that have no
// place: those that have more than role and content cannot be one with others.
func (p *planner) join(list []outgoing) []outgoing {
	if len(list) == 0 || !p.place() {
		return list
	}
	for i, o := range list {
		n := len(p.out) - 1
		for n >= 0 && p.out[n].role == tidemark.System && !p.instructs(&p.out[n]) {
			n--
		}
		switch {
		case !p.instructs(&p.out[n]):
			p.out = append(p.out, o)
			continue
		case p.r.Items[p.out[n].item].more || p.r.Items[o.item].more:
			return list[i:]
		}
		p.open(&p.out[n])
		p.open(&o)
		for _, e := range o.elems {
			e.orig, e.same = -1, false
			p.out[n].elems = append(p.out[n].elems, e)
		}
	}
	return nil
}

// back puts system messages for which no place is left into the last that there is, if they pass no other on the way.
func (p *planner) back(held []outgoing) bool {
	for n := len(p.out) - 1; n > 0 && len(held) > 0 && !p.instructs(&p.out[n]); n-- {
		if p.out[n].role != tidemark.Assistant {
			continue
		}
		rest := slices.Clone(p.out[n:])
		p.out = p.out[:n]
		held = p.join(held)
		p.out = append(p.out, rest...)
	}
	return len(held) == 0
}

// moved reports whether an outgoing message of the client's stands between others than it came between. System messages
// without words stand anywhere, and between none.
func (p *planner) moved(list []outgoing, n int) bool {
	silent := func(it Item) bool {
		return it.Role == tidemark.System && !it.fixed && (it.silent() || it.Blocks() == 0)
	}
	for _, step := range [...]int{-1, 1} {
		came, goes := list[n].item+step, n+step
		for came >= 0 && came < len(p.r.Items) && silent(p.r.Items[came]) {
			came += step
		}
		for goes >= 0 && goes < len(list) && list[goes].item >= 0 && silent(p.r.Items[list[goes].item]) {
			goes += step
		}
		switch inside := goes >= 0 && goes < len(list); {
		case !inside && came >= 0 && came < len(p.r.Items), inside && list[goes].item != came:
			return true
		}
	}
	return false
}
