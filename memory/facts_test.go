package memory

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzClean: what is taken off a fact, and escaped in it, is what the expressions say.
func FuzzClean(f *testing.F) {
	bullet := regexp.MustCompile(`^(?:[-*+•–—·▪◦]\s+|\(?\d{1,3}[.)]\s+|\[[ xX]\]\s+|[#>]+\s*)+`)
	tagStart := regexp.MustCompile(`<([/!?A-Za-z])`)
	for _, s := range []string{
		"", "- a", "-a", "* - [x] b", "• c", "12. d", "(12) e", "1234. f", "(g", "()", "1.h", "## # i", ">>> j", "#", "# - 1) k", "[ ]l", "[y] m", "- ", "-\t\n\v", "—— n", "3)", "- - ",
		"a<b", "<", "<<a", "<1", "</x", "<!--", "<?", "<é", "<@", "<[", "<`", "<{", "a < b <Z<\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, s := range []string{s, strings.TrimSpace(s)} {
			if got, want := unbullet(s), bullet.ReplaceAllString(s, ""); got != want {
				t.Errorf("%q without bullets: %q, want %q", s, got, want)
			}
			if got, want := escapeTags(s), tagStart.ReplaceAllString(s, "&lt;$1"); got != want {
				t.Errorf("%q escaped: %q, want %q", s, got, want)
			}
		}
	})
}
