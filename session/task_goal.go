package session

import (
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/lexicon"
)

// Words that tell whether a sentence says what is to be done, each between spaces: what may stand before it,
// verbs of an order, those of talk, those that make a noun of the verb before them, and those that part the two.
const (
	fillers = " please now then ok okay so and also but just first next hi hello hey yes no well great good perfect thanks bitte jetzt dann nun und auch danke ja nein gut hallo zuerst "
	verbs   = " add adjust analyze answer apply arrange ask attach bake book bring build buy calculate call cancel change check choose clean clear collect combine commit compare compute configure convert copy correct create debug define delete deploy describe design determine develop disable download draft draw drop edit enable examine explore extend extract fetch fill find finish fix format gather generate give help implement improve include increase inspect install integrate investigate list look make measure mend merge migrate move open optimize order organize paint patch pick plan plant prepare print produce publish pull push put read rebase reduce refactor register release remove rename repair replace reply reproduce research resolve restart restore review rewrite run save schedule search send set show simplify solve sort split start study submit summarize support switch sync test track translate try turn update upgrade upload use verify visit work wrap write" +
		" änder analysier antworte baue beantwort beende beheb berechn besorg bestell buche entfern entwickl ergänz erledig erneuer ersetz erstell finde füge füg hilf hol hole implementier installier kaufe korrigier kümmer leg lege lies lösch mach miete organisier plan prüf räum recherchier reparier richte rufe schau schick schreib sende setz setze sortier speicher start streich suche teste trag übersetz verbesser vergleich verschieb zeig " //nolint:misspell // German
	idle   = " admit ask be believe explain forgive go hear imagine know leave let meet note remember rest say see sleep stop talk tell thank think wait wonder bedanken danken erklären gehen heim hören kein keine keinen lachen los nicht nie reden sagen schlafen sehen verraten warten weg wissen "
	linked = " is are was were has had will ist sind war waren hat hatte wird wurde wurden läuft laufen failed fails passed passes told worked "
	parted = " what who which where when why that how if whether wer wie wo wann warum dass ob "
)

// What a sentence begins with that names a goal, says what somebody wants, or asks for something politely, with a
// question mark or without.
var (
	naming = [...]string{"my goal is ", "our goal is ", "the goal is ", "my aim is ", "our aim is ", "my task is ", "your task is ", "the task is ", "goal: ", "task: ",
		"mein ziel ist", "unser ziel ist", "das ziel ist", "meine aufgabe ist", "deine aufgabe ist", "ziel: ", "aufgabe: "}
	wanting = [...]string{"i want ", "we want ", "i need ", "we need ", "i have to ", "we have to ", "i'd like ", "we'd like ", "i would like ", "we would like ", "let's ", "let us ", "we should ",
		"ich will ", "ich möchte ", "ich brauche ", "ich muss ", "wir wollen ", "wir möchten ", "wir brauchen ", "wir müssen ", "wir sollten ", "lass uns ",
		"quiero ", "necesito ", "tenemos que ", "je veux ", "nous devons ", "il faut "}
	polite = [...]string{"can you ", "could you ", "would you ", "will you ", "can we ", "could we ", "shall we ", "kannst du ", "könntest du ", "können wir ",
		"puedes ", "podrías ", "peux-tu ", "pouvez-vous "}
	unspaced = [...]string{"请", "請", "帮我", "幫我", "我想", "我要", "我需要", "我们要", "我們要"} // wanting, in scripts without spaces
)

// postponing begins what somebody puts off with a word for later.
var postponing = [...]string{"we can ", "we will ", "we'll ", "i will ", "i'll ", "ich mach", "ich rufe ", "ich schau", "ich kümmere ", "ich erledige ", "wir machen ", "wir können ", "das mach", "das können wir "}

// undone are the words of what is still to be done.
var undone = [...]string{"still have to", "still has to", "still need to", "still needs to", "have yet to", "remains to be",
	"muss noch", "müssen noch", "müssen wir noch", "muss ich noch", "noch zu tun", "steht noch aus", "stehen noch aus", "fehlt noch", "fehlen noch"}

// aim is how plainly a sentence says what is to be done.
type aim int

const (
	noAim aim = iota
	wish      // an order, a wish, a polite question
	goal      // it names one
)

// asksFor returns the sentence of a text that tells best what is to be done, the first of several. A rule is
// none, which is a constraint, and neither is a plain question, what is left for later, or talk.
func asksFor(text string) (best string, how aim) {
	for _, line := range sentences(text) {
		if a := aimOf(line); a > how && !leftOpen(line) && !says(line, decided[:]) && len(rules(line)) == 0 {
			best, how = line, a
		}
	}
	return best, how
}

// leftOpen reports a sentence about what is still to be done.
func leftOpen(line string) bool {
	lower := strings.ToLower(line)
	if strings.HasPrefix(line, "TODO") || strings.HasPrefix(line, "[ ]") || strings.HasPrefix(lower, "todo:") || strings.HasPrefix(lower, "to do:") {
		return true
	}
	later := []string{"later", "später"}
	return !asksBack(line) && (says(line, undone[:]) || says(line, later) && (aimOf(line) > noAim || begins(lower, postponing[:]) > 0))
}

func asksBack(line string) bool {
	return strings.HasSuffix(line, "?") || strings.HasSuffix(line, "？")
}

// aimOf tells how plainly a sentence says what is to be done, by how it begins.
func aimOf(line string) aim {
	words := strings.Fields(strings.ReplaceAll(strings.ToLower(line), "’", "'"))
	please := false
	for len(words) > 0 && oneOf(fillers, words[0]) {
		please = please || oneOf(" please bitte ", words[0])
		words = words[1:]
	}
	text := strings.Join(words, " ")
	switch {
	case len(words) == 0:
		return noAim
	case begins(text, polite[:]) > 0:
		return wishOf(text[begins(text, polite[:]):])
	case asksBack(line):
		return noAim
	case begins(text, naming[:]) > 0:
		return goal
	case begins(text, wanting[:]) > 0:
		return wishOf(text[begins(text, wanting[:]):])
	case begins(text, unspaced[:]) > 0:
		return wish
	}
	verb := bareWord(words[0])
	order := oneOf(verbs, verb) || oneOf(verbs, strings.TrimSuffix(verb, "e"))
	aside := strings.HasSuffix(words[0], ":") || // update: it works
		strings.HasSuffix(words[0], ",") && len(words) > 1 && !oneOf(parted, words[1]) // look, it rains
	if !order && !please || aside {
		return noAim
	}
	for n, w := range words[1:min(len(words), 3)] {
		if oneOf(linked, w) && !oneOf(parted, words[n]) { // the word was a noun: the test is green
			return noAim
		}
	}
	if order && !hasMatter(words[1:]) {
		return noAim
	}
	return wishOf(text)
}

// wishOf is a wish unless what is wished for is talk, or is not said.
func wishOf(text string) aim {
	words := strings.Fields(text)
	for len(words) > 0 && oneOf(" to you me us mir uns dir euch mich jetzt nun mal noch leider ", words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || oneOf(idle, words[0]) || !hasMatter(words) {
		return noAim
	}
	return wish
}

// hasMatter reports words of which one is not among the most frequent.
func hasMatter(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return !lexicon.Stops[bareWord(w)] && !oneOf(" das es dies ", w) })
}

// begins returns the length of the one of some words that a text begins with, or 0.
func begins(text string, words []string) int {
	for _, w := range words {
		if strings.HasPrefix(text, w) {
			return len(w)
		}
	}
	return 0
}

// oneOf reports a word of a list, whatever signs stand behind it.
func oneOf(list, word string) bool { return strings.Contains(list, " "+bareWord(word)+" ") }

func bareWord(w string) string { return strings.TrimRight(w, ".,:;!?") }
