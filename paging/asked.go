package paging

import "slices"

// asked is what comes with a message beside its blocks. It is done before the message is taken, also when that is taken
// again by a cut.
type asked struct {
	stay            []*stayed
	release, anchor []string
}

// stayed is a page that is out though the decision that put it out was cut.
type stayed struct {
	at   place
	told bool // a fault of it
}

// begin cuts the history and takes what a request adds.
func (p *Pager) begin(s Step, keep int) {
	a := &asked{release: s.Release, anchor: s.Anchor}
	if s.Cut {
		if s.Stay {
			a.stay = p.standing(keep)
		}
		p.cut(keep)
		a.stay = slices.DeleteFunc(a.stay, func(s *stayed) bool {
			g := p.pageAt(s.at)
			return g == nil || g.stub
		})
	}
	if len(a.stay)+len(a.release)+len(a.anchor) == 0 {
		a = nil
	}
	if a != nil && len(s.Append) == 0 {
		p.ask(a)
	}
	for i, m := range s.Append {
		if i == 0 && a != nil {
			m.asked = a
		}
		p.take(m)
	}
}

// ask does what came with a message.
func (p *Pager) ask(a *asked) {
	p.stay(a.stay)
	p.letAll(a.release)
	for _, name := range a.anchor {
		for _, g := range p.Find(name) {
			if !g.anchored {
				set(&p.history, &g.anchored, true)
				set(&p.history, &p.anchors, p.anchors+1)
			}
		}
	}
}

// standing are the pages that are out among the first n messages, in the order in which they went.
func (h *history) standing(n int) (out []*stayed) {
	if n == len(h.messages) {
		return nil // nothing is cut
	}
	for _, g := range h.stubs {
		if g.Message < n {
			out = append(out, &stayed{place{g.Message, g.at}, h.wasTold(g)})
		}
	}
	return out
}

// stay puts pages out again that a cut brought back, whoever keeps them. That is no eviction: they went before.
func (p *Pager) stay(list []*stayed) {
	if len(list) == 0 {
		return
	}
	c, reads := &p.costs, 0
	for _, s := range list {
		g := p.pageAt(s.at)
		if g == nil || g.stub {
			continue
		}
		p.leave(g)
		set(&p.history, &g.stays, s)
		if g.Read {
			reads++
		}
	}
	set(&p.history, &c.gone, c.gone+reads) // what they are measured by when they are read again
	set(&p.history, &c.evicted, c.evicted+reads)
	p.settle()
}

// pageAt returns the page that stands at a place, nil for none.
func (h *history) pageAt(at place) *Page {
	for _, g := range h.within(at.message) {
		if g.at == at.at {
			return g
		}
	}
	return nil
}

// settle takes what is out from among what may go.
func (p *policy) settle() {
	c := &p.costs
	if !slices.ContainsFunc(c.ready, func(g *Page) bool { return g.stub }) {
		return
	}
	var ready []*Page
	var first *Page
	saved := 0
	for _, g := range c.ready {
		if g.stub {
			continue
		}
		ready = append(ready, g)
		if p.rule == "batch" || p.rule == belady {
			saved += g.wire
		} else {
			saved += g.frees()
		}
		if first == nil || g.before(first) {
			first = g
		}
	}
	set(&p.history, &c.ready, ready)
	set(&p.history, &c.saved, saved)
	set(&p.history, &c.first, first)
}
