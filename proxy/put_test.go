package proxy

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestResultsSeen: what the model has seen in a later leg of its turn is in what the API reported of that, and does not count
// again.
func TestResultsSeen(t *testing.T) {
	result := func(n int) []json.RawMessage { return []json.RawMessage{json.RawMessage(strings.Repeat("x", 4*n))} }
	p := &put{Places: []placed{{Split: true, Results: result(100)}, {Results: result(30)}, {Split: true}, {Results: result(5)}}}
	if all, fresh := p.tokens(true), p.tokens(false); all != 162 || fresh != 42 {
		t.Errorf("all are %d, those that it has not seen %d, want 162 and 42", all, fresh)
	}
	if n := (*put)(nil).tokens(true); n != 0 {
		t.Errorf("where nothing of ours was %d", n)
	}
}
