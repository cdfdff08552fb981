package recall

import (
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/lexicon"
)

// A question holds the words of what it asks for, and so does the answer that knows nothing of it. Neither says
// that it is so: what a verdict rests on leaves both out.

// auxiliaries stand near the beginning of a question that lost its mark.
var auxiliaries = setOf(`is are was were do does did can could will would should shall has have had may might`)

// subjects behind a question word make a statement: "what I want is".
var subjects = setOf(`i we you he she it they`)

// requests open a sentence that asks without a question mark.
var requests = []string{"tell me", "please tell", "remind me", "do you", "can you", "could you", "would you", "any idea", "recall ", "search for ", "look up ", "look for "}

// wishes are terms by which somebody asks for what was said, or for how much: an answer need not have them.
var wishes = setOf(`tell know say find look search mention recal rememb remind pleas exact much mani often long`)

// denials are in an answer that found nothing, or goes to look.
var denials = []string{"find nothing", "found nothing", "nothing about", "nothing on ", "nothing was found", "no record", "no mention", "no memory", "no information", "no trace", "no idea",
	"not find", "n't find", "cannot find", "unable to find", "not know", "n't know", "not recall", "n't recall", "not remember", "n't remember", "n't have any", "not have any",
	"not aware", "not sure", "never mentioned", "not mentioned", "n't mentioned", "not been mentioned", "n't been mentioned", "not come up", "n't come up", "n't see any", "not see any", "not appear", "n't appear",
	"let me check", "let me look", "let me see", "let me search", "i'll check", "i'll look", "i'll search", "i searched", "i've searched", "i looked", "i've looked", "looking for", "searching for",
	"finde nichts", "nichts gefunden", "weiß nicht", "weiß ich nicht"}

// asking reports a sentence that asks.
func asking(sentence string) bool {
	s := strings.TrimSpace(sentence)
	if s == "" || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") {
		return s != ""
	}
	if strings.IndexByte("acdhlprstw", s[0]|0x20) < 0 { // with which all begin that follow
		return false
	}
	low := strings.ToLower(s[:min(len(s), 60)])
	if slices.ContainsFunc(requests, func(r string) bool { return strings.HasPrefix(low, r) }) {
		return true
	}
	if !strings.HasPrefix(low, "w") && !strings.HasPrefix(low, "how") {
		return false
	}
	list := strings.Fields(low)
	if len(list) < 2 || !oneOf(list[0], "where", "who", "whose", "which", "what", "when", "how", "why") || subjects[list[1]] {
		return false
	}
	return slices.ContainsFunc(list[1:min(len(list), 4)], func(w string) bool { return auxiliaries[w] })
}

// denying reports a sentence that says that something is not known.
func denying(sentence string) bool {
	low := strings.ToLower(strings.ReplaceAll(sentence, "’", "'"))
	return slices.ContainsFunc(denials, func(d string) bool { return strings.Contains(low, d) })
}

// claims returns what a text states: without its questions and, behind a question, without what says that nothing
// is known of it.
func claims(text string, behind bool) string {
	var b strings.Builder
	whole := true
	for s := range lexicon.Sentences(text) {
		if asking(s) || behind && denying(s) {
			whole = false
			continue
		}
		b.WriteString(s)
	}
	if whole {
		return text
	}
	return b.String()
}

// beside is how far a question is from an answer to it: a call and its result may stand between.
const answerBehind = 4

// heard is what a verdict hears in a document: it looks at the same ones again and again.
type heard struct {
	read, asks bool   // asks: one of its questions has words of the query
	states     []bool // which terms of the query it states; nil when that was not looked at
}

// behind reports whether a document stands behind a question that has words of the query.
func (m *match) behind(doc int) bool {
	for i := doc; i >= doc-answerBehind && m.x.near(doc, i); i-- {
		h := &m.heard[i]
		if !h.read {
			h.read, h.asks = true, m.asksOf(m.x.docs[i].Text)
		}
		if h.asks {
			return true
		}
	}
	return false
}

func (m *match) asksOf(text string) bool {
	for s := range lexicon.Sentences(text) {
		if !asking(s) {
			continue
		}
		for _, t := range m.x.stem.Terms(s) {
			if id, ok := m.x.vocab[t]; ok && m.at[id] > 0 {
				return true
			}
		}
	}
	return false
}

// states returns which terms of the query a document states.
func (m *match) states(doc int) []bool {
	h := &m.heard[doc]
	if h.states != nil {
		return h.states
	}
	x := m.x
	h.states = make([]bool, len(m.idf))
	if text := claims(x.docs[doc].Text, m.behind(doc)); text != x.docs[doc].Text {
		for _, t := range x.stem.Terms(text) {
			if id, ok := x.vocab[t]; ok && m.at[id] > 0 {
				h.states[m.at[id]-1] = true
			}
		}
		return h.states
	}
	for _, id := range x.terms[doc] {
		if t := m.at[id]; t > 0 {
			h.states[t-1] = true
		}
	}
	return h.states
}

// said returns the share of the query that a document and two neighbours state, whether all that the query names by
// an identifier is among it, and its rarest word, without which a text is about something else; and whether it is rare:
// among so many documents common words meet by chance, so several must be as rare together as a word that one document
// has, and one alone as a word that those have that are judged.
func (m *match) said(doc, docs int) (share float64, named, rare bool) {
	if m.heard == nil {
		m.heard = make([]heard, len(m.x.docs))
	}
	held, some := make([]bool, len(m.idf)), 0
	for i := doc - 2; i <= doc+2; i++ {
		if !m.x.near(doc, i) {
			continue
		}
		for t, states := range m.states(i) {
			if states && !held[t] {
				held[t] = true
				some++
			}
		}
	}
	all, top, rarest := 0.0, 0.0, true
	named, rare = true, docs <= judged
	for t, term := range m.terms {
		worth := m.idf[t]
		if wishes[term] && !held[t] {
			continue
		}
		all += worth
		if held[t] {
			share += worth
		}
		if worth > top {
			top, rarest = worth, held[t]
		}
		if identifier(term) {
			named, rare = named && held[t], true
		}
	}
	least := 1.0
	if some == 1 {
		least = judged
	}
	return share / max(all, 1e-9), named && rarest, rare || share >= rarity(float64(docs), least)
}
