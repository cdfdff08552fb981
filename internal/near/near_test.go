package near

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"text", "text", 0}, {"txet", "text", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {strings.Repeat("a", 200), "a", 99}} {
		if got := distance(row.a, row.b); got != row.want {
			t.Errorf("%q, %q: %d, want %d", row.a, row.b, got, row.want)
		}
	}
}

// TestName: what is offered has something of what was written.
func TestName(t *testing.T) {
	for _, row := range []struct{ name, s, known, want string }{
		{"a letter out", "lmit", "cursor limit", "limit"},
		{"swapped", "txet", "text", "text"},
		{"capitals", "Q", "q k", "q"},
		{"one letter for another", "n", "q k", ""},
		{"two for one", "no", "q k", ""},
		{"two others for two", "to", "on", ""},
		{"two swapped", "no", "on q", "on"},
		{"three for two", "abc", "xc", ""},
		{"the nearest", "sinze", "singe since", "singe"}, // both are; the first is taken
		{"a nearer one behind", "untilx", "untie until", "until"},
		{"a third of a long name", "compaction.reserve", "compaction.reserveTokens", "compaction.reserveTokens"},
		{"nothing", "", "q", ""},
		{"none known", "q", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Name(row.s, strings.Fields(row.known)); got != row.want {
				t.Errorf("%q of %q: %q, want %q", row.s, row.known, got, row.want)
			}
		})
	}
}
