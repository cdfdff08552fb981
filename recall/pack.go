package recall

import (
	"cmp"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// How hits are chosen that are to be different. Papers/total-recall §4.1: maximal marginal relevance (Carbonell
// and Goldstein, 1998), stable for lambda in 0.5 to 0.8; the likeness of two texts is the share of their words
// that both have.
const (
	mmrLambda = 0.7
	mmrMost   = 50 // hits among which it is looked for: beyond, the order stays, so that it never is quadratic
)

// Diverse puts hits in an order in which what was said before counts less. A hit that is like none keeps its
// place among others like it; equal ones keep their order.
func (x *Index) Diverse(hits []Hit) []Hit {
	n := min(len(hits), mmrMost)
	sets := make([][]int32, n)
	for i, h := range hits[:n] {
		sets[i] = slices.Clone(x.terms[h.Doc])
		slices.Sort(sets[i])
		sets[i] = slices.Compact(sets[i])
	}
	like := make([]float64, n) // of each to the most like of those that are chosen
	taken := make([]bool, n)
	out := make([]Hit, 0, len(hits))
	for range n {
		best, most := -1, 0.0
		for i := range n {
			if v := mmrLambda*hits[i].Normalized - (1-mmrLambda)*like[i]; !taken[i] && (best < 0 || v > most) {
				best, most = i, v
			}
		}
		taken[best] = true
		out = append(out, hits[best])
		for i := range n {
			if !taken[i] {
				like[i] = max(like[i], jaccard(sets[best], sets[i]))
			}
		}
	}
	return append(out, hits[n:]...)
}

// jaccard is the share of two sorted sets that both have.
func jaccard(a, b []int32) float64 {
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch cmp.Compare(a[i], b[j]) {
		case -1:
			i++
		case 1:
			j++
		default:
			both, i, j = both+1, i+1, j+1
		}
	}
	if all := len(a) + len(b) - both; all > 0 {
		return float64(both) / float64(all)
	}
	return 0
}

// Pack chooses from sizes in order those that fit into a budget together, at most so many: one that does not
// fit is passed over and the next is tried. over is those that were passed over before the last that was taken,
// or because nothing more fits.
func Pack(sizes []int, budget, most int) (taken, over []int) {
	left := budget
	for i, size := range sizes {
		switch {
		case len(taken) >= most:
			return taken, over
		case size <= left:
			taken, left = append(taken, i), left-size
		default:
			over = append(over, i)
		}
	}
	return taken, over
}

// Rescore gives hits the scores of their events for a task, and puts them in the order of these; equal ones
// stand by what they had, and by id. The factors count beside one another: the best of them, or that of an event of
// which nothing is known, takes nothing away. So a card alone makes no answer worth less, here beside the floor of a
// constraint or elsewhere beside the finds of a conversation without a card.
func (x *Index) Rescore(hits []Hit, t Task, known func(id string) Known) {
	best := t.factor(Known{})
	of := make([]Known, len(hits))
	for i := range hits {
		of[i] = known(x.docs[hits[i].Doc].ID)
		best = max(best, t.factor(of[i]))
	}
	for i := range hits {
		hits[i].Normalized = t.score(hits[i].Normalized, best, of[i])
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Normalized, a.Normalized), cmp.Compare(b.Score, a.Score), cmp.Compare(x.docs[a.Doc].ID, x.docs[b.Doc].ID))
	})
}

// Cost is about how many tokens a result takes: those of its text, and its heading.
func Cost(text string) int { return int(tidemark.EstimateText(text)) + 4 }
