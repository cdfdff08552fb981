package recall

import (
	"cmp"
	"slices"
	"strings"
)

// Thresholds of a verdict, in shares of the query. They were set on absent needles and on half-remembered
// ones, see the tests.
const (
	confidentFrom = 0.6
	weakFrom      = 0.3
)

// Judge says how far the best hits can be trusted. What a query names by an identifier must be there, and so must its
// rarest word: a text about the same things is no find. What was only asked before makes nothing sure. Where a query
// names nothing, neither do common words that meet by chance, nor texts that answer it alike.
func (x *Index) Judge(q Query, hits []Hit) Verdict {
	around, sure := 0.0, false
	for _, h := range hits[:min(len(hits), judged)] {
		around = max(around, h.Around)
		sure = sure || h.by != nil && h.by.sure(h.by.said(h.Doc), 0)
	}
	switch {
	case sure && (slices.ContainsFunc(q.Terms, q.exact) || !x.open(hits[0], hits[1:min(len(hits), judged)])):
		return Confident
	case around >= weakFrom:
		return Weak
	}
	return Nothing
}

// open reports that it is left open which text is meant: another has as much of the query as a hit and is much like
// it, but each names something that the other does not, as the entries of a list do.
func (x *Index) open(of Hit, others []Hit) bool {
	first := x.terms[of.Doc]
	for _, h := range others {
		other := x.terms[h.Doc]
		if h.Doc != of.Doc && h.Coverage >= of.Coverage && alike*x.shared(first, other) >= len(first) && alike*x.shared(other, first) >= len(other) {
			return true
		}
	}
	return false
}

// alike: texts are when they have one word in so many in common.
const alike = 3

// shared counts the terms of a text that another has, too: 0 when none of its own is an identifier.
func (x *Index) shared(terms, others []int32) (n int) {
	names := 0
	for _, t := range terms {
		if slices.Contains(others, t) {
			n++
		} else {
			names += Names(x.word[t])
		}
	}
	return n * min(names, 1)
}

// judged is how many of the first hits a verdict looks at.
const judged = 5

// identifier reports a term that names one thing: a path, a hash, a version, a number of some length.
func identifier(t string) bool {
	digits := 0
	for _, r := range t {
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	return strings.ContainsAny(t, "_/@.-") && len(t) > 3 || digits > 0 && len(t) > 3
}

// Bounds of a second search.
const (
	hopHits  = 3 // whose words are taken
	hopTerms = 6
)

// numbersIn reports whether a document has all numbers and ids of the query, as they stand there, and of each number the word
// that stands next to it in the query: "MX 433" is not in what speaks of LX 433.
func (m *match) numbersIn(doc int) bool {
	has := func(t int) bool {
		return slices.ContainsFunc(m.x.terms[doc], func(id int32) bool { return m.at[id] == int32(t+1) })
	}
	beside := m.q.numbers()
	for t, term := range m.terms {
		if !numbered(term) && !m.q.exact(term) {
			continue
		}
		if m.loose != nil && m.loose[doc].has(t) || !has(t) {
			return false
		}
		next := slices.IndexFunc(beside[term], func(b besides) bool { return b.off == -1 })
		if next < 0 || identifier(term) {
			continue
		}
		if n := slices.Index(m.terms, beside[term][next].word); n >= 0 && !has(n) {
			return false
		}
	}
	return true
}

// Hop returns the query for a second search when the first was weak: with what the best hits name, since
// one fact often leads to another. A hit without a number or an id of the query is about another thing, and leads
// nowhere. ok is false when they name nothing new.
func (x *Index) Hop(q Query, hits []Hit) (next Query, ok bool) {
	count := make([]int32, len(x.word)) // documents that have a term
	last := make([]int32, len(x.word))  // of these the last, from 1
	for d, ids := range x.terms {
		for _, id := range ids {
			if last[id] != int32(d+1) {
				last[id], count[id] = int32(d+1), count[id]+1
			}
		}
	}
	type candidate struct {
		term  string
		rank  int // of its hit
		names int // 1 for an identifier
		docs  int32
	}
	var list []candidate
	known, names := make([]bool, len(x.word)), 0
	for _, t := range q.Terms {
		if id, ok := x.vocab[t]; ok {
			known[id] = true
		}
	}
	rarest := int32(-1)
	for id := range known {
		if known[id] && (rarest < 0 || count[id] < count[rarest]) {
			rarest = int32(id)
		}
	}
	for r, h := range hits[:min(len(hits), hopHits)] {
		if h.by != nil && !h.by.numbersIn(h.Doc) || rarest >= 0 && !slices.Contains(x.terms[h.Doc], rarest) {
			continue
		}
		for _, id := range x.terms[h.Doc] {
			t := x.word[id]
			if !known[id] && len(t) > 2 && !x.names[t] {
				known[id], names = true, names+Names(t)
				list = append(list, candidate{t, r, Names(t), count[id]})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.names, a.names), cmp.Compare(a.rank, b.rank), cmp.Compare(a.docs, b.docs))
	})
	if names > 0 { // words beside a name lead back
		list = list[:names]
	}
	next = q
	next.Terms = slices.Clone(q.Terms)
	for _, c := range list[:min(len(list), hopTerms)] {
		next.Terms = append(next.Terms, c.term)
		next.Text += " " + c.term
	}
	return next, len(list) > 0
}
