package paging

import (
	"math"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

const (
	maxChoice  = 256  // pages of which those are chosen that are worth it; of more all are
	faultPrior = 0.1  // of all pages that went, those that were read again, before anything is known
	priorPages = 10.0 // pages that the prior counts as
)

// cost evicts in batches, when one pays: each change of the prefix has what is behind it written anew. A batch and
// the wait before it cost, on the mean of the requests since the one before, less and less, until waiting for one
// more request costs more than that mean. Then it goes. Where results come at an even rate that is when keeping them
// has cost as much as writing the rest anew. It never waits longer than that, so it is never twice the best wait,
// however long the session will be, which nobody knows.
func (p *policy) cost() {
	c := &p.costs
	var before mark
	if n := len(p.marks); n > 0 {
		before = p.marks[n-1]
	}
	p.measured(before)
	p.ripen(p.asked() * roundTicks)
	p.loosen()
	p.release()
	if len(c.ready) == 0 {
		return
	}
	hold, lose := p.prices()
	first, saved := p.choose(before.messages, hold, lose)
	if first == nil {
		return
	}
	saved += p.company(first, before.messages, hold)
	behind := float64(max(p.between(first.Message, before.messages)-saved, 0))
	set(&p.history, &c.regret, c.regret+hold*float64(saved))
	if p.acts(c.regret >= lose*behind || p.later(hold*float64(saved), lose, behind)) {
		p.batch(first)
	}
}

// company is what those would free that go along with a batch though they are not of age: they need not be written anew,
// and waiting keeps them, too. It is counted where less of what went was read again than is assumed before anything is
// known: else what waits longer is spared some faults, which have no price here.
func (p *policy) company(first *Page, sent int, hold float64) (saved int) {
	if c := &p.costs; float64(c.missed+c.faults) >= faultPrior*float64(c.gone) {
		return 0
	}
	for _, g := range p.pages[p.head:] {
		if g.Message >= sent || p.age(g) < p.alongAge() {
			break
		}
		pinned := p.armed(g) || g.key != nil && len(g.key.pinned) > 0
		if p.comes(g) && !pinned && first.before(g) && p.worthOf(g, hold) >= 0 && !p.spoken(g) {
			saved += g.frees()
		}
	}
	return saved
}

// comes reports a page that comes of age some day, and shortens it.
func (p *policy) comes(g *Page) bool {
	if g.Part != Result || g.ripe || g.stub || g.Err || g.Size < p.min || p.holds(g) {
		return false
	}
	p.shorten(g)
	return g.frees() > 0
}

// later reports whether one more request of waiting costs more than those of the cycle do on the mean. keep is what
// a request costs by what may go; what is behind that grows by what a request brings, less what will be of age soon.
func (p *policy) later(keep, lose, behind float64) bool {
	c := &p.costs
	coming := 0
	for _, g := range p.pages[p.head:] {
		if p.comes(g) {
			coming += g.frees()
		}
	}
	brings := float64(p.wholly.weigh(p.in[len(p.in)-1])) / float64(len(p.marks)+1)
	grows := brings - float64(coming)/float64(max(p.asked(), 1))
	return (keep+lose*grows)*float64(len(p.marks)-c.acted) >= lose*behind+c.regret
}

// choose tells from which page on those that may go are worth what is written anew, in the order of the history, and
// what they free. A small page far in front of the others would have all between written anew; it waits for company.
// Where the window fills up all go, and so they do where they are too many to look at. nil is none.
func (p *policy) choose(sent int, hold, lose float64) (first *Page, saved int) {
	c := &p.costs
	ready, front, all := p.free()
	if len(ready) > maxChoice || p.now.Zone >= Involuntary {
		return front, all
	}
	c.order = append(c.order[:0], ready...)
	slices.SortStableFunc(c.order, inOrder)
	best, worth, sum := 0.0, 0.0, 0
	for i := len(c.order) - 1; i >= 0; i-- {
		g := c.order[i]
		w := p.worthOf(g, hold)
		if g.stub || w < 0 || p.spoken(g) {
			continue
		}
		worth += w
		sum += g.frees()
		if v := worth - lose*float64(max(p.between(g.Message, sent)-sum, 0)); first == nil || v >= best {
			best, first, saved = v, g, sum
		}
	}
	return first, saved
}

// free is what of those that may go nobody holds, the one of them that stands first, and what they free.
func (p *policy) free() (ready []*Page, first *Page, saved int) {
	c := &p.costs
	if p.holdsNone() {
		return c.ready, c.first, c.saved
	}
	for _, g := range c.ready {
		if g.stub || p.holds(g) {
			continue
		}
		ready = append(ready, g)
		saved += g.frees()
		if first == nil || g.before(first) {
			first = g
		}
	}
	return ready, first, saved
}

// worthOf is what the going of a page spares while the session goes on as long again as it has lasted, less what a
// fault of it would cost: its bytes written anew, and a further pass over the whole context, which costs the more the
// fuller it is. How likely that is the session itself tells, by how many of its pages that went were read again; and
// the older a page is, the less likely. Where the window fills up a page is worth what it frees.
func (p *policy) worthOf(g *Page, hold float64) float64 {
	c := &p.costs
	spares := hold * float64(len(p.marks)) * float64(g.frees())
	if !g.Read || !g.newest() || p.now.Zone >= Involuntary {
		return spares
	}
	often := (float64(c.missed+c.faults) + faultPrior*priorPages) / (float64(c.gone) + priorPages)
	often *= math.Exp2(-float64(p.age(g)) / pinHalves)
	context := p.between(0, len(p.messages))
	return spares - often*(WrittenPrice*float64(g.wire)+hold*float64(context))
}

// weigh is what some bytes cost, of which images are the flat figure that they count, as so many bytes of text.
func (in inline) weigh(bytes int) int {
	const flat = int(tidemark.ImageTokens) * 10 / 3
	return bytes - in.data + in.images*flat
}

// frees is what the going of a page frees, so weighed.
func (p *Page) frees() int { return p.inline.weigh(p.wire - p.short) }

// between is what messages weigh as they are sent, from one up to another.
func (h *history) between(from, to int) int {
	var in inline
	for i := len(h.pictures) - 1; i >= 0 && h.pictures[i].Message >= from; i-- {
		if g := h.pictures[i]; !g.stub && g.Message < to {
			in = in.plus(g.inline, 1)
		}
	}
	return in.weigh(h.out.upTo(to) - h.out.upTo(from))
}

// picture notes a page that is or holds an image.
func (h *history) picture(g *Page) {
	if g.inline != (inline{}) {
		set(h, &h.pictures, append(h.pictures, g))
	}
}

// prices are what a byte costs that stays, and one that is written anew though it was cached.
func (p *policy) prices() (hold, lose float64) {
	h := p.costs.hit
	return CachedPrice*h + (1 - h), (WrittenPrice - CachedPrice) * h
}

// measured takes what the provider reported of the request before: where it read less from the cache
// than stood there, a broken prefix is less of a loss.
func (p *policy) measured(m mark) {
	c := &p.costs
	const least = 0.3 // of the request, that must have been as before to tell anything
	u := m.usage
	if u == nil || m.out == 0 || float64(m.same) < least*float64(m.out) {
		return
	}
	all := u.Input + u.CacheRead + u.CacheCreation
	if all <= 0 {
		return
	}
	share := float64(u.CacheRead) / float64(all) * float64(m.out) / float64(m.same)
	set(&p.history, &c.hit, (c.hit+min(share, 1))/2)
}
