package compaction_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// TestHalvesOfADocument: both halves of a document are read as what a file says, and not as a person's words.
func TestHalvesOfADocument(t *testing.T) {
	doc, err := tidemark.TextDocument("lease.txt", strings.Repeat("clause ", 500)+"the end")
	if err != nil {
		t.Fatal(err)
	}
	m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("keep it"), doc}}
	all := ""
	for _, half := range compaction.Halves([]compaction.Item{{Message: m, Tokens: tidemark.Estimate(m)}}) {
		text := compaction.Transcribe(half)
		if strings.Contains(strings.ReplaceAll(text, "[user] keep it", ""), "[user]") || !strings.Contains(text, "[document") {
			t.Errorf("%.200s", text)
		}
		all += text
	}
	if strings.Count(all, "clause") != 500 || !strings.Contains(all, "lease.txt") || !strings.Contains(all, "the end") {
		t.Errorf("%d clauses", strings.Count(all, "clause"))
	}
}
