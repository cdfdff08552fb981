package recall

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/memory"
)

// Index is some documents made ready to be searched again and again: a conversation, or what an index of
// the host found with its neighbours. Searches of it may run at once, until one makes another [Index.With] of it.
type Index struct {
	docs  []Doc
	stem  *Stemmer
	vocab map[string]int32
	word  []string        // of each term
	long  []string        // terms of several words, which may hold a name
	names map[string]bool // words of the speakers' names

	terms [][]int32 // of each document, in order
	asked [][]int32 // those in its questions
	text  []string  // its words for n-grams, see gramMark
	traits
	read  []text  // what reading each gave, for an index of more: see With
	run   []int32 // documents of one run are neighbours by their index
	group []int32 // 0 and up
}

// traits are what the rules of talk look at, a value for each document.
type traits struct {
	self   []float64 // how much it says of who speaks, 0 to 1
	asks   []bool    // it ends with a question
	fresh  []float64 // share of words that were not said before
	time   []bool    // it names a time
	number []bool
	place  []bool
	proper []bool // it names somebody or something
	quote  []bool
}

// text is what reading one gives.
type text struct {
	terms, asked []int32
	surveyed
}

// New makes documents ready, which are put in the order of their position. A nil stemmer is one of its own.
func New(docs []Doc, stem *Stemmer) *Index {
	if stem == nil {
		stem = &Stemmer{}
	}
	return build(docs, &Index{stem: stem})
}

// With is New of other documents. Those whose id and text are the same here are not read again, which is most of
// the work, unless other speakers have names, since those are no words. What it took from x grows with it: x is not to be
// asked any more.
func (x *Index) With(docs []Doc) *Index {
	if slices.Equal(x.docs, docs) {
		return x
	}
	return build(docs, x)
}

func build(docs []Doc, old *Index) *Index {
	stem := old.stem
	x := &Index{read: make([]text, len(docs)), docs: slices.Clone(docs), stem: stem, vocab: old.vocab, word: old.word, long: old.long, names: map[string]bool{}}
	x.grow(len(docs))
	if x.vocab == nil {
		size := 0
		for _, d := range docs {
			size += len(d.Text)
		}
		x.vocab = make(map[string]int32, size/perTerm)
	}
	if byPos := func(a, b Doc) int { return cmp.Compare(a.Pos, b.Pos) }; !slices.IsSortedFunc(x.docs, byPos) {
		slices.SortStableFunc(x.docs, byPos)
	}
	for _, d := range x.docs {
		for _, n := range strings.Fields(strings.ToLower(d.Speaker)) {
			x.names[n] = true
		}
	}
	same := maps.Equal(x.names, old.names)
	groups := map[int64]int32{}
	seen := make([]bool, 0, 16*len(docs)) // by term
	var run int32
	var buf []string
	next := 0 // of the old ones
	for i, d := range x.docs {
		g, ok := groups[d.Group]
		if !ok {
			g = int32(len(groups))
			groups[d.Group] = g
		}
		if i > 0 && (g != x.group[i-1] || d.Pos != x.docs[i-1].Pos+1) {
			run++
		}
		x.group, x.run = append(x.group, g), append(x.run, run)
		t := &x.read[i]
		if at := old.at(d.ID, next); at >= 0 {
			*t, next = old.read[at], at+1
		}
		if t.terms == nil || old.docs[next-1].Text != d.Text || !same {
			*t, buf = x.readText(d.Text, buf)
		}
		seen = x.add(d, t, seen)
	}
	return x
}

// Docs returns the documents, in the order that hits count them.
func (x *Index) Docs() []Doc { return x.docs }

// at returns where a document stands, from a place on, or -1.
func (x *Index) at(id string, from int) int {
	for i := from; i < len(x.docs); i++ {
		if x.docs[i].ID == id {
			return i
		}
	}
	return -1
}

// readText reads a text. buf is memory for its words.
func (x *Index) readText(s string, buf []string) (text, []string) {
	buf = memory.AppendTerms(buf[:0], s)
	t := text{terms: x.ids(x.stem.stemmed(buf)), surveyed: survey(s, x.names)}
	if t.questions != "" {
		t.asked = x.ids(x.stem.Terms(t.questions))
	}
	return t, buf
}

// perTerm is about how many bytes of some texts bring a new term.
const perTerm = 12

// grow makes room for so many documents.
func (x *Index) grow(n int) {
	x.terms, x.asked, x.text = make([][]int32, 0, n), make([][]int32, 0, n), make([]string, 0, n)
	x.run, x.group = make([]int32, 0, n), make([]int32, 0, n)
	x.self, x.fresh = make([]float64, 0, n), make([]float64, 0, n)
	for _, v := range []*[]bool{&x.asks, &x.time, &x.number, &x.place, &x.proper, &x.quote} {
		*v = make([]bool, 0, n)
	}
}

// add takes up a document. seen is the terms of those before it.
func (x *Index) add(d Doc, s *text, seen []bool) []bool {
	seen = append(seen, make([]bool, len(x.word)-len(seen))...)
	fresh := 0
	for _, id := range s.terms {
		if !seen[id] {
			seen[id] = true
			fresh++
		}
	}
	x.terms = append(x.terms, s.terms)
	x.asked = append(x.asked, s.asked)
	x.text = append(x.text, s.grams)
	x.self = append(x.self, min(1, float64(s.self)/4))
	x.asks = append(x.asks, strings.HasSuffix(strings.TrimSpace(d.Text), "?"))
	x.fresh = append(x.fresh, float64(fresh)/float64(1+len(s.terms)))
	x.time, x.number = append(x.time, s.time), append(x.number, s.number)
	x.place, x.proper, x.quote = append(x.place, s.place), append(x.proper, s.proper), append(x.quote, s.quote)
	return seen
}

func (x *Index) ids(terms []string) []int32 {
	out := make([]int32, len(terms))
	for i, t := range terms {
		id, ok := x.vocab[t]
		if !ok {
			id = int32(len(x.word))
			x.vocab[t], x.word = id, append(x.word, t)
			if compound(t) {
				x.long = append(x.long, t)
			}
		}
		out[i] = id
	}
	return out
}

// near reports whether document j stands beside i without a gap.
func (x *Index) near(i, j int) bool { return j >= 0 && j < len(x.docs) && x.run[i] == x.run[j] }

// Words that tell something stand between two marks in lower case: n-grams are taken within a word and its marks.
const (
	gramMark    = 1      // in no word
	blank       = "\x01" // n-grams of no words
	maxGramWord = 40
	gramSize    = 4
)

// gram is four bytes of a word and its marks.
func gram(s string) uint32 {
	return uint32(s[0])<<24 | uint32(s[1])<<16 | uint32(s[2])<<8 | uint32(s[3])
}

// gramBit is which of 4,096 bits stands for a gram.
func gramBit(g uint32) uint32 { return g * 2654435761 >> 20 }

// word is one of a text, as it stands there.
type word struct {
	text  string
	first bool // of a sentence
}

// words yields the words of a text: letters and digits, up to an apostrophe.
func words(text string) func(yield func(word) bool) {
	return func(yield func(word) bool) {
		first := true
		for i := 0; i < len(text); {
			r, n, in := inWord(text[i:])
			if !in {
				first = first || r == '.' || r == '!' || r == '?' || r == '\n'
				i += n
				continue
			}
			end := i + n
			for end < len(text) {
				if wordBytes[text[end]] {
					end++
					continue
				}
				_, n, in := inWord(text[end:])
				if !in {
					break
				}
				end += n
			}
			if !yield(word{text: text[i:end], first: first}) {
				return
			}
			first = false
			if i = end; strings.HasPrefix(text[i:], "'") || strings.HasPrefix(text[i:], "’") { // 's, 've, 't
				for i < len(text) {
					r, n := utf8.DecodeRuneInString(text[i:])
					if r != '\'' && r != '’' && !unicode.IsLetter(r) {
						break
					}
					i += n
				}
			}
		}
	}
}

// inWord returns the first character of a text, its length and whether words are made of it.
func inWord(text string) (r rune, n int, in bool) {
	if c := text[0]; c < utf8.RuneSelf {
		return rune(c), 1, wordBytes[c]
	}
	r, n = utf8.DecodeRuneInString(text)
	return r, n, unicode.IsLetter(r) || unicode.IsDigit(r)
}

// wordBytes are the letters and digits of ASCII.
var wordBytes = func() (in [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") {
		in[c] = true
	}
	return in
}()
