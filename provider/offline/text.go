package offline

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/lexicon"
)

const (
	maxSentence  = 300    // bytes of one that is quoted
	maxSentences = 20_000 // that are looked at; a whole window holds fewer
)

// parts separates what a person said in a message from summaries, which may stand in blocks of the same message.
func parts(m tidemark.Message) (summary, said string) {
	var sums, words []string
	for _, b := range m.Content {
		switch {
		case b.Type != tidemark.TypeText || b.Text == "":
		case strings.HasPrefix(b.Text, summaryMark):
			sums = append(sums, b.Text)
		default:
			words = append(words, b.Text)
		}
	}
	said = programs.ReplaceAllString(tidemark.StripReminders(strings.Join(words, "\n")), "")
	return strings.Join(sums, "\n"), strings.TrimSpace(said)
}

// programs are lines that programs put into messages: tags, and remarks in brackets such as markers.
var programs = regexp.MustCompile(`(?m)^[ \t]*(?:\[.*\]|</?[\pL\d_-]+[^>\n]*>.*)[ \t]*$`)

var bullet = regexp.MustCompile(`^(?:[-*•] +)+`)

// sentences returns the sentences of a text; bullets lose their dash.
func sentences(s string) (out []string) {
	for t := range lexicon.Sentences(s) {
		if t = bullet.ReplaceAllString(strings.TrimSpace(t), ""); t != "" {
			out = append(out, t)
		}
		if len(out) == maxSentences {
			break
		}
	}
	return out
}

func lastSentence(text string) string {
	if s := sentences(text[:min(len(text), 64<<10)]); len(s) > 0 {
		return s[len(s)-1]
	}
	return text
}

// extraStops say nothing about what a sentence is about, beside those of the indexes.
var extraStops = lexicon.Set(`also an let please said say should tell told use yes ok okay`)

// normal is a text without what may differ between two ways to write the same.
func normal(s string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " "))
}

// words returns the different words of a text that carry meaning, as their stems. Scripts that do not part words by
// spaces give one word a character.
func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(normal(s)) {
		if r, _ := utf8.DecodeRuneInString(w); unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			for _, c := range w {
				out[string(c)] = true
			}
		} else if w = stem(w); len(w) > 1 && !lexicon.Stops[w] && !extraStops[w] {
			out[w] = true
		}
	}
	return out
}

// shared is how many words two texts share.
func shared(a, b string) (n int) {
	has := words(a)
	for w := range words(b) {
		if has[w] {
			n++
		}
	}
	return n
}

var ending = regexp.MustCompile(`(?:ies|ied|sions?|ings?|ed|es|e|s|y)$`)

// stem cuts the endings of plurals and verbs, so that decide, decides, decided, deciding and decision are one.
func stem(w string) string {
	cut := w
	if loc := ending.FindStringIndex(w); loc != nil && loc[0] > 2 {
		cut = w[:loc[0]]
	}
	if n := len(cut); n > 3 && (cut[n-1] == cut[n-2] || cut[n-1] == 'd') { // planned; decide and decision
		cut = cut[:n-1]
	}
	return cut
}

// passage is a sentence that can be quoted, and where it stood.
type passage struct {
	lead  string // "You said"
	text  string
	order int
	score int // words that it shares with the query
}

// rank returns the best passages for a query, the best first: those that share most words with it, and of equals the newer.
func rank(passages []passage, query string, n int) (out []passage) {
	var hits []passage
	for i, p := range passages {
		if p.order, p.score = i, shared(p.text, query); p.score > 0 {
			hits = append(hits, p)
		}
	}
	slices.SortFunc(hits, func(a, b passage) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.order, a.order))
	})
	said := map[string]bool{}
	for _, h := range hits {
		if len(out) == n || 2*h.score <= hits[0].score {
			break
		}
		if key := normal(h.text); !said[key] {
			said[key] = true
			out = append(out, h)
		}
	}
	return out
}

// asks reports whether a sentence is a question.
func asks(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") || question.MatchString(s)
}

// question matches a question without a mark.
var question = regexp.MustCompile(`(?i)^(?:what|who|whose|why|how|which|tell|list|show)\b`)
