package snapshot

import (
	"strings"
	"unicode"
)

// Label makes a name of a title: what a name may not have is a space.
func Label(title string) string {
	clean := strings.Map(func(r rune) rune {
		if inName(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(title, " "))
	const number = 12 // for a number behind it
	clean = strings.Join(strings.Fields(clean), " ")
	if r := []rune(clean); len(r) > MaxName-number {
		clean = strings.TrimSpace(string(r[:MaxName-number]))
	}
	if CheckName(clean) != nil {
		return ""
	}
	return clean
}

// Numbered puts a number behind a label, as long as a name may be.
func Numbered(label, number string) string {
	if r := []rune(label); len(r) > MaxName-len(number) {
		label = strings.TrimSpace(string(r[:MaxName-len(number)]))
	}
	return label + number
}

// Slug makes a part of a key of a label: small letters and digits of ASCII, - _ and dots, and dashes for the rest.
func Slug(label string) string {
	const most = 100 // bytes, with room for a number
	var b strings.Builder
	gap := false
	for _, r := range label {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-' {
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(r)
		} else {
			gap = true
		}
		if b.Len() >= most {
			break
		}
	}
	return strings.Trim(b.String(), ".-")
}

// inName reports whether a name may have a letter or sign; spaces apart.
func inName(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) || strings.ContainsRune("-_.", r)
}
