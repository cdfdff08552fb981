package memory

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestPlainParts: ASCII has the parts by either way.
func TestPlainParts(t *testing.T) {
	const letters = "abzABCZ019_-./"
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 50_000 {
		token := []byte(strings.Repeat("aBc", i%2*rng.IntN(30)))
		for range 1 + rng.IntN(10) {
			token = append(token, letters[rng.IntN(len(letters))])
		}
		s := string(token)
		if got, want := appendPlainParts(nil, s, strings.ToLower(s)), appendParts(nil, s); !slices.Equal(got, want) {
			t.Fatalf("%s: %q, want %q", s, got, want)
		}
	}
}
