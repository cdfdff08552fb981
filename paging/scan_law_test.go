package paging

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestScanLaw: what is taken for a value is what encoding/json takes for one, and ends where it does; which escapes there are is
// looked at when a string is decoded.
func TestScanLaw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	good := 0
	for range 60_000 {
		raw := tidemarktest.OddJSON(r)
		c := cursor{data: []byte(raw)}
		c.skip()
		ok := c.err == nil && c.peek() == 0 && c.i == len(raw)
		if valid := json.Valid([]byte(raw)); ok != valid && (valid || !strings.Contains(raw, `\`)) {
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
