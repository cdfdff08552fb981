package agent_test

import (
	"slices"
	"strings"
	"testing"
)

// TestSearchOrder: the line that holds most of a query is first, other forms of a word are found, and what
// has none of its words is not among the results.
func TestSearchOrder(t *testing.T) {
	w := newWorld(t)
	lines := []string{"the deploy runs on Fridays", "pnpm is the package manager, pnpm install", "uses pnpm", "nothing to see", "deploying with pnpm", "Ann lives in Bonn", "the poem is How to Be, of its day", "it is what it is"}
	write(t, w.blobs, day, "- "+strings.Join(lines, "\n- ")+"\n")
	rows := []struct {
		query string
		first string
		all   []string
	}{
		{"pnpm", "", []string{lines[1], lines[2], lines[4]}},
		{"deploy pnpm", lines[4], []string{lines[0], lines[1], lines[2], lines[4]}},
		{"deployed", "", []string{lines[0], lines[4]}},
		{"where does Ann live?", lines[5], []string{lines[5]}},
		{"zebra", "", nil},
		{"how to be", "", []string{lines[6]}}, // of words that tell nothing, those that have them all
		{"what is it", "", []string{lines[7]}},
		{"its theirs", "", nil},
	}
	for _, r := range rows {
		t.Run(r.query, func(t *testing.T) {
			got := strings.Split(w.search(owners, r.query), "\n")
			if again := strings.Split(w.search(owners, r.query), "\n"); !slices.Equal(got, again) {
				t.Errorf("%q, and then %q", got, again)
			}
			if r.first != "" && got[0] != r.first {
				t.Errorf("%q, want %q first", got, r.first)
			}
			got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
			slices.Sort(got)
			slices.Sort(r.all)
			if !slices.Equal(got, r.all) {
				t.Errorf("%q, want %q", got, r.all)
			}
		})
	}
	if got := w.search(stanger, "what is it"); got != "" {
		t.Errorf("somebody else finds %q", got)
	}
}

// list is the keys of all objects.
func (w *world) list() []string {
	w.t.Helper()
	page, _, err := w.blobs.List(w.t.Context(), "", "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, o := range page {
		out = append(out, o.Key)
	}
	return out
}
