package recall

import (
	"cmp"
	"math"
	"slices"
)

// Bounds of the fusion, set so that rankings by vectors that know nothing (random ones, hashed letters,
// hashed words) leave LoCoMo's figures as they are, see RATIONALE.
const (
	fuseK      = 10  // of reciprocal rank fusion
	fuseWeight = 0.7 // of a vector that stands out as far as it can, beside 1 for the words
	standFrom  = 3.5 // standard deviations above the mean from which a vector says anything
	standFull  = 8.5 // and from which it says all that it can
)

// Stand is how a document stands out among all of a conversation by the likeness of its vector to the
// query's.
type Stand struct {
	Rank int     // from 1
	Z    float64 // standard deviations above the mean
}

// Weight is how much a vector counts, 0 to 1: what does not stand out says nothing.
func (s Stand) Weight() float64 {
	return min(1, max(0, (s.Z-standFrom)/(standFull-standFrom)))
}

// Standing tells which of many likenesses stand out, best first: at most so many, of those that may count.
func Standing(likeness []float64, most int) map[int]Stand {
	if len(likeness) < 2 {
		return nil
	}
	mean, dev := 0.0, 0.0
	for _, v := range likeness {
		mean += v / float64(len(likeness))
	}
	for _, v := range likeness {
		dev += (v - mean) * (v - mean) / float64(len(likeness))
	}
	dev = math.Sqrt(dev)
	if dev < 1e-9 || math.IsNaN(dev) {
		return nil
	}
	var ranks []int
	for i, v := range likeness {
		if (v-mean)/dev > standFrom {
			ranks = append(ranks, i)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(likeness[b], likeness[a]) })
	out := map[int]Stand{}
	for r, i := range ranks[:min(len(ranks), most)] {
		out[i] = Stand{Rank: r + 1, Z: (likeness[i] - mean) / dev}
	}
	return out
}

// Fuse orders hits by words and by vectors, by reciprocal rank (Cormack, Clarke and Büttcher, "Reciprocal
// Rank Fusion", SIGIR 2009). A document that vectors alone found is a hit of little score. Without vectors
// that stand out the order is that of the words.
func (x *Index) Fuse(hits []Hit, near map[string]Stand) []Hit {
	if len(near) == 0 {
		return hits
	}
	worth := make(map[int]float64, len(hits)+len(near))
	for r, h := range hits {
		worth[h.Doc] = 1 / (fuseK + float64(r+1))
	}
	out := slices.Clone(hits)
	for i, d := range x.docs {
		s, ok := near[d.ID]
		if !ok {
			continue
		}
		if worth[i] == 0 {
			out = append(out, Hit{Doc: i})
		}
		worth[i] += fuseWeight * s.Weight() / (fuseK + float64(s.Rank))
	}
	slices.SortStableFunc(out, func(a, b Hit) int { return cmp.Compare(worth[b.Doc], worth[a.Doc]) })
	Level(out)
	return out
}

// Level makes the normalised scores of hits agree with their order: each is worth what it stands before.
func Level(hits []Hit) {
	for i := len(hits) - 2; i >= 0; i-- {
		hits[i].Normalized = max(hits[i].Normalized, hits[i+1].Normalized)
	}
}
