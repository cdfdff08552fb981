package compaction

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestTrimOverlaysFitIntoRows: however much leaves, each overlay fits into a row, all edits are there in their order, and
// one of them tells what all came to.
func TestTrimOverlaysFitIntoRows(t *testing.T) {
	for _, n := range []int{0, 1, 3000, 12_000} {
		edits := make([]tidemark.Edit, n)
		for i := range edits {
			id := tidemark.EntryID(fmt.Sprintf("01K%023d", i))
			edits[i] = tidemark.Edit{From: id, Block: 1, Blocks: []tidemark.Block{tidemark.ToolResult("call", fmt.Sprintf("[Trimmed: ~9000 chars; Read /a/b/c.go; recall({\"entry\": %q}) reads it]", id), false)},
				Data: []byte(`{"trim":{"kind":"tool_result","chars":9000}}`)}
		}
		out, err := trimRows(edits, TrimMetrics{Before: 9, After: 5})
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for i, o := range out {
			if size := len(encoded(t, o)); size > tidemark.MaxRow*3/4 {
				t.Errorf("%d edits: overlay %d has %d bytes", n, i, size)
			}
			if (o.Before == 9) != (i == 0) || len(o.By) != 1 || o.By[0] != "trim" || o.Reason != "branch" {
				t.Errorf("%d edits: overlay %d is by %v for %s, from %d", n, i, o.By, o.Reason, o.Before)
			}
			for _, e := range o.Edits {
				if e.From != edits[at].From {
					t.Fatalf("%d edits: %s stands in the place of %s", n, e.From, edits[at].From)
				}
				at++
			}
		}
		if at != n || n == 12_000 && len(out) < 3 {
			t.Errorf("%d edits: %d in %d overlays", n, at, len(out))
		}
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
