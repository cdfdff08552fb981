package provider

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxSentence  = 300    // bytes of one that is quoted
	maxSentences = 20_000 // that are looked at; a whole window holds fewer
)

// stopWords say nothing about what a sentence is about.
var stopWords = wordSet(`a about after again all also am an and any are as at be because been before but by can could did
do does done for from had has have he her here him his how i if in into is it its just let me more most my no not now of
on or other our out over please say said she should so some tell than that the their them then there these they this
those to told too up us use very was we were what when where which who why will with would you your`)

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// words returns the words of a text that carry meaning, in lower case, as their stems. Scripts
// that do not part words by spaces give one word a character.
func words(s string) []string {
	var out []string
	start := -1
	flush := func(end int) {
		if start < 0 {
			return
		}
		w := strings.ToLower(s[start:end])
		start = -1
		if stopWords[w] {
			return
		}
		if w = stem(w); len(w) > 1 {
			out = append(out, w)
		}
	}
	for i, r := range s {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			flush(i)
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if start < 0 {
				start = i
			}
		default:
			flush(i)
		}
	}
	flush(len(s))
	return out
}

// stems of words whose forms share no ending.
var stems = map[string]string{"decision": "decid", "chose": "choos", "chosen": "choos", "choice": "choos", "agreement": "agr", "bought": "buy", "told": "tell"}

// stem cuts the endings of plurals and verbs, so that decide, decides, decided and deciding are one.
func stem(w string) string {
	if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
		w = w[:len(w)-1]
	}
	if s, ok := stems[w]; ok {
		return s
	}
	for _, end := range [...]string{"ing", "ed"} {
		cut, ok := strings.CutSuffix(w, end)
		if !ok || len(cut) < 3 {
			continue
		}
		n := len(cut)
		if cut[n-1] == cut[n-2] && strings.IndexByte("bdgmnprt", cut[n-1]) >= 0 { // planned, preferred
			cut = cut[:n-1]
		}
		return strings.TrimSuffix(strings.TrimSuffix(cut, "e"), "i")
	}
	if n := len(w); n > 3 && (w[n-1] == 'e' || w[n-1] == 'y') {
		w = strings.TrimSuffix(w[:n-1], "e")
		w = strings.TrimSuffix(w, "i")
	}
	return w
}

// sentences parts a text at line ends and at . ! ? before a space; bullets lose their dash.
func sentences(s string) []string {
	var out []string
	add := func(t string) {
		t = strings.TrimSpace(t)
		for _, bullet := range [...]string{"- ", "* ", "• "} {
			t = strings.TrimPrefix(t, bullet)
		}
		if t = strings.TrimSpace(t); t != "" && len(out) < maxSentences {
			out = append(out, t)
		}
	}
	for line := range strings.Lines(s) {
		start := 0
		for i, r := range line {
			end := i + utf8.RuneLen(r)
			if r == '。' || r == '？' || r == '！' || (r == '.' || r == '!' || r == '?') && end < len(line) && line[end] == ' ' && !abbreviation(line[start:i]) {
				add(line[start:end])
				start = end
			}
		}
		add(line[start:])
	}
	return out
}

// abbreviation reports whether the dot behind s ends no sentence.
func abbreviation(s string) bool {
	w := strings.ToLower(s[strings.LastIndexByte(s, ' ')+1:])
	return w == "e.g" || w == "i.e" || w == "dr" || w == "mr" || w == "mrs" || w == "vs" || w == "no" && len(s) > 2 || len(w) == 1 && w >= "1" && w <= "9"
}

// passage is a sentence that can be quoted, and where it stood.
type passage struct {
	lead  string // "You said"
	text  string
	order int
	score float64
}

// rank returns the best passages for a query, the best first. A word counts the more the rarer it
// is among the passages; of equals the newer one wins.
func rank(passages []passage, query string, n int) []passage {
	asked := wordSet(strings.Join(words(query), " "))
	if len(asked) == 0 {
		return nil
	}
	seen := make([]map[string]bool, len(passages))
	df := map[string]int{}
	for i, p := range passages {
		seen[i] = map[string]bool{}
		for _, w := range words(p.text) {
			if asked[w] && !seen[i][w] {
				seen[i][w] = true
				df[w]++
			}
		}
	}
	var hits []passage
	for i, p := range passages {
		if len(seen[i]) == 0 {
			continue
		}
		for _, w := range words(query) { // in a fixed order: sums of floats depend on it
			if seen[i][w] {
				seen[i][w] = false
				p.score += math.Log(1 + float64(len(passages))/float64(df[w]))
			}
		}
		p.order = i
		hits = append(hits, p)
	}
	slices.SortStableFunc(hits, func(a, b passage) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.order, a.order))
	})
	var out []passage
	said := map[string]bool{}
	for _, h := range hits {
		key := nearKey(h.text, false)
		if len(out) == n || len(out) > 0 && h.score < out[0].score*0.4 {
			break
		}
		if !said[key] {
			said[key] = true
			out = append(out, h)
		}
	}
	return out
}

// normal is a text without what may differ between two ways to write the same.
func normal(s string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " "))
}

// asks reports whether a sentence is a question.
func asks(s string) bool {
	s = strings.TrimSpace(s)
	if strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") {
		return true
	}
	first, _, _ := strings.Cut(strings.ToLower(s), " ")
	switch strings.TrimRight(first, ",'’s") {
	case "when", "where": // "When I travel, I prefer trains." is no question
		return !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "!") && !strings.Contains(s, ",")
	case "what", "who", "whose", "why", "how", "which", "tell", "list", "show":
		return true
	}
	return false
}

// holds reports whether a lower-case text holds one of the phrases at a word's beginning.
func holds(lower string, phrases ...string) bool {
	for _, p := range phrases {
		for from := 0; ; {
			i := strings.Index(lower[from:], p)
			if i < 0 {
				break
			}
			i += from
			if i == 0 || !letterOrDigit(lower[i-1]) {
				return true
			}
			from = i + 1
		}
	}
	return false
}

func letterOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
