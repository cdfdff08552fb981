package reflection

import (
	"math/rand/v2"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

func TestReflect(t *testing.T) {
	const limit = 100_000
	for _, tc := range []struct {
		name string
		e    Evidence
		want Tuning
	}{
		{"nothing", Evidence{}, Tuning{}},
		{"too few recalls", Evidence{Recalls: 4, Misses: 4}, Tuning{}},
		{"as it should be", Evidence{Recalls: 10, Misses: 3}, Tuning{}},
		{"many misses", Evidence{Recalls: 10, Misses: 4}, Tuning{Tail: 15, Large: 640, Headroom: 15_000, Severity: "moderate"}},
		{"most missed", Evidence{Recalls: 10, Misses: 7}, Tuning{Tail: 20, Large: 1280, Headroom: 10_000, Severity: "high"}},
		{"evicted too early", Evidence{Recalls: 10, Misses: 1, Early: 4}, Tuning{Tail: 15, Severity: "moderate"}},
		{"found each time", Evidence{Recalls: 20}, Tuning{Tail: 7, Large: 240, Headroom: 25_000}},
		{"too much at once", Evidence{Tokens: 40_001}, Tuning{Headroom: 15_000, Severity: "moderate"}},
		{"too many at once", Evidence{Events: 101}, Tuning{Headroom: 15_000, Severity: "moderate"}},
		{"found, but too much at once", Evidence{Recalls: 30, Events: 500}, Tuning{Tail: 7, Large: 240, Headroom: 15_000, Severity: "moderate"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tune(tc.e, limit)
			if (got.Why == "") != (tc.want == Tuning{}) {
				t.Errorf("why %q", got.Why)
			}
			if got.Why = ""; got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestReflectBounds: whatever the evidence, what is set is within its bounds, and the same again.
func TestReflectBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for range 20_000 {
		limit := tidemark.Tokens(rng.IntN(1_000_000) + 100)
		e := Evidence{Recalls: rng.IntN(60), Events: rng.IntN(300), Tokens: tidemark.Tokens(rng.IntN(100_000))}
		e.Misses = rng.IntN(e.Recalls + 1)
		e.Early = rng.IntN(e.Recalls - e.Misses + 1)
		got := tune(e, limit)
		if got != tune(e, limit) {
			t.Fatalf("%+v: not the same again", e)
		}
		if got.Tail != 0 && (got.Tail < 5 || got.Tail > 20) || got.Large != 0 && (got.Large < 240 || got.Large > 1280) ||
			got.Headroom != 0 && (got.Headroom < limit/10 || got.Headroom > limit/3) {
			t.Fatalf("%+v at limit %d: %+v", e, limit, got)
		}
	}
}
