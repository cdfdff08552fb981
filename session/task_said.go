package session

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/lexicon"
	"github.com/tidemark-ai/tidemark/memory"
)

// saidIn returns the newest message of a person that says a text in whole sentences of their own words, unless a newer
// sentence has its words and turns them. Less than a sentence is not enough: what stands around a part of it may deny
// it, ask for it, limit it, or tell what somebody else wants, in more ways than could be listed.
func (s *Session) saidIn(heard []said, text string) tidemark.EntryID {
	var want []string
	for _, w := range wholeSentences(text) {
		want = append(want, ownForm(w))
	}
	if len(want) == 0 || slices.Contains(want, "") {
		return ""
	}
	sense, rest := memory.SenseOf(ownForm(text))
	words := s.Stemmer.Terms(rest)
	for _, m := range slices.Backward(heard) {
		list := statements(m.text)
		for i, statement := range slices.Backward(list) {
			if len(list)-i >= len(want) && slices.Equal(list[i:i+len(want)], want) {
				return m.id
			}
			turned, rest := memory.SenseOf(statement)
			has := s.Stemmer.Terms(rest)
			if turned != sense && len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(has, w) }) {
				return ""
			}
		}
	}
	return ""
}

// statements returns the sentences of a message in the form they are compared in: empty for a question, and for what is
// crossed out. Behind the head of a list, and in a quotation of several sentences, nothing stands for itself.
func statements(message string) []string {
	var out []string
	for _, w := range wholeSentences(message) {
		quotes := 0
		for _, r := range w {
			if strings.ContainsRune("\"“”„«»", r) {
				quotes++
			}
		}
		if quotes%2 > 0 || strings.HasSuffix(w, ":") || strings.HasSuffix(w, "：") {
			break
		}
		if strings.ContainsAny(w, "?？~❌🚫⛔✗✘👎") {
			w = ""
		}
		out = append(out, ownForm(w))
	}
	return out
}

// wholeSentences returns the sentences of a text that have a word. What begins small goes on from the line before, or
// from an "e.g." within.
func wholeSentences(text string) []string {
	var out []string
	for w := range lexicon.Sentences(text) {
		w = strings.TrimSpace(w)
		if n := len(out) - 1; n >= 0 {
			begin, _ := utf8.DecodeRuneInString(out[n])
			end, _ := utf8.DecodeLastRuneInString(out[n])
			next, _ := utf8.DecodeRuneInString(w)
			if unicode.IsLower(next) && (unicode.IsUpper(begin) || !strings.ContainsRune(".!?", end)) || !strings.ContainsFunc(w, wordRune) {
				out[n] += " " + w
				continue
			}
		}
		out = append(out, w)
	}
	return out
}

// openers may stand before a sentence and say nothing of what is wanted.
var openers = [...]string{"please ", "and ", "but ", "also ", "so ", "ok ", "okay ", "yes ", "you must ", "bitte ", "und ", "aber "}

// ownForm is what two sentences have in common that say the same in the same words: case, punctuation, articles, whose
// a thing is, and words of politeness apart.
func ownForm(sentence string) string {
	sentence, _ = strings.CutPrefix(strings.TrimLeft(sentence, " -*•"), "No, ")
	form := strings.NewReplacer("n t ", " not ", " your ", " my ", " our ", " my ").Replace(" " + memory.Fold(sentence) + " ")
	form = form[1:]
	for i := 0; i < len(openers); i++ {
		if rest, ok := strings.CutPrefix(form, openers[i]); ok {
			form, i = rest, -1
		}
	}
	return strings.TrimSpace(form)
}
