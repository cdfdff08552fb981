package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestWindowToTry: half of what was refused, within bounds.
func TestWindowToTry(t *testing.T) {
	for _, c := range []struct {
		name                           string
		window, taken, size, fixed, is tidemark.Tokens
	}{
		{"half of the request", 200_000, 0, 40_000, 1_000, 20_000},
		{"half of the window, where the request is over it", 24_000, 0, 60_000, 1_000, 12_000},
		{"what it took before", 200_000, 30_000, 40_000, 1_000, 30_000},
		{"it took more before than was refused", 200_000, 50_000, 40_000, 1_000, 20_000},
		{"it took as much before", 200_000, 40_000, 40_000, 1_000, 20_000},
		{"room for what nothing takes away", 200_000, 0, 20_000, 19_000, 38_000},
		{"room for a talk", 8_192, 0, 5_000, 1_000, MinWindow},
		{"never more than the window", 3_000, 0, 5_000, 1_000, 3_000},
	} {
		var v View
		v.Size, v.Fixed = c.size, c.fixed
		if got := windowToTry(c.window, c.taken, v); got != c.is {
			t.Errorf("%s: %d, want %d", c.name, got, c.is)
		}
	}
}
