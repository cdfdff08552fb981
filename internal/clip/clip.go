// Package clip bounds texts that people will see.
package clip

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// To is a text of at most limit bytes, cut on a character's edge, and "…" behind what was cut.
func To(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// Bytes cuts a text to so many bytes.
func Bytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// Runes leaves out the beginning of a character that a text was cut through.
func Runes(text string) string {
	for n := 1; n < utf8.UTFMax && n < len(text); n++ {
		if from := len(text) - n; utf8.RuneStart(text[from]) {
			if !utf8.FullRuneInString(text[from:]) {
				return text[:from]
			}
			break
		}
	}
	return text
}

// Words is a text with one blank between its words, so that what somebody else wrote cannot look like lines of ours.
func Words(s string) string { return strings.Join(strings.Fields(s), " ") }

// Line is the beginning of a text on one line, in at most that many characters.
func Line(s string, most int) string {
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
