package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/lexicon"
)

var (
	selfWords  = setOf(`i me my mine myself we us our`)
	timeWords  = setOf(`yesterday today tonight tomorrow last next ago since recently just monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december`)
	countWords = setOf(`one two three four five six seven eight nine ten twice once several couple first second third`)
	placeWords = setOf(`in at to from near visited visit around`)
)

// marks are what a word tells, in one look: it runs for each word of a text.
type marks uint8

const (
	stopMark marks = 1 << iota
	selfMark
	timeMark
	countMark
	placeMark
)

// marked are the marks of words.
var marked = func() map[string]marks {
	all := map[string]marks{}
	for i, set := range []map[string]bool{lexicon.Stops, selfWords, timeWords, countWords, placeWords} {
		for w := range set {
			all[w] |= 1 << i
		}
	}
	return all
}()

// surveyed is what one pass over a text finds for the rules of talk.
type surveyed struct {
	self                               int
	time, number, place, proper, quote bool
	questions                          string // its questions, joined
	grams                              string // see gramMark
}

func survey(text string, names map[string]bool) surveyed {
	s := surveyed{questions: questions(text), quote: strings.Count(text, `"`) > 1 || strings.ContainsRune(text, '“')}
	before := false // the word before says where
	grams := make([]byte, 0, len(text)+1)
	for w := range words(text) {
		at := len(grams)
		grams = appendLower(append(grams, gramMark), w.text)
		low := grams[at+1:]
		tells := marked[string(low)]
		if len(low) <= 1 || len(low) > maxGramWord || tells&stopMark != 0 || len(names) > 0 && names[string(low)] {
			grams = grams[:at] // low stays as it is until the next word
		}
		r := rune(w.text[0])
		if r >= utf8.RuneSelf {
			r, _ = utf8.DecodeRuneInString(w.text)
		}
		switch {
		case tells&selfMark != 0:
			s.self++
		case unicode.IsDigit(r):
			s.number = true
			s.time = s.time || year(string(low)) > 0
		case unicode.IsUpper(r) && !w.first && string(low) != "i":
			s.proper = true
			s.place = s.place || before
		}
		s.number = s.number || tells&countMark != 0
		s.time = s.time || tells&timeMark != 0
		if string(low) != "the" {
			before = tells&placeMark != 0
		}
	}
	s.grams = string(append(grams, gramMark))
	return s
}

// appendLower adds a word in lower case.
func appendLower(b []byte, w string) []byte {
	from := len(b)
	for i := range len(w) {
		c := w[i]
		if c >= utf8.RuneSelf {
			return append(b[:from], strings.ToLower(w)...)
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// questions returns the sentences of a text that end with a question mark.
func questions(text string) string {
	if !strings.Contains(text, "?") {
		return ""
	}
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexAny(text, ".!?\n")
		if end < 0 {
			break
		}
		if text[end] == '?' {
			b.WriteString(text[:end])
			b.WriteByte(' ')
		}
		text = text[end+1:]
	}
	return b.String()
}

// year returns the year that a word names, 0 for none.
func year(w string) int {
	if len(w) != 4 || (w[:2] != "19" && w[:2] != "20") || w[2] < '0' || w[2] > '9' || w[3] < '0' || w[3] > '9' {
		return 0
	}
	return int(w[0]-'0')*1000 + int(w[1]-'0')*100 + int(w[2]-'0')*10 + int(w[3]-'0')
}
