package memory

import (
	"strings"
	"testing"
)

// TestClean: bullets go, the start of a tag is escaped.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "- a": "a", "-a": "-a", "* - [x] b": "b", "• c": "c", "12. d": "d", "(12) e": "e", "1234. f": "1234. f", "(g": "(g", "1.h": "1.h",
		"## # i": "i", ">>> j": "j", "#": "", "# - 1) k": "k", "[ ]l": "[ ]l", "[y] m": "[y] m", "-\t\n\v": "", "—— n": "—— n", "3)": "3)", "- - ": "",
		"a<b": "a&lt;b", "<<a": "<&lt;a", "<1": "<1", "</x": "&lt;/x", "<!-- x -->": "&lt;!-- x --&gt;", "<?": "&lt;?", "<é <@ <[": "<é <@ <[", "a < b <Z<\xff": "a < b &lt;Z<",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzClean: a fact begins with no bullet and holds no tag, and is clean already.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"- a", "* - [x] b", "# - 1) k", "<<a", "</x", "<!-- x -->", "a < b <Z<\xff", "- \u200d- x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if bullets.MatchString(got) || tagStart.MatchString(got) || strings.Contains(got, "-->") {
			t.Errorf("%q: %q", s, got)
		}
	})
}
