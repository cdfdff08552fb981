// Package clip bounds texts that people will see.
package clip

import "unicode/utf8"

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
