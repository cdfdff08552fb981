package recall

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode"
)

// linkMost is how many documents may have the name that leads from one to another: what more of them have is what the
// talk is about, and links anything.
const linkMost = 5

// Behind ranks what a query and a second one found, by how well it answers the first, or stands behind what does. worth is
// that of a find of the second beside one of the first.
func Behind(first, second []Hit, worth float64) []Hit {
	own := map[int]Hit{}
	var by *match
	for _, h := range first {
		own[h.Doc], by = h, h.by
	}
	var out []Hit
	for _, h := range second {
		one := own[h.Doc]
		h.Coverage, h.Around, h.by = one.Coverage, one.Around, by
		h.Score, h.Normalized = max(one.Score, h.Score*worth), max(one.Normalized, h.Normalized*worth)
		out = append(out, h)
		delete(own, h.Doc)
	}
	for _, h := range first { // what is like the first query by its letters alone may be too little like the second
		if _, left := own[h.Doc]; left {
			out = append(out, h)
		}
	}
	slices.SortStableFunc(out, func(x, y Hit) int { return cmp.Compare(y.Score, x.Score) })
	Level(out)
	return out
}

// Chain looks for two of the best hits that answer together what neither does alone: one names something that the query
// does not and that few have, the other is about it, and each states of the query what the other does not. They are put
// before the others, first the one that was led to, see [match.leads].
func (x *Index) Chain(hits []Hit, s Stats) (ordered []Hit, ok bool) {
	best := hits[:min(len(hits), judged)]
	for i, a := range best {
		for j, b := range best[i+1:] {
			if a.by == nil || b.by == nil || !a.by.chained(a.Doc, b.Doc, s) {
				continue
			}
			if a.by.leads(a, b) {
				a, b = b, a
			}
			if !slices.ContainsFunc(b.by.q.Terms, b.by.q.exact) && x.open(b, best) {
				return hits, false
			}
			rest := slices.Delete(slices.Clone(hits), i+1+j, i+2+j)
			ordered = append([]Hit{a, b}, slices.Delete(rest, i, i+1)...)
			ordered[1].Score = max(b.Score, hits[0].Score)
			ordered[0].Score = ordered[1].Score
			Level(ordered)
			return ordered, true
		}
	}
	return hits, false
}

// standIns are terms by which a question speaks of somebody or something that it does not name: what names the link is
// their answer.
var standIns = setOf(`one person man woman guy somebodi someon anybodi compani place thing`)

// chained reports whether two documents answer the query together.
func (m *match) chained(a, b int, s Stats) bool {
	one, two := m.said(a), m.said(b)
	if one&^two == 0 || two&^one == 0 {
		return false
	}
	var named terms
	for t, term := range m.terms {
		if standIns[term] {
			named |= 1 << t
		}
	}
	if x, y := m.x.docs[a].Speaker, m.x.docs[b].Speaker; x != "" && y != "" && x != y { // anybody could say where a name of others leads
		return false
	}
	return m.sure(one|two, named) && m.linked(a, b, s)
}

// leads reports whether of two documents that answer together the first leads to the second. A question begins with what
// it asks for, so the answer states the earlier word; of mere words it states fewer.
func (m *match) leads(a, b Hit) bool {
	if w := m.q.word(0); asksFor[w] {
		one, two := m.said(a.Doc), m.said(b.Doc)
		return bits.TrailingZeros64(uint64(one&^two)) > bits.TrailingZeros64(uint64(two&^one))
	}
	return a.Coverage > b.Coverage
}

// asksFor are words that a question begins with whose next words are what is asked for.
var asksFor = setOf(`what which how whose welche welcher welches wie`)

// linked reports whether two documents name the same, which is not of the query and which few have. A number alone, a
// year or a port, is the same by chance.
func (m *match) linked(a, b int, s Stats) bool {
	for _, id := range m.x.terms[a] {
		t := m.x.word[id]
		if Names(t) == 0 || !strings.ContainsFunc(t, unicode.IsLetter) || slices.Contains(m.q.Terms, t) || !slices.Contains(m.x.terms[b], id) {
			continue
		}
		holds := 0
		if s.Docs > 0 {
			holds = s.Holds(t)
		}
		if holds == 0 { // one that the corpus was not asked for, or no corpus
			for _, ids := range m.x.terms {
				if slices.Contains(ids, id) {
					holds++
				}
			}
		}
		if holds <= linkMost {
			return true
		}
	}
	return false
}
