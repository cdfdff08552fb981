// Package recall finds again what was said: it ranks documents, mostly messages, against a query by rules that can each
// be explained, and says how good the best is, so that a caller can tell a find from a guess. It stores nothing, calls no
// model, and does not look up candidates among millions; the index of the session does. Begin with rules.go, then
// verdict.go.
//
// What is named exactly comes first; a question in other words than the answer finds it where words, neighbours and the
// course of the talk allow; the same documents and query give the same order.
package recall

import (
	"cmp"
	"slices"
	"time"
)

// Doc is something that can be found.
type Doc struct {
	ID      string
	Pos     int64 // in its log: two documents are neighbours when they follow one another by it
	Group   int64 // the sitting that it is of, such as a day; neighbours are of one
	At      time.Time
	Speaker string // the name of who said it; empty when there is none
	Text    string
}

// Hit is a document that answers a query.
type Hit struct {
	Doc   int     // index of the document
	Score float64 // sum of the rules, comparable within one search
	// Normalized is between 0 and 1 and comparable between searches: the score as a share of what one can have, and
	// less where none of the best has all that was asked for. Within a search it has the order of the scores.
	Normalized float64
	// Coverage is the share of what the query asks for, weighted by rarity, that the document holds.
	Coverage float64
	Around   float64 // the same of it and two neighbours at either side

	by *match // the query that found it, held against the documents
}

// Verdict is how far the hits of a search can be trusted.
type Verdict string

// The verdicts.
const (
	Confident Verdict = "confident"
	Weak      Verdict = "weak"    // something of the query is there
	Nothing   Verdict = "nothing" // nothing that tells this query from others
)

// Stats are figures of a corpus that is larger than the documents at hand: how rare a word is there. The
// zero value takes them from the documents.
type Stats struct {
	Docs  int
	Holds func(term string) int // how many documents have a term
}

// Search ranks the documents against a query, best first, without those that nothing speaks for.
func (x *Index) Search(q Query, s Stats) []Hit { return x.ranked(q, s, rules) }

// SearchPlain ranks without the rules that hold for talk between people: what those are worth, and whether
// they do harm elsewhere, can be measured by it.
func (x *Index) SearchPlain(q Query, s Stats) []Hit {
	return x.ranked(q, s, slices.DeleteFunc(slices.Clone(rules), rule.talk))
}

func (x *Index) ranked(q Query, s Stats, by []rule) []Hit {
	m := x.match(q, s)
	score := make([]float64, len(x.docs))
	for _, r := range by {
		for i, v := range r.of(m) {
			score[i] += r.weight * v
		}
	}
	var hits []Hit
	for i := range x.docs {
		if len(x.terms[i]) == 0 && x.text[i] == blank { // nothing to find, such as a call that stands elsewhere
			continue
		}
		if m.bare(i) {
			continue
		}
		if m.best[i] > 0 || m.day[i] > 0 || m.when[i] > 0 {
			hits = append(hits, Hit{Doc: i, Score: score[i], Coverage: m.own[i], Around: m.cover[i], by: m})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(x.docs[b.Doc].Pos, x.docs[a.Doc].Pos))
	})
	most, held := most(), 0.0
	for _, h := range hits[:min(len(hits), judged)] {
		held = max(held, h.Around)
	}
	for i := range hits {
		hits[i].Normalized = min(1, max(0, hits[i].Score/most)) * (0.5 + 0.5*held)
	}
	return hits
}

// someGrams is how much of the letters of the best a document has that has a word of the query in another form; less is
// what any long text has.
const someGrams = 0.5

// bare reports a document that has nothing of the query, in no form, and answers no question that has: only what
// stands beside it is a find. People who are named go on with what others said, and need no word of it.
func (m *match) bare(doc int) bool {
	return m.own[doc] == 0 && m.grams[doc] < someGrams && m.asked[doc] == 0 && m.when[doc] <= 0 && m.x.docs[doc].Speaker == ""
}
