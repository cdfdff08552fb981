package main

import (
	"os"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestMaxBody holds the bound to that of the front, which build/front.test.mjs holds to the same file.
func TestMaxBody(t *testing.T) {
	raw, err := os.ReadFile("../../testdata/front.json")
	var table struct{ MaxBody int64 }
	if err == nil {
		err = json.Unmarshal(raw, &table)
	}
	if err != nil || table.MaxBody != maxBody {
		t.Errorf("%d, %v; want %d", table.MaxBody, err, maxBody)
	}
}
