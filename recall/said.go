package recall

import (
	"math/bits"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/lexicon"
)

// wishes are terms by which somebody asks for what was said, or for how much: an answer need not have them.
var wishes = setOf(`tell know say find look search mention recal rememb remind pleas exact much mani often long`)

// claims returns a text without its questions: what was asked is no answer.
func claims(text string) string {
	if !strings.ContainsAny(text, "?？") {
		return text
	}
	var b strings.Builder
	for s := range lexicon.Sentences(text) {
		if t := strings.TrimSpace(s); !strings.HasSuffix(t, "?") && !strings.HasSuffix(t, "？") {
			b.WriteString(s)
		}
	}
	return b.String()
}

// heard is what a verdict hears in a document: it looks at the same ones again and again.
type heard struct {
	looked bool
	states terms // of the query
}

// terms is some terms of a query, which has at most maxTerms: a bit each.
type terms uint64

func (s terms) has(t int) bool { return s>>t&1 == 1 }
func (s terms) count() int     { return bits.OnesCount64(uint64(s)) }

// states returns which terms of the query a document states.
func (m *match) states(doc int) terms {
	h := &m.heard[doc]
	if h.looked {
		return h.states
	}
	h.looked = true
	x := m.x
	add := func(id int32) {
		if t := m.at[id]; t > 0 && (m.loose == nil || !m.loose[doc].has(int(t-1))) {
			h.states |= 1 << (t - 1)
		}
	}
	if text := claims(x.docs[doc].Text); text != x.docs[doc].Text {
		for _, t := range x.stem.Terms(text) {
			if id, ok := x.vocab[t]; ok {
				add(id)
			}
		}
		return h.states
	}
	for _, id := range x.terms[doc] {
		add(id)
	}
	return h.states
}

// said returns which terms of the query a document and two neighbours state.
func (m *match) said(doc int) (held terms) {
	if m.heard == nil {
		m.heard = make([]heard, len(m.x.docs))
	}
	for i := doc - 2; i <= doc+2; i++ {
		if m.x.near(doc, i) {
			held |= m.states(i)
		}
	}
	return held
}

// sure reports whether what is stated of the query answers it: enough of it, among that all that the query names by an
// identifier and its rarest word, without which a text is about something else, and nothing that may stand together by
// chance. Among so many documents common words meet, so several must be as rare together as a word that one document
// has, and one alone as a word that those have that are judged. Some terms may be left out of the query.
func (m *match) sure(held, without terms) bool {
	share, all, top, rarest := 0.0, 0.0, 0.0, true
	named, rare := true, m.docs <= judged
	for t, term := range m.terms {
		worth := m.idf[t]
		if without.has(t) || wishes[term] && !held.has(t) {
			continue
		}
		all += worth
		if held.has(t) {
			share += worth
		}
		switch {
		case worth > top+1e-9:
			top, rarest = worth, held.has(t)
		case worth > top-1e-9:
			rarest = rarest && held.has(t)
		}
		switch {
		case m.q.exact(term):
			named, rare = named && held.has(t), true
		case term[0] >= '0' && term[0] <= '9': // room 4 is not room 3
			named = named && held.has(t)
		}
	}
	least := 1.0
	if held.count() == 1 {
		least = judged
	}
	return share > 0 && share >= confidentFrom*all && named && rarest && (rare || share >= rarity(float64(m.docs), least))
}
