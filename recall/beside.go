package recall

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/memory"
)

// A number says nothing by itself: the 12 of "build 12" is another than that of "12 seconds", and a log has both in each
// of its messages. So a number of the query, or an id with one, counts where it stands beside what it stands beside in
// the query, nearer and in the same order better, and counts for nothing where others have it there and it stands beside
// other words. No word is known for this: nearness, order and numbers in between are looked at.

// besideWords is how many words at either side of a number are looked at, in a query and, since a text may put one more
// between, in a document.
const (
	besideQuery = 2
	besideText  = 3
)

// The worth of a word beside a number, by where it stands in the query and in the text.
const (
	besideSecond  = 0.6  // it is not the next in the query
	besideGap     = 0.75 // one word is more or less between them
	besideFar     = 0.3  // or several
	besideOther   = 0.4  // it stands at the other side
	besideAcross  = 0.15 // and farther off
	besideListed  = 0.5  // other numbers alone are between: "builds 11, 12 and 13"
	besideLeast   = 0.4  // of the best, from which a document states the number
	besideSome    = 0.3  // and of one word beside it, which no id needs
	besideNowhere = 0.25 // of a number that stands nowhere beside its words
	besideName    = 0.5  // the least of an id, which means the same beside other words, too
)

// unit is a token of a text by its terms: the whole name, its parts if it has several, and which of the terms these are.
type unit struct {
	whole    string
	parts    []string
	from, to int
}

// units puts terms together again as they were tokens: a name is followed by its parts.
func units(terms []string) []unit {
	var out []unit
	for i := 0; i < len(terms); {
		u := unit{whole: terms[i], from: i}
		i++
		if compound(u.whole) {
			for i < len(terms) && len(terms[i]) < len(u.whole) && strings.Contains(u.whole, terms[i]) {
				if !compound(terms[i]) { // v1.2 has 1.2, too
					u.parts = append(u.parts, terms[i])
				}
				i++
			}
		}
		if len(u.parts) == 0 {
			u.parts = []string{u.whole}
		}
		u.to = i
		out = append(out, u)
	}
	return out
}

// numbered reports a term that is a number, or an id with one.
func numbered(t string) bool { return strings.ContainsAny(t, "0123456789") }

// besides is a word beside a number: how many words from it, below 0 before it, and whether other numbers stand between.
type besides struct {
	word   string
	off    int
	listed bool
}

// walk returns what stands beside a stretch of words, up to so many at either side, and up to another number: what is
// behind that stands beside that one. Numbers alone between are of one list.
func walk(words []string, first, last, most int) (out []besides) {
	for _, step := range []int{-1, 1} {
		at, listed := first-1, false
		if step > 0 {
			at = last + 1
		}
		for n := 0; n < most && at >= 0 && at < len(words); at += step {
			if !numbered(words[at]) {
				n++
				out = append(out, besides{words[at], n * step, listed})
				continue
			}
			if n > 0 {
				break
			}
			listed = true
		}
	}
	return out
}

// places calls f for each place of a term in a text.
func places(text []unit, is func(term string) bool, f func(words []string, first, last int)) {
	var words []string
	for _, u := range text {
		words = append(words, u.parts...)
	}
	at := 0
	for _, u := range text {
		end := at + len(u.parts)
		if is(u.whole) {
			f(words, at, end-1)
		} else {
			for i, p := range u.parts {
				if is(p) {
					f(words, at+i, at+i)
				}
			}
		}
		at = end
	}
}

// numbers returns what stands beside each number of the query; one that stands beside nothing is not among them.
func (q Query) numbers() map[string][]besides {
	out := map[string][]besides{}
	all := units(q.order)
	for _, u := range all {
		if !numbered(u.whole) || out[u.whole] != nil {
			continue
		}
		places(all, func(t string) bool { return t == u.whole }, func(words []string, first, last int) {
			for _, b := range walk(words, first, last, besideQuery) {
				if !b.listed {
					out[u.whole] = append(out[u.whole], b)
				}
			}
		})
		if len(out[u.whole]) == 0 {
			delete(out, u.whole)
		}
	}
	return out
}

// worth is how well what stands beside a number in a text fits what stands beside it in the query, and how well if a list
// of numbers counts for each of them.
func worth(want, there []besides) (sum, each float64) {
	for _, w := range want {
		best, alike := 0.0, 0.0
		for _, b := range there {
			if b.word != w.word {
				continue
			}
			more := max(b.off, -b.off) - max(w.off, -w.off)
			v, same := besideAcross, (b.off < 0) == (w.off < 0)
			switch {
			case same && more == 0:
				v = 1
			case same && (more == 1 || more == -1):
				v = besideGap
			case same:
				v = besideFar
			case more <= 1:
				v = besideOther
			}
			alike = max(alike, v)
			if b.listed {
				v *= besideListed
			}
			best = max(best, v)
		}
		second := 1.0
		if w.off < -1 || w.off > 1 {
			second = besideSecond
		}
		sum, each = sum+best*second, each+alike*second
	}
	return sum, each
}

// beside weighs the numbers of the query by what they stand beside: in tf, how often each term stands in each document,
// and in fits, where a document has none of them that does not fit.
func (m *match) beside(tf [][]float64) {
	want := m.q.numbers()
	for t, term := range m.terms {
		near := want[term]
		if near == nil {
			continue
		}
		fit, most, astray := m.fitting(int32(t+1), near, tf[t])
		if m.fits == nil {
			m.fits, m.loose = make([]float64, len(m.x.docs)), make([]terms, len(m.x.docs))
		}
		for d := range astray {
			if astray[d] {
				m.loose[d] |= 1 << t
			}
		}
		least, some := 0.0, besideSome
		if identifier(term) {
			if least, some = besideName, 0; most == 0 { // it names one thing wherever it stands
				continue
			}
		}
		for d, v := range fit {
			switch {
			case tf[t][d] == 0:
				continue
			case v < 0: // it stands alone
				v = 1
			case most < some || most == 0:
				v, m.loose[d] = besideNowhere, m.loose[d]|1<<t
			default:
				enough := v >= some
				v = min(1, v/most)
				m.fits[d] = max(m.fits[d], v)
				if !enough || v < besideLeast {
					v, m.loose[d] = 0, m.loose[d]|1<<t
				}
			}
			tf[t][d] *= max(v, least)
		}
	}
}

// fitting is how well a number of the query fits in each document that has it, and the most of these; astray are those
// where another number stands in its place. A question that was asked before fits best of all and answers nothing: what
// states something is measured against what states.
func (m *match) fitting(t int32, near []besides, tf []float64) (fit []float64, most float64, astray []bool) {
	fit, astray = make([]float64, len(m.x.docs)), make([]bool, len(m.x.docs))
	asked := 0.0
	for d := range m.x.docs {
		if tf[d] == 0 {
			continue
		}
		fit[d], astray[d] = m.fit(d, t, near)
		if slices.ContainsFunc(m.x.asked[d], func(id int32) bool { return m.at[id] == t }) {
			asked = max(asked, fit[d])
		} else {
			most = max(most, fit[d])
		}
	}
	if most == 0 {
		most = asked
	}
	return fit, most, astray
}

// fit is how well the places of a number in a document fit, the best of them, below 0 where it stands beside no words.
// It is astray where those of another number fit better: "12 servers; the hash of build 31" says nothing of build 12.
func (m *match) fit(doc int, t int32, near []besides) (best float64, astray bool) {
	best = -1
	own, others := 0.0, 0.0
	text := units(m.x.wordsOf(m.x.terms[doc]))
	is := func(w string) bool { id, ok := m.x.vocab[w]; return ok && m.at[id] == t }
	places(text, is, func(words []string, first, last int) {
		if there := walk(words, first, last, besideText); len(there) > 0 {
			sum, each := worth(near, there)
			best, own = max(best, sum), max(own, each)
		}
	})
	name := m.terms[t-1]
	other := func(w string) bool { return numbered(w) && !strings.Contains(w, name) && !strings.Contains(name, w) }
	places(text, other, func(words []string, first, last int) {
		_, each := worth(near, walk(words, first, last, besideText))
		others = max(others, each)
	})
	return best, others > own
}

// Run is words of a query that stand together in it: an index that knows the places of words gives the messages where
// they stand together, too.
type Run struct {
	Terms  []string // in their order
	Number bool     // one is a number
}

// Runs returns each pair of words that stand side by side in a query, those with a number first.
func (q Query) Runs() []Run {
	var out []Run
	seen := map[string]bool{}
	all := units(q.order)
	for i, u := range all[:max(0, len(all)-1)] {
		r := Run{Terms: q.order[u.from : u.to+1], Number: numbered(u.whole) || numbered(all[i+1].whole)}
		if key := strings.Join(r.Terms, " "); !seen[key] && !slices.ContainsFunc(r.Terms, memory.Lone) {
			seen[key] = true
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Run) int { return int(one(b.Number) - one(a.Number)) })
	return out
}

// Place returns where in a text a number of the query fits best, -1 where none is beside any of its words.
func (q Query) Place(text string, stem *Stemmer) int {
	const most, side = 400, 80 // places, and bytes at either side
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // places in one are not places in the other
		return -1
	}
	best, at := 0.0, -1
	numbers := q.numbers()
	for _, term := range slices.Sorted(maps.Keys(numbers)) {
		near := numbers[term]
		for from, n := 0, 0; n < most; n++ {
			i := strings.Index(lower[from:], term)
			if i < 0 {
				break
			}
			i += from
			from = i + len(term)
			lo, hi := max(0, i-side), min(len(lower), from+side)
			if lo > 0 {
				lo += max(0, strings.IndexAny(lower[lo:i], " \n"))
			}
			if hi < len(lower) {
				hi = from + max(0, strings.LastIndexAny(lower[from:hi], " \n"))
			}
			before := units(stem.Terms(text[lo:i]))
			words := 0
			for _, u := range before {
				words += len(u.parts)
			}
			places(append(before, units(stem.Terms(text[i:hi]))...), func(t string) bool { return t == term }, func(all []string, first, last int) {
				if first != words { // another place of it, which has its own turn
					return
				}
				if v, _ := worth(near, walk(all, first, last, besideText)); v > best {
					best, at = v, i
				}
			})
		}
	}
	return at
}
