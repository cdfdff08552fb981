package recall_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark/recall"
)

// TestFuse: a document that shares no word with the query comes in by its vector, and one that both find
// comes before it.
func TestFuse(t *testing.T) {
	texts := []string{"The harbour master keeps the tide tables.", "We moored at dusk.", "Bread and salt.", "The tide turned at four.", "Oars, ropes, a lamp."}
	var docs []recall.Doc
	for i, s := range texts {
		docs = append(docs, recall.Doc{ID: fmt.Sprint(i), Pos: int64(10 * i), Group: int64(i), Text: s})
	}
	x := recall.New(docs, nil)
	q := recall.Parse("tide tables", nil)
	hits := x.Search(q, recall.Stats{})
	order := func(near map[string]recall.Stand) (ids []string) {
		for _, h := range x.Fuse(hits, near) {
			ids = append(ids, docs[h.Doc].ID)
		}
		return ids
	}
	words := order(nil)
	if words[0] != "0" || slices.Contains(words, "2") {
		t.Fatal(words)
	}
	if got := order(map[string]recall.Stand{"2": {Rank: 1, Z: 9}}); got[0] != "0" || !slices.Contains(got, "2") || len(got) != len(words)+1 {
		t.Error(got)
	}
	if got := order(map[string]recall.Stand{"3": {Rank: 1, Z: 9}}); got[0] != "3" {
		t.Error("both find it:", got)
	}
	if got := order(map[string]recall.Stand{"3": {Rank: 1, Z: 3.5}}); !slices.Equal(got, words) {
		t.Error("it does not stand out:", got)
	}
}

// TestStanding: of random likenesses hardly any stands out, of equal ones none, and one that is far from the
// others does.
func TestStanding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]float64, 2000)
	for i := range all {
		all[i] = rng.NormFloat64()
	}
	if got := recall.Standing(all, 16); len(got) > 10 {
		t.Error(len(got))
	}
	all[77] = 12
	if got := recall.Standing(all, 1); len(got) != 1 || got[77].Rank != 1 || got[77].Weight() != 1 {
		t.Error(got)
	}
	if got := recall.Standing(make([]float64, 9), 16); len(got) != 0 {
		t.Error(got)
	}
}
