package paging

import "slices"

// lru lets go what was not used for tau turns as a person counts: one that the user typed, or two rounds of
// tools. A read or change of its file is a use of the newest copy of a range. Nothing is batched; what is safe is as with cost: the newest
// of equal errors stays, a range that was a fault is pinned until its file changes, and so does what the
// newest turn names, until another one does.
func (p *policy) lru() {
	c := &p.costs
	p.waited = 0
	p.loosen()
	due := p.held()
	for head := p.head; head < len(p.pages); head++ {
		p.wait(p.pages[head], p.pages[head].tick)
	}
	if p.head != len(p.pages) {
		set(&p.history, &p.head, len(p.pages))
	}
	until := p.clock + p.Tau()*turnTicks - p.span() // what is halved comes earlier than it was put down for
	for tick := c.seen; tick <= until; tick++ {
		due = append(due, c.due[tick]...)
	}
	if c.seen <= until {
		set(&p.history, &c.seen, until+1)
	}
	due = append(due, p.again...)
	p.again = nil
	slices.SortStableFunc(due, inOrder)
	for _, g := range due {
		switch {
		case g.stub || p.open(g) || !g.released && !p.large(g) || g.Err && c.errors[g.Hash] == g:
		case !g.released && g.newest() && g.key.file.used+p.span() > p.clock:
			p.wait(g, g.key.file.used)
		case p.needed(g): // asked once: a hint holds once
			if g.released {
				set(&p.history, &p.late, append(p.late, g))
				continue
			}
			p.wait(g, p.clock)
		default:
			p.old(g)
		}
	}
}

// newest reports whether a page is the newest copy of its range.
func (p *Page) newest() bool {
	return p.key != nil && len(p.key.live) > 0 && p.key.live[len(p.key.live)-1] == p
}

// span is the age that is asked for, in ticks.
func (p *policy) span() int { return p.asked() * turnTicks }

// wait has a page looked at again when it was not used for tau since a tick, at the next request at the earliest.
func (p *policy) wait(g *Page, since int) {
	c := &p.costs
	tick := max(since+p.Tau()*turnTicks, c.seen)
	n := len(c.due[tick])
	if p.waited != len(p.undo) || p.waitedAt != tick { // else the change before takes this one back, too
		p.undo = append(p.undo, func() { c.due[tick] = c.due[tick][:n] })
		p.waited, p.waitedAt = len(p.undo), tick
	}
	c.due[tick] = append(c.due[tick], g) // in place: what a cut takes back stands behind n
}
