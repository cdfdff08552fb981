package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
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

// TestWordsFilled: facts of an older version get their words with the first searches, also when new ones come
// first, and each once.
func TestWordsFilled(t *testing.T) {
	w := newWorld(t)
	const facts = 450
	for i := range facts / 9 {
		var some []string
		for j := range 9 {
			some = append(some, fmt.Sprintf("Old fact number %d about deployments", 9*i+j))
		}
		w.remember(scope(t, owners), fmt.Sprint("old", i), some...)
	}
	w.settle()
	for _, o := range w.list() { // only the ledger knows them
		if err := w.blobs.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.wordless()
	w.remember(scope(t, owners), "new", "A new fact about zeppelins")
	for range 2 {
		for query, want := range map[string]string{"zeppelin": "A new fact about zeppelins", "deployed number 3": "Old fact number 3 about deployments"} {
			if got, _, _ := strings.Cut(w.search(owners, query), "\n"); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		rows, err := w.db.Query(t.Context(), `SELECT count(*), count(DISTINCT w.rowid) FROM agent_words w JOIN agent_facts f ON f.seq = w.rowid WHERE f.agent = 'main' LIMIT 1`)
		if err != nil || rows[0].Int(0) != facts+1 || rows[0].Int(1) != facts+1 {
			t.Errorf("%v rows, %v, want %d", rows, err, facts+1)
		}
		w.restart()
	}
}

// wordless makes the database one of an older version, whose facts had no words, and opens it.
func (w *world) wordless() {
	w.t.Helper()
	if err := w.db.Tx(w.t.Context(), []tidemark.Stmt{{SQL: `DROP TABLE agent_windows`}, {SQL: `UPDATE schema_versions SET version = 2 WHERE space = 'agent'`, Want: 1}}); err != nil {
		w.t.Fatal(err)
	}
	w.restart()
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
