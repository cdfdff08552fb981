package recall

import (
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"

	"github.com/tidemark-ai/tidemark/internal/lexicon"
	"github.com/tidemark-ai/tidemark/memory"
)

// roots lead from irregular forms, and from words that people use for the same, to one of them.
var roots = rootsOf(`go went gone goes|buy bought|make made|take took taken|see saw seen|come came|give gave given|find found|
	think thought|tell told|become became|leave left|feel felt|bring brought|begin began begun start|keep kept|hold held|
	write wrote written|stand stood|hear heard|mean meant|meet met|run ran|pay paid|sit sat|speak spoke spoken|lie lay lain|
	lead led|grow grew grown|lose lost|fall fell fallen|send sent|build built|draw drew drawn|break broke broken|spend spent|
	rise rose risen|drive drove driven|wear wore worn|choose chose chosen|teach taught|eat ate eaten|sing sang sung|
	swim swam swum|fly flew flown|ride rode ridden|sell sold|catch caught|fight fought|throw threw thrown|know knew known|
	say said|sleep slept|shoot shot|steal stole stolen|hide hid hidden|drink drank drunk|forget forgot forgotten|
	understand understood|wake woke woken|child children kid|person people|man men|woman women|foot feet|mother mom mum|
	father dad|photo photograph picture pic image|bicycle bike|television tv|birthday bday|grandmother grandma|
	grandfather grandpa|husband hubby|vacation holiday|movie film|job work|delete remove|error failure fault|folder directory`)

var setOf = lexicon.Set

func rootsOf(lines string) map[string]string {
	out := map[string]string{}
	for line := range strings.SplitSeq(lines, "|") {
		forms := strings.Fields(line)
		for _, w := range forms[1:] {
			out[w] = english.Stem(forms[0], false)
		}
	}
	return out
}

// Stemmer turns words into what they are found by. It remembers, since a log says the same words again
// and again. Its zero value is ready; it may be used at once.
type Stemmer struct {
	mu    sync.Mutex // guards known
	known map[string]string
}

// maxKnown bounds the words that a Stemmer remembers.
const maxKnown = 10_000

// Terms returns what a text is found by, in order: identifiers whole and in parts, words by their stem,
// without those that tell nothing. The same function feeds an index and reads the query.
func (s *Stemmer) Terms(text string) []string { return s.stemmed(memory.Terms(text)) }

// stemmed puts what words are found by in their place.
func (s *Stemmer) stemmed(terms []string) []string {
	out := terms[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range terms {
		if st := s.root(w); st != "" {
			out = append(out, st)
		}
	}
	return out
}

// Row returns the terms of a text as an index in a database holds them, with spaces between. A query of one
// character of a script without spaces finds the pairs that begin with it there, see [Quote].
func (s *Stemmer) Row(text string) string {
	return strings.Join(append(s.Terms(text), memory.Ends(text)...), " ")
}

// Quote writes a term as a query of FTS5.
func Quote(term string) string {
	quoted := `"` + strings.ReplaceAll(term, `"`, ``) + `"`
	if memory.Lone(term) {
		return quoted + " *"
	}
	return quoted
}

// stem returns what a word is found by, empty for one that tells nothing.
func (s *Stemmer) stem(w string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.root(w)
}

// root is stem under the lock: a text takes it once.
func (s *Stemmer) root(w string) string {
	if !letters(w) {
		if len(w) <= maxShortStop && lexicon.Stops[w] {
			return ""
		}
		return w
	}
	if st, ok := s.known[w]; ok {
		return st
	}
	st := ""
	if !lexicon.Stops[w] {
		var ok bool
		if st, ok = roots[w]; !ok {
			st = english.Stem(w, false)
			if r, ok := roots[st]; ok {
				st = r
			}
		}
	}
	if s.known == nil || len(s.known) >= maxKnown {
		s.known = map[string]string{}
	}
	s.known[w] = st
	return st
}

// maxShortStop is the length of words that letters leaves out.
const maxShortStop = 2

// letters reports a word of plain lower-case letters: others are names, numbers, code or of a language
// whose words are left as they are.
func letters(w string) bool {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return len(w) > 2
}
