package order

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

type pair struct{ key, n int }

func pairs(rng *rand.Rand, n int) []pair {
	out := make([]pair, n)
	for i := range out {
		out[i] = pair{rng.IntN(1 + n/4), i}
	}
	return out
}

func byKey(a, b pair) int { return cmp.Compare(a.key, b.key) }

// TestBy: it is what the library's stable sort does.
func TestBy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		list := pairs(rng, n)
		want := slices.Clone(list)
		slices.SortStableFunc(want, byKey)
		if By(list, byKey); !slices.Equal(list, want) {
			t.Fatalf("%v, want %v", list, want)
		}
	}
}

// BenchmarkBy has the library as its baseline.
func BenchmarkBy(b *testing.B) {
	for _, n := range []int{50, 10_000} {
		list := pairs(rand.New(rand.NewPCG(1, 2)), n)
		for name, sort := range map[string]func([]pair, func(a, b pair) int){"order": By[[]pair], "slices": slices.SortStableFunc[[]pair]} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					sort(slices.Clone(list), byKey)
				}
			})
		}
	}
}
