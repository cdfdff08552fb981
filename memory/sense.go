package memory

import (
	"strings"
	"unicode"
)

// Sense is what turns the meaning of words that two texts may share: "deploy on Friday" has all the words of
// "never deploy on Friday".
type Sense uint8

// The ways to turn it.
const (
	Denies Sense = 1 << iota
	Lacks
	Excepts
	Before
	After
	More
	Less
)

// senses are the words that turn, by how. A verb that forbids denies what stands behind it.
var senses = func() map[string]Sense {
	out := map[string]Sense{}
	for i, words := range [...]string{
		`not no never nor none neither nobody nothing cannot dont avoid refuse forbid forbidden prohibited
		nicht nichts kein keine keinen keinem keiner keines nie niemals vermeide vermeiden verboten untersagt pas jamais aucun nunca jamás não`,
		`without ohne sans sin sem`, `except unless excluding außer ausser ausgenommen sauf salvo excepto`, `before until till vor bis avant antes`,
		`after since nach seit après después`, `more over above least mehr über mindestens`, `less under below most weniger unter höchstens`,
	} {
		for _, w := range strings.Fields(words) {
			out[w] = 1 << i
		}
	}
	return out
}()

// SenseOf divides a text into what turns its meaning and the words that remain.
func SenseOf(text string) (Sense, string) {
	var sense Sense
	var rest []string
	for _, w := range strings.Fields(strings.ReplaceAll(text, "’", "'")) {
		bare := strings.ToLower(strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) }))
		turn := senses[bare]
		if turn == 0 && strings.HasSuffix(bare, "n't") {
			turn = Denies
		}
		if turn == 0 {
			rest = append(rest, w)
		}
		if sense |= turn; strings.ContainsAny(w, "不勿别別禁没沒") || strings.Contains(w, "ない") {
			sense |= Denies
		}
	}
	return sense, strings.Join(rest, " ")
}
