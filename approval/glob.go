package approval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of globs of names.
const (
	MaxGlob  = 128 // bytes of one
	MaxGlobs = 128 // in a list
)

// Glob reports whether a name matches a pattern, in which * stands for any text, also none, and ? for one
// character. All else is as it is written. It takes time in proportion to both lengths.
func Glob(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	i, star, mark := 0, -1, 0
	for j := 0; j < len(n); {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// Any reports whether a name matches one of some globs.
func Any(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return Glob(g, name) })
}

// IsGlob reports whether a text may be a glob of names. Brackets and backslashes mean something to other globs, and stand in
// no name: they are a mistake.
func IsGlob(s string) bool {
	return s != "" && len(s) <= MaxGlob && !strings.ContainsAny(s, `[]\`)
}

// CheckGlobs says what is wrong with a list of globs, by the name of its field.
func CheckGlobs(field string, globs []string) error {
	if len(globs) > MaxGlobs {
		return fmt.Errorf("%s has %d patterns, at most %d: %w", field, len(globs), MaxGlobs, tidemark.ErrInvalid)
	}
	for _, g := range globs {
		if !IsGlob(g) {
			return fmt.Errorf("%s: %.80q is no pattern: want 1 to %d bytes with * and ? such as \"memory_*\": %w", field, g, MaxGlob, tidemark.ErrInvalid)
		}
	}
	return nil
}
