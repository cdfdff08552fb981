package search

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/recall"
)

// TestSnippet: what is shown of a long text is where the name stands whole, not where a part of it stood
// first.
func TestSnippet(t *testing.T) {
	filler := strings.Repeat("a value of some path in the src of the tests, then more. ", 40)
	for _, row := range []struct{ name, text, query, want string }{
		{"a name behind its parts", filler + "src/tests/value_path.go:17" + filler, "src/tests/value_path.go", "value_path.go:17"},
		{"words together behind words apart", "value. " + filler + "The path of value seven is red." + filler, "path value seven", "seven is red"},
		{"the first of equal places", "needle one " + filler + "needle two", "needle", "needle one"},
		{"letters that change their length", "İ " + filler + "needle", "needle", "needle"},
		{"none of them", filler, "zebra", "a value of"},
	} {
		if got := snippet(row.text, recall.Parse(row.query, nil).Terms, 300); !strings.Contains(got, row.want) || len(got) > 620 {
			t.Errorf("%s: %d bytes %.200s", row.name, len(got), got)
		}
	}
}
