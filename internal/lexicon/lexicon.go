// Package lexicon is the one home of what several packages must know alike of words: which of them tell nothing of
// what a text is about, and where a sentence ends. It does not rank and does not stem; package recall does. Begin with
// the lists of words here.
package lexicon

import "strings"

// Stops are words that tell no text from another. Indexes are made without them, so a change of these leaves
// rows that are not found.
var Stops = Set(`a an the and or but if of to in on at by for with from as is are was were be been being am do does did done
	has have had having it its this that these those i me my mine we us our you your yours he him his she her hers they them
	their theirs who whom whose what which when where why how can could will would shall should may might must not no nor so
	than then too very just about into over after before during between out up down off again s t d ll re ve m don doesn didn
	isn wasn aren weren won couldn wouldn shouldn there here any some such own same other more most each both few all only
	because while also get got getting kind type like`)

// Vague are longer words that are no topic of a text. Queries find them.
var Vague = Set(`aber above against almost along already although always among another around auch become began begin below cannot dann
	dass dein diese dieser doch doing don't eine einen einer either enough error even every everything false file first
	following further going great haben hier however important instead itself jetzt kann kein know later least little
	looks make maybe mein much need never nicht noch nothing null oder often others ourselves please pretty quite rather
	really right seems sein sich since sind small somebody something sometimes still take thanks that's there's they're
	thing things think though thought through together toward true trying under understand until used using usually want
	wants warum we're well wenn whatever whether whole wird within without wurde you're yourself über`)

// Set returns the words of a list.
func Set(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// Sentences yields the sentences of a text with what ends them: a line, or a mark. A mark within a word, as in a
// version or a URL, ends none.
func Sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for i, r := range text {
			end := i + 1
			switch r {
			case '.', '!', '?':
				if end < len(text) && strings.IndexByte(" \n\t\r.!?\")'", text[end]) < 0 {
					continue
				}
			case '。', '！', '？':
				end = i + len("。")
			case '\n':
			default:
				continue
			}
			if !yield(text[from:end]) {
				return
			}
			from = end
		}
		if from < len(text) {
			yield(text[from:])
		}
	}
}
