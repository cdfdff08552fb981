package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

func block(t *testing.T, raw string) tidemark.Block {
	t.Helper()
	var b tidemark.Block
	if err := b.UnmarshalJSON([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRecallable: text comes back at any size, images and documents up to a bound, other blocks of a result never.
func TestRecallable(t *testing.T) {
	media := func(kind string, n int) string {
		return `{"type":"` + kind + `","source":{"type":"base64","media_type":"a/b","data":"` + strings.Repeat("A", n) + `"}}`
	}
	result := func(parts ...string) string {
		return `{"type":"tool_result","tool_use_id":"c","content":[` + strings.Join(parts, ",") + `]}`
	}
	long := `{"type":"text","text":"` + strings.Repeat("a", compaction.RecallBytes) + `"}`
	for _, row := range []struct {
		name, raw string
		want      bool
	}{
		{"a long text", long, true},
		{"a long result", result(long), true},
		{"a long input", `{"type":"tool_use","id":"c","name":"n","input":{"a":"` + strings.Repeat("a", compaction.RecallBytes) + `"}}`, true},
		{"an image", media("image", 100_000), true},
		{"a document", media("document", 100_000), true},
		{"an image over the bound", media("image", compaction.RecallBytes), false},
		{"a document that its frame takes over the bound", media("document", compaction.RecallBytes-500), false},
		{"a result with a document", result(media("document", 10)), true},
		{"images that fit one by one", result(media("image", compaction.RecallBytes/2), media("image", compaction.RecallBytes/2)), false},
		{"an image beside a long text", result(long, media("image", 10)), false},
		{"a result of another kind", result(`{"type":"search_result","title":"t"}`), false},
		{"another block", `{"type":"container_upload","file_id":"f"}`, false},
	} {
		if got := compaction.Recallable(block(t, row.raw)); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// TestPagingCountsWhatLeft: what paging says that left is what its edits put out, also where a stub is shorter than the
// page only without the handle that it names.
func TestPagingCountsWhatLeft(t *testing.T) {
	w := &world{}
	const pages = 40
	w.add(tidemark.NewText(tidemark.User, "go"))
	for i := range pages { // one byte more each: from shorter than any stub to longer
		w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("c", i), "Read", fmt.Appendf(nil, `{"file_path":"/a/b%d.go"}`, i))}})
		w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(fmt.Sprint("c", i), strings.Repeat("x", 4*i+40), false)}})
	}
	for range 12 {
		w.add(tidemark.NewText(tidemark.Assistant, "yes"))
		w.add(tidemark.NewText(tidemark.User, strings.Repeat("on ", 500)))
	}
	v, _ := w.view(t)
	p := eager()
	p.MinBytes, p.Tau, p.Policy = 1, 2, "fifo"
	edits := p.Plan(v, wide)
	left := p.Out(v, wide)
	if left != len(edits) || left == 0 || left == pages {
		t.Errorf("%d pages are out, %d edits say so, of %d", left, len(edits), pages)
	}
}
