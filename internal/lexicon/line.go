package lexicon

import (
	"strings"
	"unicode"
)

// OneLine is the beginning of a text on one line, in at most that many characters.
func OneLine(s string, most int) string {
	if len(s) > most*16 { // what follows need not be looked at
		s = strings.ToValidUTF8(s[:most*16], "")
	}
	var b strings.Builder
	n := 0
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		if b.Len() > 0 {
			b.WriteByte(' ')
			n++
		}
		for _, r := range word {
			if n++; n > most {
				return strings.TrimSpace(b.String()) + "…"
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}
