package recall

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/memory"
)

// maxTerms bounds the words of a query, and maxOrder the places of these.
const (
	maxTerms = 64
	maxOrder = 256
)

// Query is what somebody looks for, read once.
type Query struct {
	Text  string
	Terms []string // each once
	order []string // the same in the order of the text, as often as they stand there
	words []string // in lower case, as they stand there
	built []string // terms that are three words or more written as one, such as ReviewContextBuilder

	when, where, who, many, title bool // what is asked for
	month                         time.Month
	day, year                     int
}

// Parse reads a query.
func Parse(text string, stem *Stemmer) Query {
	if stem == nil {
		stem = &Stemmer{}
	}
	q := Query{Text: text}
	q.order = stem.Terms(text)
	q.order = q.order[:min(len(q.order), maxOrder)]
	for _, t := range q.order {
		if len(q.Terms) < maxTerms && !slices.Contains(q.Terms, t) {
			q.Terms = append(q.Terms, t)
		}
	}
	for w := range words(text) {
		low := strings.ToLower(w.text)
		q.words = append(q.words, low)
		if built(w.text) {
			q.built = append(q.built, stem.stem(low))
		}
	}
	q.kind()
	q.date()
	return q
}

// built reports a word of code: two capitals or more within it stand behind small letters.
func built(w string) bool {
	humps := 0
	for i := 1; i < len(w); i++ {
		if w[i] >= 'A' && w[i] <= 'Z' && w[i-1] >= 'a' && w[i-1] <= 'z' {
			humps++
		}
	}
	return humps > 1
}

// exact reports a term of the query that names one thing.
func (q Query) exact(term string) bool { return identifier(term) || slices.Contains(q.built, term) }

// Asks returns the term of a query that a term of a text answers, empty for none.
func (q Query) Asks(term string) string {
	for _, t := range q.Terms {
		if t == term || memory.Lone(t) && strings.Contains(term, t) {
			return t
		}
	}
	return ""
}

// kind tells what sort of thing is asked for, by the first words.
func (q *Query) kind() {
	first, second := q.word(0), q.word(1)
	which := first == "what" || first == "which"
	q.when = first == "when" || which && oneOf(second, "date", "day", "month", "year", "time") || first == "how" && second == "long"
	q.where = first == "where" || which && oneOf(second, "country", "city", "state", "place", "area")
	q.who = oneOf(first, "who", "whom", "whose")
	q.many = first == "how" && oneOf(second, "many", "often", "much")
	q.title = slices.ContainsFunc(q.words, func(w string) bool {
		return oneOf(w, "book", "movie", "song", "name", "names", "title", "called", "band", "brand", "game")
	})
}

func (q *Query) word(i int) string {
	if i < len(q.words) {
		return q.words[i]
	}
	return ""
}

func oneOf(w string, of ...string) bool { return slices.Contains(of, w) }

// date finds a month, a day and a year in a query. "may" is a month beside a number or behind a word that
// months follow.
func (q *Query) date() {
	for i, w := range q.words {
		if y := year(w); y > 0 {
			q.year = y
			continue
		}
		m := monthOf(w)
		if m == 0 || m == time.May && !oneOf(q.before(i), "in", "of", "on") && dayOf(q.before(i)) == 0 && dayOf(q.word(i+1)) == 0 {
			continue
		}
		q.month = m
		q.day = max(dayOf(q.before(i)), dayOf(q.word(i+1)))
	}
}

func (q *Query) before(i int) string {
	if i == 0 {
		return ""
	}
	return q.words[i-1]
}

func monthOf(w string) time.Month {
	for m := time.January; m <= time.December; m++ {
		if w == strings.ToLower(m.String()) {
			return m
		}
	}
	return 0
}

// dayOf reads "3" and "3rd".
func dayOf(w string) int {
	n, err := strconv.Atoi(strings.TrimRight(w, "sthndr"))
	if err != nil || n < 1 || n > 31 {
		return 0
	}
	return n
}
