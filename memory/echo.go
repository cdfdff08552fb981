package memory

import (
	"strings"

	"github.com/tidemark-ai/tidemark/internal/lexicon"
)

// leastEcho is how many words in a row are no chance.
const leastEcho = 4

// Sayings returns the sentences of a text by which it is known again where somebody repeats it, each as [Fold] gives it
// between two spaces.
func Sayings(text string) (out []string) {
	for s := range lexicon.Sentences(text) {
		if f := Fold(s); strings.Count(f, " ")+1 >= leastEcho {
			out = append(out, " "+f+" ")
		}
	}
	return out
}

// Echoes reports whether a text repeats a sentence of another one word for word: it is no second source of it.
func Echoes(text, said string) bool {
	folded := " " + Fold(text) + " "
	for _, s := range Sayings(said) {
		if strings.Contains(folded, s) {
			return true
		}
	}
	return false
}
