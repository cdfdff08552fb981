package paging

import (
	"fmt"
	"slices"
	"sort"

	"github.com/tidemark-ai/tidemark"
)

// Bounds are the names of policies that know the whole session before they decide. Only a [Replay] can run
// them; a [Pager], which is told one request after another, can not.
//
//   - cost-optimal is the least cost that the rules of age and size permit
//   - min is Belady's: of what may go, that goes whose next use is farthest
func Bounds() []string { return []string{"cost-optimal", "min"} }

const (
	optimal = "cost-optimal"
	belady  = "min"
)

// maxWork bounds requests by results of a session whose bound is sought, since the relaxation looks at each pair.
const maxWork = 200_000_000

// hindsight is what a bound knows of a session before it begins.
type hindsight struct {
	reads map[string][]int // of min: the requests that read a range, by its key
	leave [][]int          // of cost-optimal: the pages that go with each request, by their number
	now   int              // the request

	decide func(*Pager) // what the policy does: not a case of [Pager.decide], so that a program without replay has none of it
}

// newOffline returns a pager that is told the session first.
func newOffline(o Options, h *hindsight) *Pager {
	p := newPager(o)
	h.decide = (*Pager).planned
	if o.Policy == belady {
		h.decide = (*Pager).farthest
	}
	p.ahead = h
	return p
}

// safe reports whether superseded reads and all but the newest of equal errors may go before their age.
func (p *policy) safe() bool { return p.rule == "cost" || p.rule == optimal }

// planned lets go what the plan says.
func (p *Pager) planned() {
	p.again = nil
	h := p.ahead
	if h.now < len(h.leave) {
		for _, i := range h.leave[h.now] {
			p.evict(p.pages[i])
		}
	}
	h.now++
}

// may reports whether any policy could let a page go now: it has the size, and it is of the least age that
// one asks for (cost takes along what is half of age), or something newer stands for it.
func (p *Pager) may(g *Page) bool {
	return g.ripe || !g.Err && p.large(g) && !p.open(g) && p.age(g) >= (p.tau+1)/2
}

// worth reports whether a page can ever go: its stub is smaller. Of one below the least size the model may say so.
func (p *Pager) worth(g *Page) bool {
	p.shorten(g)
	return g.wire > g.short
}

// farthest is Belady's rule: it acts when batch does, lets those go whose next use is farthest, and stops
// when what else may go is half of what made it act.
func (p *Pager) farthest() {
	c := &p.costs
	p.again = nil
	p.mature()
	now := p.ahead.now
	p.ahead.now++
	context := float64(p.out.upTo(len(p.messages)))
	if len(c.ready) == 0 || float64(c.saved) < batchShare*context {
		return
	}
	next := make(map[*Page]int, len(c.ready))
	for _, g := range c.ready {
		next[g] = p.nextUse(g, now)
	}
	ready := slices.Clone(c.ready)
	slices.SortStableFunc(ready, func(a, b *Page) int {
		if next[a] != next[b] {
			return next[b] - next[a]
		}
		return inOrder(a, b)
	})
	saved, n := c.saved, 0
	for n < len(ready) && float64(saved) >= batchShare/2*context {
		saved -= ready[n].wire
		n++
	}
	gone, left := ready[:n], slices.Clone(ready[n:])
	slices.SortStableFunc(gone, inOrder)
	for _, g := range gone {
		p.evict(g)
	}
	set(&p.history, &c.ready, left)
	set(&p.history, &c.saved, saved)
}

// nextUse is the request that reads a page again, or one that never comes: a copy that a newer one stands
// for has no use, and garbage has none.
func (p *Pager) nextUse(g *Page, now int) int {
	const never = 1 << 30
	if !g.newest() {
		return never
	}
	uses := p.ahead.reads[keyName(g.Call)]
	if i := sort.SearchInts(uses, now+1); i < len(uses) {
		return uses[i]
	}
	return never
}

// readsOf lists the requests that read each range.
func readsOf(steps []Step) map[string][]int {
	reads := map[string][]int{}
	for n, st := range steps {
		for _, m := range st.Append {
			for _, b := range m.Blocks {
				if b.what == called && b.Call.Kind == Reads {
					name := keyName(b.Call)
					reads[name] = append(reads[name], n)
				}
			}
		}
	}
	return reads
}

// bound is what is known of the least cost of a session.
type bound struct {
	cost  float64
	exact bool // plan attains it; else no plan costs less, and maybe none so little
	plan  [][]int
}

// optimum seeks the least cost of a session.
func optimum(o Options, s Session) (bound, error) {
	w := watch{p: newOffline(o, &hindsight{}), exact: true}
	for n, st := range s.Steps {
		if err := w.step(st); err != nil {
			return bound{}, fmt.Errorf("steps[%d]: %w", n, err)
		}
	}
	w.close()
	return bound{w.cost, w.exact, w.plan}, nil
}

// watch runs a session with nothing replaced and cuts it into stretches: a new one begins where the history
// was cut.
type watch struct {
	p       *Pager
	now     stretch
	waiting []int // pages that are not of age yet
	seen    int   // pages looked at
	work    int
	cost    float64
	exact   bool
	plan    [][]int
}

// stretch is a part of a session in which the history only grows.
type stretch struct {
	asks []ask
	may  []candidate
}

// ask is a request with nothing replaced.
type ask struct {
	in, same int
	kept     int // messages that the request before had, too
}

// candidate is a result that may go.
type candidate struct {
	page, message       int
	from                int // where it begins in the list of all messages
	wire, short, common int
	ready               int // the request of the stretch from which it may
}

// saved is what its going frees.
func (c *candidate) saved() int { return c.wire - c.short }

func (w *watch) step(st Step) error {
	p := w.p
	before := p.Len()
	kept := before
	if st.Cut {
		kept = min(kept, st.Keep)
	}
	d, err := p.Step(st)
	if err != nil {
		return err
	}
	if kept < before {
		w.close()
		w.seen, w.waiting = 0, nil
		for _, g := range p.pages {
			if g.Message < kept && p.worth(g) && (g.ripe || p.large(g)) {
				w.exact = false // what was out may come back, and what it costs hangs on the stretch before
			}
		}
	}
	w.exact = w.exact && len(st.Anchor) == 0 // what stays costs more than the plan says
	w.now.asks = append(w.now.asks, ask{d.In, d.SameIn, kept})
	for ; w.seen < len(p.pages); w.seen++ {
		if p.worth(p.pages[w.seen]) {
			w.waiting = append(w.waiting, w.seen)
		}
	}
	rest := w.waiting[:0]
	for _, i := range w.waiting {
		if g := p.pages[i]; p.may(g) || st.Stay && g.Message < kept && kept < before {
			w.now.may = append(w.now.may, candidate{i, g.Message, p.offset(place{g.Message, g.at}), g.wire, g.short, g.common, len(w.now.asks) - 1})
		} else {
			rest = append(rest, i)
		}
	}
	w.waiting = rest
	if w.work += len(p.pages); w.work > maxWork {
		return fmt.Errorf("the session has too many requests and results for %s (%d requests, %d results now): leave the policy out: %w",
			optimal, len(p.marks), len(p.pages), tidemark.ErrTooLarge)
	}
	return nil
}

// close adds the best of a stretch.
func (w *watch) close() {
	s := w.now
	w.now = stretch{}
	slices.SortStableFunc(s.may, func(a, b candidate) int { return a.from - b.from })
	cost, leave, exact := s.best()
	w.cost += cost
	w.exact = w.exact && exact
	first := len(w.plan)
	w.plan = append(w.plan, make([][]int, len(s.asks))...)
	for i, at := range leave {
		if at >= 0 {
			w.plan[first+at] = append(w.plan[first+at], s.may[i].page)
		}
	}
}
