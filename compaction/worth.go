package compaction

import (
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
	knownShare    = 4   // one in so many words has to be of what the summary stands for
	knownNames    = 2   // or so many names: numbers, identifiers, words with a capital behind their first letter
	leastWord     = 5   // letters; shorter words are in every text
	wordsToTell   = 12  // a conversation of fewer such words has too few to ask for a share
	leastTalkText = 400 // characters; of less anything is a summary that is not empty
)

// Worth reports what is wrong with a summary of some items: that it is too short for what it stands for, that it repeats
// what the model was told to do, or that it names nothing of the conversation, as a refusal does. It looks at letters and
// words only: what they mean is not for us to judge, so the floor is low.
func Worth(summary string, a Ask) error {
	talk := a.Previous + "\n" + unescape(Transcribe(a.Items))
	body := bodyOf(summary)
	if run, ok := promptWords(summary, talk); ok {
		return fmt.Errorf("the summary repeats its instructions (%q): %w", run, tidemark.ErrInvalid)
	}
	size := utf8.RuneCountInString(talk)
	if n := letters(body); n == 0 || size >= leastTalkText && n < min(leastSummary, eachMessage*len(a.Items), size/summaryShare) {
		return fmt.Errorf("the summary has %d letters for %d messages of %d characters: %w", n, len(a.Items), size, tidemark.ErrInvalid)
	}
	if size < leastTalkText {
		return nil
	}
	known := terms(talk)
	all, hits, names := 0, 0, 0
	for w, name := range terms(body) {
		all++
		if _, ok := known[w]; ok {
			hits++
			if name {
				names++
			}
		}
	}
	if hits == 0 || len(known) >= wordsToTell && names < knownNames && hits*knownShare < all {
		return fmt.Errorf("the summary has %d of its %d words from the conversation: %w", hits, all, tidemark.ErrInvalid)
	}
	return nil
}

// Read is [Parse] for what was asked, and takes no answer for a summary that is none.
func Read(r tidemark.Reply, a Ask) (Written, error) {
	w, err := Parse(r, a)
	if err == nil && !a.OnlyMemories {
		err = Worth(w.Summary, a)
	}
	return w, err
}

// AskAgain is the prompt with why its first answer could not be used.
func AskAgain(prompt []tidemark.Message, why error) []tidemark.Message {
	last := prompt[len(prompt)-1].PlainText()
	again := "\n\nAn answer to this could not be used: " + escape(why.Error()) + ". Answer anew, in full."
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

// terms are the words of a text by which one tells what it is about, in small letters: those of some length, numbers and
// identifiers, and of scripts without spaces each pair of characters. true marks a name.
func terms(s string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) {
		runes := []rune(word)
		if dense(runes[0]) {
			for i := range len(runes) - 1 {
				out[string(runes[i:i+2])] = false
			}
			continue
		}
		digit := strings.ContainsFunc(word, unicode.IsDigit)
		if len(runes) < leastWord && !digit {
			continue
		}
		key := strings.ToLower(word)
		out[key] = out[key] || digit || strings.ContainsFunc(string(runes[1:]), unicode.IsUpper) || strings.ContainsRune(word, '_')
	}
	return out
}

// promptWords finds a run of words of the instructions in a summary that the conversation does not have.
func promptWords(summary, talk string) (run string, ok bool) {
	words, talk := strings.Fields(summary), strings.Join(strings.Fields(talk), " ")
	told := " " + strings.Join(strings.Fields(summarySystem+" "+summaryTask), " ") + " "
	for i := 0; i+promptRun <= len(words); i++ {
		run = strings.Join(words[i:i+promptRun], " ")
		if strings.Contains(told, " "+run+" ") && !strings.Contains(talk, run) {
			return run, true
		}
	}
	return "", false
}
