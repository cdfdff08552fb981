package recall

import (
	"math/bits"
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

// requests open a sentence that asks without a question mark. What somebody says they need is asked for where it is one
// thing that is known: "the password", not "a ticket".
var requests = []string{"tell me", "remind me", "show me", "send me", "give me", "get me", "do you", "can you", "could you", "would you", "will you", "any idea",
	"recall ", "search for ", "search the ", "search my ", "look up ", "look for ", "find ", "help me find", "fetch ", "check whether", "check if",
	"i need the ", "i need your ", "i need to know", "i need to find", "i want the ", "i want to know", "i'd like to know", "i would like to know", "i wonder", "we need the ", "i'm looking for", "i am looking for"}

// courtesies stand before a request.
var courtesies = setOf(`please and so also now then ok okay hi hey hello but well again`)

// wishes are terms by which somebody asks for what was said, or for how much: an answer need not have them.
var wishes = setOf(`tell know say find look search mention recal rememb remind pleas exact much mani often long`)

// Behind a question, a sentence with a negation and a word of knowing, or one of having of the one who speaks, denies;
// one of looking of theirs promises.
var (
	negations = setOf(`not no never nothing none cannot unable without nicht nichts kein keine keinen`)
	knowing   = setOf(`know known find found recall remember aware sure record records mention mentioned memory information trace idea appear about gefunden finde weiß`)
	having    = setOf(`have had got see seen access`)
	looking   = setOf(`look looking looked search searching searched`)
	intending = setOf(`will let can going`)
	seeking   = setOf(`check find ask see`)
)

// hollow are terms that an answer has which only takes a question up: it is said with them that somebody looks, has
// nothing, or has understood.
var hollow = setOf(`sure ok okay cours certain absolut happi glad gladli sorri unfortun afraid pleas thank welcom hello note understood understand know tell say ask question
	answer request look find search check see tri help need want send give share bring provid let moment minut second one someth anyth detail right away now yet still
	soon back first howev unabl cannot possibl great have get recal rememb mention record inform ll` +
	" noth") //nolint:misspell // a stem

// asking reports a sentence that asks.
func asking(sentence string) bool {
	s := strings.TrimSpace(sentence)
	if s == "" || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") {
		return s != ""
	}
	low := strings.ToLower(strings.ReplaceAll(s[:min(len(s), 60)], "’", "'"))
	for {
		first, rest, _ := strings.Cut(low, " ")
		if !courtesies[strings.TrimRight(first, ",!")] {
			break
		}
		low = rest
	}
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

// denying reports a sentence that says that something is not known, or is looked for.
func denying(sentence string) bool {
	low := strings.NewReplacer("’", "'", "n't", " not", "'ll", " will").Replace(strings.ToLower(sentence))
	var not, knows, own, has, looks, will, seeks bool
	for w := range words(low) {
		not, knows, has = not || negations[w.text], knows || knowing[w.text], has || having[w.text]
		own = own || oneOf(w.text, "i", "we", "me")
		looks, will, seeks = looks || looking[w.text], will || intending[w.text], seeks || seeking[w.text]
	}
	return not && (knows || own && has || strings.Contains(low, "come up")) || own && (looks || will && seeks)
}

// claims returns what a text states: without its questions and, behind a question, without what says that nothing is
// known of it, and without what has no word of its own beside those that were asked. A line that ends without a mark is
// the head of what follows it.
func (x *Index) claims(text string, asked []string) string {
	var b strings.Builder
	behind := len(asked) > 0
	head, whole := "", true
	for s := range lexicon.Sentences(text) {
		switch {
		case asking(s) || behind && denying(s):
			head, whole = "", false
		case behind && !x.adds(s, asked):
			if head += s; strings.ContainsAny(s[max(0, len(strings.TrimRight(s, " \r\n\t\"')*_”’"))-1):], ".!?") {
				head = ""
			}
			whole = false
		default:
			b.WriteString(head)
			b.WriteString(s)
			head = ""
		}
	}
	if whole {
		return text
	}
	return b.String()
}

// adds reports whether a sentence has a word that was not asked and is not hollow.
func (x *Index) adds(sentence string, asked []string) bool {
	return slices.ContainsFunc(x.stem.Terms(sentence), func(t string) bool { return !hollow[t] && !slices.Contains(asked, t) })
}

// answerBehind is how far a question is from an answer to it: a call and its result may stand between.
const answerBehind = 4

// heard is what a verdict hears in a document: it looks at the same ones again and again.
type heard struct {
	read   bool
	asks   []string // terms of its questions, if they have words of the query
	looked bool
	states terms // of the query
}

// behind returns the terms of the questions that a document stands behind, of those that have words of the query.
func (m *match) behind(doc int) (asked []string) {
	for i := doc; i >= doc-answerBehind && m.x.near(doc, i); i-- {
		h := &m.heard[i]
		if !h.read {
			h.read, h.asks = true, m.asksOf(m.x.docs[i].Text)
		}
		asked = append(asked, h.asks...)
	}
	return asked
}

func (m *match) asksOf(text string) (all []string) {
	of := false
	for s := range lexicon.Sentences(text) {
		if !asking(s) {
			continue
		}
		for _, t := range m.x.stem.Terms(s) {
			all = append(all, t)
			id, ok := m.x.vocab[t]
			of = of || ok && m.at[id] > 0
		}
	}
	if !of {
		return nil
	}
	return all
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
	if text := x.claims(x.docs[doc].Text, m.behind(doc)); text != x.docs[doc].Text {
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
