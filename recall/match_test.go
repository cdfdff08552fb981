package recall

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWindows: sums that slide along a run are those of each window.
func TestWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		x, counts := &Index{docs: make([]Doc, n), run: make([]int32, n)}, make([]float64, n)
		for i := range n {
			counts[i] = float64(r.IntN(9))
			if i > 0 {
				x.run[i] = x.run[i-1] + r.Int32N(5)/4
			}
		}
		for side := range 4 {
			want := make([]float64, n)
			for i := range n {
				for j := i - side; j <= i+side; j++ {
					if x.near(i, j) {
						want[i] += counts[j]
					}
				}
			}
			if got := x.windows(counts, side); !slices.Equal(got, want) {
				t.Errorf("side %d of %v in runs %v: %v, want %v", side, counts, x.run, got, want)
			}
		}
	}
}
