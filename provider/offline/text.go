package offline

import (
	"cmp"
	"iter"
	"math"
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
		case b.Type != tidemark.TypeText || b.Text == "" || strings.HasPrefix(b.Text, markerMark) && bracketed(b.Text):
		case strings.HasPrefix(b.Text, summaryMark):
			sums = append(sums, b.Text)
		default:
			words = append(words, b.Text)
		}
	}
	return strings.Join(sums, "\n"), strings.TrimSpace(tidemark.StripReminders(strings.Join(words, "\n")))
}

// sentencesOf yields the sentences of a text; bullets lose their dash.
func sentencesOf(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		n := 0
		for t := range lexicon.Sentences(s) {
			if t = bullet.ReplaceAllString(strings.TrimSpace(t), ""); t == "" {
				continue
			}
			if n++; n > maxSentences || !yield(t) {
				return
			}
		}
	}
}

var bullet = regexp.MustCompile(`^(?:[-*•] +)+`)

func sentences(s string) []string { return slices.Collect(sentencesOf(s)) }

func lastSentence(text string) string {
	if s := sentences(text[:min(len(text), 64<<10)]); len(s) > 0 {
		return s[len(s)-1]
	}
	return text
}

// statements returns the sentences of a person that state something: neither questions nor what a machine put into the
// message.
func statements(text string) (out []string) {
	for s := range sentencesOf(withoutNotices(text)) {
		if !asks(s) && !notice(s) {
			out = append(out, s)
		}
	}
	return out
}

// tag begins a line that a program put into a message.
var tag = regexp.MustCompile(`^\s*</?([\pL\d_-]+)[^>]*>`)

// maxSpans bounds how often the end of a machine's tag is looked for in one text.
const maxSpans = 64

// withoutNotices takes out what programs put into messages: tagged spans that begin a line, such as news of tasks,
// commands and their output, and lines in brackets, such as markers.
func withoutNotices(text string) string {
	if !strings.ContainsAny(text, "<[") {
		return text
	}
	var b strings.Builder
	for spans := 0; text != ""; {
		line, rest, _ := strings.Cut(text, "\n")
		m := tag.FindStringSubmatch(line)
		switch {
		case bracketed(line):
		case m == nil:
			b.WriteString(line + "\n")
		default:
			if spans++; spans <= maxSpans {
				if _, after, found := strings.Cut(text, "</"+m[1]+">"); found {
					rest = after
				}
			}
		}
		text = rest
	}
	return b.String()
}

// bracketed reports a line that is a remark of a program as a whole, such as a marker.
func bracketed(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]")
}

// notice reports whether a line is a machine's: a tag, or a remark in brackets.
func notice(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "[") || strings.HasPrefix(line, "No model could write a summary") || tag.MatchString(line)
}

// bare is what a sentence says, without what introduces it: "Noted: “x”" and "Remember that x" are both x, so a fact is not
// kept once for each way to mention it.
func bare(s string) string {
	if n := len(leads.FindString(s)); n > 0 {
		s = strings.TrimSuffix(s[n:], "”")
	}
	if facts, rest := toRemember(s); len(facts) == 1 && rest == "" {
		return facts[0]
	}
	return s
}

// extraStops say nothing about what a sentence is about, beside those of the indexes.
var extraStops = lexicon.Set(`also an let please said say should tell told use yes ok okay`)

// fillers change nothing about which fact a sentence states. Negations are no fillers.
var fillers = lexicon.Set(`a an the that so also just now really very ok okay yes well please have has had ve`)

// normal is a text without what may differ between two ways to write the same.
func normal(s string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " "))
}

// nearKey is equal for sentences that say nearly the same.
func nearKey(s string) string {
	var out []string
	for _, w := range strings.Fields(normal(bare(s))) {
		if !fillers[w] {
			out = append(out, stem(w))
		}
	}
	return cmp.Or(strings.Join(out, " "), normal(s))
}

// words returns the words of a text that carry meaning, as their stems. Scripts that do not part words by spaces give one
// word a character.
func words(s string) (out []string) {
	for _, w := range strings.Fields(normal(s)) {
		if r, _ := utf8.DecodeRuneInString(w); unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			out = append(out, strings.Split(w, "")...)
		} else if w = stem(w); len(w) > 1 && !lexicon.Stops[w] && !extraStops[w] {
			out = append(out, w)
		}
	}
	return out
}

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words(s) {
		set[w] = true
	}
	return set
}

// shared is how many words two texts share.
func shared(a, b string) (n int) {
	has := wordSet(a)
	for w := range wordSet(b) {
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
	score float64
}

// rank returns the best passages for a query, the best first. A word counts the more the rarer it is among the passages; of
// equals the newer one wins.
func rank(passages []passage, query string, n int) (out []passage) {
	asked := slices.Compact(slices.Sorted(slices.Values(words(query)))) // in one order: sums of floats depend on it
	has := make([]map[string]bool, len(passages))
	df := map[string]int{}
	for i, p := range passages {
		has[i] = wordSet(p.text)
		for _, w := range asked {
			if has[i][w] {
				df[w]++
			}
		}
	}
	var hits []passage
	for i, p := range passages {
		for _, w := range asked {
			if has[i][w] {
				p.score += math.Log(1 + float64(len(passages))/float64(df[w]))
			}
		}
		if p.order = i; p.score > 0 {
			hits = append(hits, p)
		}
	}
	slices.SortStableFunc(hits, func(a, b passage) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.order, a.order))
	})
	said := map[string]bool{}
	for _, h := range hits {
		if len(out) == n || len(out) > 0 && h.score < out[0].score*0.4 {
			break
		}
		if key := nearKey(h.text); !said[key] {
			said[key] = true
			out = append(out, h)
		}
	}
	return out
}

// asks reports whether a sentence is a question.
func asks(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") || question.MatchString(s) || condition.MatchString(s)
}

// Words that begin a question without a mark; "When I travel, I prefer trains." is none.
var (
	question  = regexp.MustCompile(`(?i)^(?:what|who|whose|why|how|which|tell|list|show)\b`)
	condition = regexp.MustCompile(`(?i)^(?:when|where)\b[^,]*[^,.!]$`)
)
