package paging

import "slices"

// fifo is the paper unadorned: what is old enough and large enough goes, in the order of the history.
// Age is the number of messages of role user behind the one that holds the result, those of tool
// results included. Errors stay for ever. A range that faulted is pinned when its next copy comes of
// age as it was, and stays until its file changes.
func (p *policy) fifo() {
	p.loosen()
	again := append(p.held(), p.again...)
	p.again = nil
	slices.SortStableFunc(again, inOrder)
	for _, g := range again {
		p.old(g)
	}
	head := p.head
	for head < len(p.pages) && p.users-p.pages[head].born >= p.asked() {
		p.old(p.pages[head])
		head++
	}
	if head != p.head {
		set(&p.history, &p.head, head)
	}
}

// inOrder orders pages as the history does.
func inOrder(a, b *Page) int {
	if a.Message != b.Message {
		return a.Message - b.Message
	}
	return a.at - b.at
}

// before reports whether a page stands in front of another one.
func (p *Page) before(other *Page) bool { return inOrder(p, other) < 0 }

// old decides about a page that has come of age.
func (p *policy) old(g *Page) {
	k := g.key
	switch {
	case g.stub:
	case g.Err && p.rule != "lru" || !g.released && !p.large(g):
	case k != nil && len(k.pinned) > 0:
		p.pin(g)
	case p.armed(g):
		p.pin(g)
	case !p.acts(true) || p.holds(g):
		set(&p.history, &p.late, append(p.late, g))
	default:
		p.evict(g)
	}
}
