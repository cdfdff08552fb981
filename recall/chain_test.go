package recall

import (
	"fmt"
	"slices"
	"testing"
)

// TestBehind: what only the first of two queries found stays a find.
func TestBehind(t *testing.T) {
	got := Behind([]Hit{{Doc: 1, Score: 2, Coverage: 1}, {Doc: 2, Score: 1}}, []Hit{{Doc: 3, Score: 3}, {Doc: 1, Score: 1}}, 1)
	if len(got) != 3 || got[0].Doc != 3 || got[1].Doc != 1 || got[1].Coverage != 1 || got[2].Doc != 2 {
		t.Errorf("%+v", got)
	}
}

// TestChain: two texts that share a rare name answer together; not where one lacks the rarest word, where the name is
// everywhere, where one has it all or asks it, or where nothing leads from one to the other.
func TestChain(t *testing.T) {
	const (
		filler = "The ferry leaves at nine."
		keeper = "The walnut gate is in the care of MIRA-12 since last spring."
		code   = "MIRA-12 carries the code 5f3a99c1."
		query  = "which code carries the one who cares for the walnut gate"
	)
	var everywhere []string
	for i := range linkMost {
		everywhere = append(everywhere, filler, filler, filler, fmt.Sprintf("MIRA-12 went to room %d.", i), filler, filler, filler)
	}
	for name, row := range map[string]struct {
		query string
		docs  []Doc
		want  bool
	}{
		"two of a chain":         {query, lines(keeper, filler, filler, filler, filler, code, filler), true},
		"told by two":            {query, lines(keeper, filler, filler, filler, filler, code, filler), false},
		"a year":                 {"which lock code does the walnut gate have", lines("The walnut gate was painted in 2026.", filler, filler, filler, filler, "In 2026 the cellar got a lock whose code is 7712."), false},
		"a port":                 {"what is the password of the billing service", lines("We moved the billing service to port 8080.", filler, filler, filler, filler, "The password for the staging proxy on 8080 is hunter22."), false},
		"another gate":           {"which code carries the one who cares for the acorn gate", lines(keeper, filler, filler, filler, filler, code, filler), false},
		"no name in common":      {query, lines("The walnut gate is in the care of Mira since last spring.", filler, filler, filler, filler, "Somebody carries the code 5f3a99c1.", filler), false},
		"another name":           {query, lines(keeper, filler, filler, filler, filler, "MIRA-13 carries the code 5f3a99c1.", filler), false},
		"a name of everything":   {query, lines(append([]string{keeper, filler, filler, filler, filler, code, filler, filler}, everywhere...)...), false},
		"asked alone":            {query, lines(keeper, filler, filler, filler, filler, "Which code does MIRA-12 carry?", filler), false},
		"the second has no more": {"which gate of walnut in care", lines(keeper, filler, filler, filler, filler, "MIRA-12 likes the walnut gate.", filler), false},
	} {
		if name == "told by two" {
			row.docs[0].Speaker, row.docs[5].Speaker = "Alice", "Mallory"
		}
		x, q := New(row.docs, nil), Parse(row.query, nil)
		first := x.Search(q, Stats{})
		next, ok := x.Hop(q, first)
		if !ok {
			t.Errorf("%s: nothing to search for", name)
			continue
		}
		hits, got := x.Chain(Behind(first, x.Search(next, Stats{}), 1), Stats{})
		if got != row.want || got && (x.Judge(q, first) == Confident || x.Docs()[hits[0].Doc].Text != code || x.Docs()[hits[1].Doc].Text != keeper) {
			t.Errorf("%s: %v, %s, %v", name, got, x.Judge(q, first), hits)
		}
	}
}

// sameHits compares what is told of hits.
func sameHits(a, b []Hit) bool {
	return slices.EqualFunc(a, b, func(x, y Hit) bool { x.by, y.by = nil, nil; return x == y })
}

// TestHopOfAnotherThing: what only a find without the rarest word of the question names is not searched for.
func TestHopOfAnotherThing(t *testing.T) {
	const filler = "The ferry leaves at nine."
	x := New(lines("The walnut gate is in the care of MIRA-12.", filler, filler, "The oak gate is in the care of OTTO-77, and so is its lock.", filler), nil)
	q := Parse("who has the care of the walnut gate and its lock today", nil)
	next, ok := x.Hop(q, x.Search(q, Stats{}))
	if !ok || !slices.Contains(next.Terms, "mira-12") || slices.Contains(next.Terms, "otto-77") {
		t.Errorf("searched for %q", next.Terms)
	}
}
