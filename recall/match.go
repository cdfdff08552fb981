package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// match is a query held against the documents. Each figure is a value for each document.
type match struct {
	x     *Index
	q     Query
	named string // the speaker whom the query names, if it is one

	turn  []float64 // BM25 of the document
	near  []float64 // of it with one neighbour at either side
	grams []float64 // BM25 of four characters of its words
	wide  []float64 // of it with two neighbours at either side
	day   []float64 // of its group
	best  []float64 // the best document of its group
	cover []float64 // share of the query within two neighbours
	own   []float64 // of it in the document itself
	mere  []float64 // of that, what stands in its questions alone
	asked []float64 // of the query, in the questions of the document before
	when  []float64 // how well its time fits the date that the query names

	terms []string  // of the query that are wanted
	at    []int32   // which of these a term of the documents stands for, from 1; 0 for none
	idf   []float64 // of each
	docs  int       // of the corpus
	heard []heard   // see said
	fits  []float64 // how well the numbers of the query stand in each document, nil for a query without, see beside
	loose []terms   // numbers that do not stand there as they do in the query
}

// The usual parameters of BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
// Beyond", 2009, §3.4.2).
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

func (x *Index) match(q Query, s Stats) *match {
	m := &match{x: x, q: q, named: x.speaker(q), docs: cmp.Or(s.Docs, len(x.docs))}
	terms := x.wanted(q)
	m.terms = terms
	tf := m.count(terms)
	own, wide := widths(x.lengths()), widths(x.windows(x.lengths(), 1))
	m.idf = idfs(tf, terms, s)
	m.beside(tf)
	m.turn = bm25(tf, own, m.idf)
	m.near = make([]float64, len(x.docs))
	beside := make([]float64, len(x.docs))
	for t := range tf {
		addBM25(m.near, x.slide(beside, tf[t], 1), wide, rarityOf(beside))
	}
	m.covers(tf)
	m.characters(terms)
	m.best = x.groupMax(m.turn)
	m.questions(terms)
	m.dates()
	for _, v := range [][]float64{m.turn, m.near, m.grams, m.wide, m.day, m.best, m.asked} {
		scale(v)
	}
	return m
}

// speaker returns the one speaker whom a query names, by the whole first name or three letters of it.
func (x *Index) speaker(q Query) string {
	found := ""
	for _, d := range x.docs {
		if d.Speaker == "" || d.Speaker == found {
			continue
		}
		first, _, _ := strings.Cut(strings.ToLower(d.Speaker), " ")
		if !oneOf(first, q.words...) && (len(first) < 5 || !oneOf(first[:3], q.words...)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = d.Speaker
	}
	return found
}

// wanted is the terms of a query without the names of speakers, which are no words of what was said; all
// of them when there are no others.
func (x *Index) wanted(q Query) []string {
	var out []string
	for _, t := range q.Terms {
		if !x.names[t] && !x.stemmed(t) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return q.Terms
	}
	return out
}

// stemmed reports the stem of a speaker's name.
func (x *Index) stemmed(t string) bool {
	for n := range x.names {
		if x.stem.stem(n) == t {
			return true
		}
	}
	return false
}

// count returns how often each term stands in each document.
func (m *match) count(terms []string) [][]float64 {
	x := m.x
	m.at = make([]int32, len(x.word))
	tf, block := make([][]float64, len(terms)), make([]float64, len(terms)*len(x.docs))
	for i, t := range terms {
		tf[i], block = block[:len(x.docs)], block[len(x.docs):]
		for _, id := range x.naming(t) {
			if j := m.at[id]; j == 0 || len(terms[j-1]) < len(t) { // of two that it holds, the longer
				m.at[id] = int32(i + 1)
			}
		}
	}
	for d, ids := range x.terms {
		for _, id := range ids {
			if i := m.at[id]; i > 0 {
				tf[i-1][d]++
			}
		}
	}
	return tf
}

func (x *Index) lengths() []float64 {
	out := make([]float64, len(x.docs))
	for i, ids := range x.terms {
		out[i] = float64(len(ids))
	}
	return out
}

// windows adds up counts over so many neighbours at either side.
func (x *Index) windows(v []float64, side int) []float64 {
	return x.slide(make([]float64, len(v)), v, side)
}

// slide is windows into memory of the same length. Sums of whole numbers are exact in any order.
func (x *Index) slide(out, v []float64, side int) []float64 {
	for from := 0; from < len(v); {
		end := from + 1
		for end < len(v) && x.run[end] == x.run[from] {
			end++
		}
		sum := 0.0
		for j := from; j < min(from+side, end); j++ {
			sum += v[j]
		}
		for i := from; i < end; i++ {
			if i+side < end {
				sum += v[i+side]
			}
			if i-side > from {
				sum -= v[i-side-1]
			}
			out[i] = sum
		}
		from = end
	}
	return out
}

// widths are lengths over their average.
func widths(v []float64) []float64 {
	sum := 0.0
	for _, n := range v {
		sum += n
	}
	out := make([]float64, len(v))
	for i, n := range v {
		out[i] = n / max(1, sum/float64(len(v)))
	}
	return out
}

// idfs is how rare each term is, in the corpus or, where nothing is known of that, in the documents.
func idfs(tf [][]float64, terms []string, s Stats) []float64 {
	out := make([]float64, len(tf))
	for t, counts := range tf {
		if out[t] = rarityOf(counts); s.Docs > 0 {
			out[t] = rarity(float64(s.Docs), float64(s.Holds(terms[t])))
		}
	}
	return out
}

// rarityOf is how rare something is in the documents, by how often each has it.
func rarityOf(counts []float64) float64 {
	n := 0.0
	for _, c := range counts {
		if c > 0 {
			n++
		}
	}
	return rarity(float64(len(counts)), n)
}

// rarity is the weight of a word that n of so many documents have, or of more than are counted yet.
func rarity(docs, n float64) float64 { return math.Log(1 + max(0.5, docs-n+0.5)/(n+0.5)) }

func bm25(tf [][]float64, width, idf []float64) []float64 {
	out := make([]float64, len(width))
	for t, counts := range tf {
		addBM25(out, counts, width, idf[t])
	}
	return out
}

// addBM25 adds what one term is worth.
//
//go:noinline
func addBM25(out, counts, width []float64, idf float64) {
	for i, f := range counts {
		if f > 0 {
			out[i] += idf * f * (bm25K1 + 1) / (f + bm25K1*(1-bm25B+bm25B*width[i]))
		}
	}
}

// covers finds the share of the query that stands in each document, and within two neighbours.
func (m *match) covers(tf [][]float64) {
	n := len(m.x.docs)
	m.cover, m.own, m.mere = make([]float64, n), make([]float64, n), make([]float64, n)
	all, around := 0.0, make([]float64, n)
	for t := range tf {
		all += m.idf[t]
		for i, c := range m.x.slide(around, tf[t], 2) {
			if c > 0 {
				m.cover[i] += m.idf[t]
			}
			if tf[t][i] > 0 && (m.loose == nil || !m.loose[i].has(t)) {
				m.own[i] += m.idf[t]
			}
		}
	}
	asked := make([]float64, len(tf))
	for i, ids := range m.x.asked {
		if len(ids) == 0 {
			continue
		}
		clear(asked)
		for _, id := range ids {
			if t := m.at[id]; t > 0 {
				asked[t-1]++
			}
		}
		for t, count := range asked {
			if count > 0 && tf[t][i] <= count {
				m.mere[i] += m.idf[t]
			}
		}
	}
	all = max(all, 1e-9)
	for i := range n {
		m.cover[i], m.own[i], m.mere[i] = m.cover[i]/all, m.own[i]/all, m.mere[i]/all
	}
}

// sums adds up a figure by group; spread gives each document that of its group.
func (x *Index) sums(v []float64) []float64 { return x.sumInto(make([]float64, x.groups()), v) }

// sumInto is sums into memory for as many groups as there are.
func (x *Index) sumInto(out, v []float64) []float64 {
	clear(out)
	for i, g := range x.group {
		out[g] += v[i]
	}
	return out
}

func (x *Index) groups() (n int) {
	for _, g := range x.group {
		n = max(n, int(g)+1)
	}
	return n
}

func (x *Index) spread(v []float64) []float64 {
	out := make([]float64, len(x.docs))
	for i, g := range x.group {
		out[i] = v[g]
	}
	return out
}

func (x *Index) groupMax(v []float64) []float64 {
	var most []float64
	for i, g := range x.group {
		for int(g) >= len(most) {
			most = append(most, 0)
		}
		most[g] = max(most[g], v[i])
	}
	return x.spread(most)
}

// questions gives each document what the one before it asked of the query. Among people without names, whose answers
// are not told by who speaks, one that only asks back is none.
func (m *match) questions(terms []string) {
	m.asked = make([]float64, len(m.x.docs))
	want := map[int32]float64{}
	for t, term := range terms {
		if id, ok := m.x.vocab[term]; ok {
			want[id] = m.idf[t]
		}
	}
	for i := range m.x.docs {
		if !m.x.near(i, i-1) {
			continue
		}
		asked := m.x.asked[i-1]
		for k, id := range asked {
			if worth := want[id]; worth > 0 && !slices.Contains(asked[:k], id) {
				m.asked[i] += worth
			}
		}
		if d := m.x.docs[i]; m.asked[i] > 0 && d.Speaker == "" && strings.TrimSpace(claims(d.Text)) == "" {
			m.asked[i] = 0
		}
	}
}

// dates holds the time of each document against the date that the query names.
func (m *match) dates() {
	m.when = make([]float64, len(m.x.docs))
	if m.q.month == 0 && m.q.year == 0 {
		return
	}
	for i, d := range m.x.docs {
		switch {
		case m.q.month == 0:
			if d.At.Year() == m.q.year {
				m.when[i] = 0.3
			}
		case m.q.year != 0 && d.At.Year() != m.q.year && !(d.At.Year() == m.q.year+1 && m.q.month == 12):
		case d.At.Month() == m.q.month:
			m.when[i] = 1 + m.dayFits(d.At.Day())
		case m.q.day > 20 && d.At.Month() == m.q.month%12+1 && d.At.Day() < 8: // told a few days later
			m.when[i] = 0.5
		}
	}
}

// dayFits: what happened on a day is told on that day or soon after.
func (m *match) dayFits(day int) float64 {
	late := day - m.q.day
	switch {
	case m.q.day == 0:
		return 0
	case late >= 0 && late <= 2:
		return 1
	case late > 0 && late < 10:
		return 0.3
	}
	return -0.3
}

// scale divides by the largest.
func scale(v []float64) {
	most := 0.0
	for _, f := range v {
		most = max(most, f)
	}
	if most > 0 {
		for i := range v {
			v[i] /= most
		}
	}
}

// wordsOf returns terms as they are written.
func (x *Index) wordsOf(ids []int32) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = x.word[id]
	}
	return out
}
