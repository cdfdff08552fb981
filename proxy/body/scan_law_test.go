package body

import (
	"strings"
	"testing"
)

// TestDepth: what is nested deeper than may be is refused.
func TestDepth(t *testing.T) {
	for depth := MaxDepth - 2; depth < MaxDepth+3; depth++ {
		for _, raw := range []string{strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth), strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)} {
			c := over([]byte(raw))
			if c.Skip(); (c.Err() == nil) != (depth <= MaxDepth) {
				t.Errorf("%d deep: %v", depth, c.Err())
			}
		}
	}
}
