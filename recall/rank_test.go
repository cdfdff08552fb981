package recall

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// chatter is a talk of two people in sittings, made of a few words, so that many hold some of a query.
func chatter(rng *rand.Rand, n int) []Doc {
	words := strings.Fields("harbour tide lamp rope anchor gull storm pier sail deck crew chart wind wave shore net crab mast keel bell")
	docs := make([]Doc, n)
	for i := range docs {
		var w []string
		for range 2 + rng.IntN(8) {
			w = append(w, words[rng.IntN(len(words))])
		}
		docs[i] = Doc{ID: fmt.Sprintf("%03d", i), Pos: int64(i), Group: int64(i / 12), Speaker: []string{"Ann", "Bob"}[i%2], Text: "I saw the " + strings.Join(w, " ") + []string{".", "?"}[rng.IntN(2)]}
	}
	return docs
}

// TestOrderIsOne: the normalised scores have the order of the scores, so that a card of which nothing is known yet, or
// the joining of answers, does not rank anew.
func TestOrderIsOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		x := New(chatter(rng, 100), nil)
		hits := x.Search(Parse("What did Bob say of the anchor on the pier in the storm?", nil), Stats{})
		if !slices.IsSortedFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Normalized, a.Normalized) }) {
			t.Fatal("the normalised scores have another order")
		}
		again := slices.Clone(hits)
		x.Rescore(again, Task{ID: "t", Goals: []string{"sail"}}, func(string) Known { return Known{} })
		for i := range hits {
			if again[i].Normalized != hits[i].Normalized || again[i].Score != hits[i].Score {
				t.Fatalf("a card that says nothing of them: place %d had %+v, has %+v", i, hits[i], again[i])
			}
		}
	}
}

// TestRescoreBeside: what a task says counts among the hits. A pinned one with a word of the query does not come
// before the one that has it all, and one of another premise is worth less than one that nothing is known of.
func TestRescoreBeside(t *testing.T) {
	x := New([]Doc{{ID: "exact", Pos: 1}, {ID: "pinned", Pos: 3}, {ID: "other", Pos: 5}}, nil)
	for _, phase := range []Phase{Idle, Planning, Debugging} {
		hits := []Hit{{Doc: 0, Normalized: 0.8}, {Doc: 2, Normalized: 0.5}, {Doc: 1, Normalized: 0.1}}
		x.Rescore(hits, Task{Goals: []string{"sail"}, Phase: phase}, func(id string) Known {
			return map[string]Known{"pinned": {Constraint: true}, "other": {Premise: "another"}}[id]
		})
		if hits[0].Doc != 0 || hits[0].Normalized != 0.8 || hits[1].Doc != 2 || hits[1].Normalized >= 0.5 || hits[2].Normalized != constraintFloor {
			t.Errorf("%s: %+v", phase, hits)
		}
	}
}

// TestWithSpeakers: an index with more of the same speakers reads what it has again no more, and ranks as a new one.
func TestWithSpeakers(t *testing.T) {
	docs := chatter(rand.New(rand.NewPCG(7, 8)), 60)
	old := New(docs[:40], nil)
	grown, q := old.With(docs), Parse("what did Ann say of the keel", nil)
	if !sameHits(grown.Search(q, Stats{}), New(docs, nil).Search(q, Stats{})) {
		t.Error("it ranks otherwise")
	}
	docs[0].Speaker = "Keel"
	if !sameHits(grown.With(docs).Search(q, Stats{}), New(docs, nil).Search(q, Stats{})) {
		t.Error("the words of a new speaker's name are words")
	}
}
