package paging

import "slices"

// Time as a person counts: what the user types is two turns' worth of a round of tools, so that talk ages a
// result faster than a long run of an agent does, which ages it too. tau is told in rounds.
const (
	turnTicks  = 2
	roundTicks = 1
)

const (
	batchShare = 0.3 // of the context, from which the policy batch acts
	pinHalves  = 8   // requests in which the strength of a pin halves
	pinPrior   = 1.0 // strength of a fresh pin: how likely its page is read again if it goes
	thrashRate = 0.5 // faults by evicted pages since the batch before, from which tau doubles
	thrashMin  = 3   // faults that make a thrash
	maxSlow    = 8   // how much tau grows at most
)

// costs is what the policy cost keeps beside the pages.
type costs struct {
	ready   []*Page // may go when it pays
	saved   int     // bytes that they would free, as text
	first   *Page   // the one that stands first
	regret  float64 // what keeping those that are worth it has cost since the batch before
	acted   int     // the request of that batch
	gone    int     // pages that went with all batches up to it
	missed  int     // faults up to it
	order   []*Page // room to order those that may go
	errors  map[[32]byte]*Page
	seen    int             // of lru: ticks before it have been looked at
	due     map[int][]*Page // of lru: by the tick at which they have not been used for long enough
	names   []string        // files that the newest turn of the user names
	said    *said           // what else it speaks of, nil for nothing
	turn    int             // the message of that turn
	slow    int             // tau is multiplied by this: 1, 2, 4 …
	evicted int             // pages of the batch before
	faults  int             // since then
	hit     float64         // share of what could be cached that the provider says was
	pins    []*key
}

// age says how old a page is, in ticks.
func (p *policy) age(g *Page) int { return p.clock - g.tick }

// ripen moves what has come of age to what may go.
func (p *policy) ripen(ticks int) {
	head := p.head
	for head < len(p.pages) && p.age(p.pages[head]) >= ticks {
		p.ripe(p.pages[head])
		head++
	}
	if head != p.head {
		set(&p.history, &p.head, head)
	}
}

// ripe takes a page among those that may go. The newest of equal errors stays, and a range that was a
// fault is pinned for a while.
func (p *policy) ripe(g *Page) {
	c, k := &p.costs, g.key
	if g.ripe || g.stub || g.Part == Result && g.Size < p.min || p.open(g) || g.Err && c.errors[g.Hash] == g {
		return
	}
	if p.armed(g) {
		p.pin(g)
		set(&p.history, &k.pinnedAt, len(p.marks))
		set(&p.history, &c.pins, append(c.pins, k))
		return
	}
	if k != nil && len(k.pinned) > 0 {
		p.pin(g)
		return
	}
	p.ready(g)
}

// ready takes a page among those that may go, if its stub is shorter.
func (p *policy) ready(g *Page) {
	c := &p.costs
	if p.shorten(g); g.ripe || g.wire <= g.short || g.frees() <= 0 {
		return
	}
	set(&p.history, &g.ripe, true)
	set(&p.history, &c.ready, append(c.ready, g))
	set(&p.history, &c.saved, c.saved+g.frees())
	if c.first == nil || g.before(c.first) {
		set(&p.history, &c.first, g)
	}
}

// batch lets go what may, from some page on in the order of the history, and pins that have faded. What the newest
// turn of the user names stays, and so does what would cost more when it is read again than its going spares.
func (p *policy) batch(from *Page) {
	c := &p.costs
	p.thrash()
	p.fade()
	p.along()
	ready := append([]*Page(nil), c.ready...)
	slices.SortStableFunc(ready, inOrder)
	var rest []*Page
	evicted, saved := 0, 0
	hold, _ := p.prices()
	for _, g := range ready {
		if g.stub {
			continue
		}
		if g.before(from) || p.worthOf(g, hold) < 0 || p.needed(g) || p.holds(g) {
			rest = append(rest, g)
			saved += g.frees()
			continue
		}
		p.evict(g)
		if g.Read {
			evicted++
		}
	}
	set(&p.history, &c.ready, rest)
	set(&p.history, &c.saved, saved)
	set(&p.history, &c.regret, 0)
	set(&p.history, &c.acted, len(p.marks))
	set(&p.history, &c.gone, c.gone+evicted)
	set(&p.history, &c.missed, c.missed+c.faults)
	set(&p.history, &c.evicted, evicted)
	set(&p.history, &c.faults, 0)
	var first *Page
	if len(rest) > 0 {
		first = rest[0]
	}
	set(&p.history, &c.first, first)
}

// thrash raises tau when much of what went was read again, and lowers it when little was.
func (p *policy) thrash() {
	c := &p.costs
	slow := max(c.slow, 1)
	switch {
	case c.faults >= thrashMin && float64(c.faults) >= thrashRate*float64(c.evicted):
		slow = min(2*slow, maxSlow)
	case c.faults == 0 && c.evicted > 0:
		slow = max(slow/2, 1)
	}
	if slow != max(c.slow, 1) {
		set(&p.history, &c.slow, slow)
	}
}

// fade releases pins: the strength of one halves every pinHalves requests, and when what it is likely to
// spare, a read of the page and a further pass over the context, is less than what keeping the page costs
// until then, its page may go.
func (p *policy) fade() {
	c := &p.costs
	hold, _ := p.prices()
	context := float64(p.out.upTo(len(p.messages)))
	var left []*key
	for _, k := range c.pins {
		if len(k.pinned) == 0 {
			continue // its file changed
		}
		g := k.pinned[0]
		strength := pinPrior
		for n := len(p.marks) - k.pinnedAt; n >= pinHalves; n -= pinHalves {
			strength /= 2
		}
		fault := WrittenPrice*float64(g.wire) + hold*context
		if strength*fault >= hold*float64(g.wire)*pinHalves {
			left = append(left, k)
			continue
		}
		p.unpin(k)
		p.release()
	}
	set(&p.history, &c.pins, left)
}

// release lets what was unpinned be ripe.
func (p *policy) release() {
	again := p.again
	p.again = nil
	for _, g := range again {
		p.ripe(g)
	}
}

// older makes copies ripe before their age: a newer one, or a change of the file, stands for them.
func (p *policy) older(k *key) {
	if !p.safe() || len(k.live) == 0 {
		return
	}
	live := k.live
	set(&p.history, &k.live, nil)
	if len(k.pinned) > 0 {
		p.unpin(k)
		p.again = nil // all of them are among live
	}
	for _, g := range live {
		p.early(g)
	}
}

// early lets a page go before its age.
func (p *policy) early(g *Page) {
	if p.rule == optimal {
		set(&p.history, &g.ripe, true)
		return
	}
	p.ripe(g)
}

// failed remembers the newest of equal errors, and lets the one before go.
func (p *policy) failed(g *Page) {
	c := &p.costs
	if !p.safe() && p.rule != "lru" {
		return
	}
	old := c.errors[g.Hash]
	if put(&p.history, c.errors, g.Hash, g); old == nil {
		return
	}
	if p.rule == "lru" {
		p.again = append(p.again, old)
		return
	}
	p.early(old)
}

// simple is the rule that others are measured by: all that is old enough goes once it makes up a share
// of the context. It knows no pins.
func (p *policy) simple() {
	c := &p.costs
	p.mature()
	saved, kept := c.saved, 0
	var rest []*Page
	if !p.holdsNone() {
		for _, g := range c.ready {
			if p.holds(g) {
				rest = append(rest, g)
				kept += g.wire
			}
		}
		saved -= kept
	}
	if len(c.ready) == len(rest) || !p.acts(float64(saved) >= batchShare*float64(p.out.upTo(len(p.messages)))) {
		return
	}
	for _, g := range c.ready {
		p.evict(g)
	}
	set(&p.history, &c.ready, rest)
	set(&p.history, &c.saved, kept)
}

// mature moves what is of age tau to what may go, for the policies batch and min.
func (p *policy) mature() {
	c := &p.costs
	head := p.head
	for ; head < len(p.pages) && p.users-p.pages[head].born >= p.asked(); head++ {
		if g := p.pages[head]; !g.Err && g.Size >= p.min && !g.ripe && !g.stub {
			p.shorten(g)
			set(&p.history, &c.ready, append(c.ready, g))
			set(&p.history, &c.saved, c.saved+g.wire)
		}
	}
	if head != p.head {
		set(&p.history, &p.head, head)
	}
}
