package tidemarktest

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Blocks reads blocks of a message, each a JSON object.
func Blocks(t testing.TB, raw ...string) (out []tidemark.Block) {
	t.Helper()
	for _, r := range raw {
		var b tidemark.Block
		if err := json.Unmarshal([]byte(r), &b); err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}
