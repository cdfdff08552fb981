package body

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestScanLaw: what is taken for a value is what encoding/json takes for one, and ends where it does.
func TestScanLaw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	good := 0
	for range 60_000 {
		raw := tidemarktest.OddJSON(r)
		c := cursor{data: []byte(raw)}
		c.skip()
		ok := c.err == nil && c.peek() == 0 && c.i == len(raw)
		if ok != json.Valid([]byte(raw)) {
			t.Fatalf("%q: %t, %v at %d", raw, ok, c.err, c.i)
		}
		if ok {
			good++
		}
	}
	if good < 5000 {
		t.Errorf("%d values are whole", good)
	}
}

// TestDepth: what is nested deeper than may be is refused.
func TestDepth(t *testing.T) {
	for depth := MaxDepth - 2; depth < MaxDepth+3; depth++ {
		for _, raw := range []string{strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth), strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)} {
			c := cursor{data: []byte(raw)}
			if c.skip(); (c.err == nil) != (depth <= MaxDepth) {
				t.Errorf("%d deep: %v", depth, c.err)
			}
		}
	}
}
