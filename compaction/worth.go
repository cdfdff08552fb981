package compaction

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of what counts as a summary.
const (
	leastSummary  = 200 // letters that are enough for any span, however long
	eachMessage   = 12  // letters for each message, at least
	summaryShare  = 40  // and of so many characters of the conversation one
	promptRun     = 8   // so many words in a row of what we told the model are ours
	leastCopy     = 400 // characters; a shorter text may be a quotation
	phrase        = 8   // characters in a row by which repetition is seen, whatever the language
	mostRepeated  = 6   // times as often as the conversation may it say the same, on average
	knownShare    = 4   // one in so many words has to be of what the summary stands for
	knownNames    = 2   // or so many names: numbers, identifiers, words with a capital behind their first letter
	knownShorts   = 3   // one in so many short words is common to texts of one language
	leastWord     = 5   // letters; shorter words are in every text of a language, and tell which it is
	wordsToTell   = 12  // a conversation of fewer such words has too few to ask for a share
	leastTalkText = 400 // characters; of less anything is a summary that is not empty
)

// flaw is what is wrong with the answer of a summariser, in words that it reads itself when it is asked again.
type flaw string

func (f flaw) Error() string { return string(f) }
func (flaw) Unwrap() error   { return tidemark.ErrInvalid }

// cutOff is an answer that ended at the bound on it.
const cutOff flaw = "it was longer than there is room for, and cut off"

// Worth reports what is wrong with a summary of some items: that it is too short for what it stands for, that it repeats
// itself, the conversation or what the model was told to do, or that it names nothing of the conversation, as a refusal
// does. It looks at letters and words only: what they mean is not for us to judge, so the floor is low.
func Worth(summary string, a Ask) error {
	shown := unescape(Transcribe(a.Items))
	talk := a.Previous + "\n" + shown
	if promptWords(summary, talk) {
		return flaw("the summary repeats its instructions")
	}
	size := utf8.RuneCountInString(talk)
	body := bodyOf(summary)
	n := letters(body)
	once := min(1, distinct(body)/distinct(shown[:runeFloor(shown, min(len(body), len(shown)))])) // who speaks alike is summarised alike
	if said := int(float64(n) * once); n == 0 || size >= leastTalkText && said < min(leastSummary, eachMessage*len(a.Items), size/summaryShare) {
		return flaw(fmt.Sprintf("the summary is too short: %d letters for %d messages, counting once what it repeats", said, len(a.Items)))
	}
	switch {
	case size < leastTalkText:
		return nil
	case once*mostRepeated < 1:
		return flaw("the summary says the same over and over")
	case a.Instructions == "" && copied(summary, "<conversation>\n"+shown): // a person may ask for the letter of something
		return flaw("the summary is a piece of the conversation, copied")
	}
	return ties(body, talk, body != summary && n >= leastSummary)
}

// ties reports a summary that has neither names nor words of the conversation. One in another language, as its short
// words tell, may have none to share: for it the form that was asked for is enough.
func ties(body, talk string, form bool) error {
	known := terms(talk)
	few := 0
	for _, k := range known {
		if k != short {
			few++
		}
	}
	var all, hits, names, shorts, same int
	for w, k := range terms(body) {
		_, ok := known[w]
		switch {
		case k == short:
			shorts++
			if ok {
				same++
			}
			continue
		case ok && k == name:
			names++
		}
		all++
		if ok {
			hits++
		}
	}
	if hits > 0 && (few < wordsToTell || names >= knownNames || hits*knownShare >= all) || form && same*knownShorts < max(shorts, 1) {
		return nil
	}
	return flaw(fmt.Sprintf("the summary names next to nothing of the conversation: %d of its %d words are of it", hits, all))
}

// distinct is the share of a text that it has not said before, 1 where it repeats nothing.
func distinct(s string) float64 {
	runes := []rune(strings.ToLower(strings.Join(strings.Fields(s), " ")))
	all := len(runes) - phrase + 1
	if all < 1 {
		return 1
	}
	seen := map[string]bool{}
	for i := range all {
		seen[string(runes[i:i+phrase])] = true
	}
	return float64(len(seen)) / float64(all)
}

// copied reports whether the middle half of a text, and so a run of more than that half of it, stands in another.
func copied(s, in string) bool {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	n := len(runes)
	return n >= leastCopy && strings.Contains(strings.Join(strings.Fields(in), " "), string(runes[n/4:n*3/4]))
}

// Read is [Parse] for what was asked, and takes no answer for a summary that is none.
func Read(r tidemark.Reply, a Ask) (Written, error) {
	w, err := Parse(r, a)
	if err == nil && !a.OnlyMemories {
		err = Worth(w.Summary, a)
	}
	return w, err
}

// AskAgain is the prompt with why its first answer could not be used. What was cut off would be so again: half as many words
// as there are tokens have room in any language.
func AskAgain(r tidemark.Request, why error) []tidemark.Message {
	how := "in full"
	if errors.Is(why, cutOff) {
		how = fmt.Sprintf("in at most %d words", r.MaxTokens/2)
	}
	last := r.Messages[len(r.Messages)-1].PlainText()
	again := "\n\nAn answer to this could not be used: " + why.Error() + ". Answer anew, " + how + "."
	return []tidemark.Message{tidemark.NewText(tidemark.User, last+again)}
}

// bodyOf is a summary without its headings.
func bodyOf(summary string) string {
	var b strings.Builder
	for line := range strings.Lines(summary) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// letters counts letters and digits; one of a script without spaces between words counts as three.
func letters(s string) (n int) {
	for _, r := range s {
		switch {
		case dense(r):
			n += 3
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			n++
		}
	}
	return n
}

func dense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// kind of a word, by which one tells what a text is about.
type kind int

const (
	word  kind = iota
	name       // the same in all languages
	short      // in every text of its language
)

// terms are the words of a text in small letters: those of some length, numbers and identifiers, the short ones, and of
// scripts without spaces each pair of characters.
func terms(s string) map[string]kind {
	out := map[string]kind{}
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) {
		runes := []rune(w)
		if dense(runes[0]) {
			for i := range len(runes) - 1 {
				out[string(runes[i:i+2])] = word
			}
			continue
		}
		key, k := strings.ToLower(w), word
		digit := strings.ContainsFunc(w, unicode.IsDigit)
		switch {
		case len(runes) < leastWord && !digit:
			k = short
		case digit || strings.ContainsFunc(string(runes[1:]), unicode.IsUpper) || strings.ContainsRune(w, '_'):
			k = name
		}
		if k == name || out[key] != name {
			out[key] = k
		}
	}
	return out
}

// promptWords finds a run of words of the instructions in a summary that the conversation does not have.
func promptWords(summary, talk string) bool {
	words, talk := strings.Fields(summary), strings.Join(strings.Fields(talk), " ")
	told := " " + strings.Join(strings.Fields(summarySystem+" "+summaryTask), " ") + " "
	for i := 0; i+promptRun <= len(words); i++ {
		run := strings.Join(words[i:i+promptRun], " ")
		if strings.Contains(told, " "+run+" ") && !strings.Contains(talk, run) {
			return true
		}
	}
	return false
}
