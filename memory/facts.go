package memory

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of what one extraction may give to remember.
const (
	MaxFacts = 50  // facts of an extraction
	MaxFact  = 500 // characters of a fact
)

// nothing is what models write when there is nothing to remember.
var nothing = map[string]bool{
	"none": true, "n a": true, "n/a": true, "nothing": true, "null": true, "empty": true, "no memories": true, "no new memories": true, "no facts": true,
	"no durable facts": true, "no new facts": true, "nothing to remember": true, "nothing worth remembering": true,
	"nothing new": true, "nothing durable": true, "there is nothing worth remembering": true, "no new durable facts": true,
}

// Normalise makes facts of what a model or a person wrote: one line each, without bullets,
// headings, control characters and tags; "none" and blank lines are nothing; a line that says what
// an earlier one or one of known says is dropped. At most [MaxFacts] come back.
func Normalise(facts []tidemark.Fact, known map[string]bool) []tidemark.Fact {
	seen := map[string]bool{}
	var out []tidemark.Fact
	for _, f := range facts {
		f.Text = clean(f.Text)
		key := Fold(f.Text)
		if key == "" || nothing[key] || seen[key] || known[key] {
			continue
		}
		if len(out) == MaxFacts {
			break
		}
		seen[key] = true
		out = append(out, f)
	}
	return out
}

// Lines makes facts of a text with one fact a line.
func Lines(text string) []tidemark.Fact {
	var out []tidemark.Fact
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) != "" {
			out = append(out, tidemark.Fact{Text: l})
		}
	}
	return out
}

// clean brings a fact into its one form.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar:
			return -1 // Cf holds the invisible ones: overrides of direction, tags, joiners
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	s = strings.TrimSpace(bullets.ReplaceAllString(s, ""))
	if len(strings.Trim(s, "-=_*#`~ ")) == 0 {
		return "" // a rule or a fence
	}
	s = cut(s, MaxFact) // before escaping, so that no escape is cut in half
	s = tagStart.ReplaceAllString(s, "&lt;$1")
	return strings.ReplaceAll(s, "-->", "--&gt;")
}

var (
	// Bullets, numbers of a list, boxes, marks of headings and of quotes.
	bullets = regexp.MustCompile(`^(?:[-*+•–—·▪◦]\s+|\(?\d{1,3}[.)]\s+|\[[ xX]\]\s+|[#>]+\s*)+`)
	// What Markdown and the prompts of ours take for the start of a tag or a comment.
	tagStart = regexp.MustCompile(`<([/!?A-Za-z])`)
)

// Fold is what two facts have in common that say the same: their words in order, without case,
// punctuation and articles. Order and numbers count, so "A owes B 5" is not "B owes A 5".
func Fold(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.In(r, unicode.Mn, unicode.Mc) && !strings.ContainsRune("+-/.:@_%$€£#&=<>*", r)
	})
	kept := words[:0]
	for _, w := range words {
		w = strings.TrimLeft(strings.TrimRight(w, ".:-*_"), "*_")
		if w != "" && w != "the" && w != "a" && w != "an" {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}
