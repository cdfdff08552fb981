package compaction

import (
	"fmt"
	"strings"
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

// TestTrimRowBound: the edits of one overlay fill it to the byte, and each overlay is filled anew.
func TestTrimRowBound(t *testing.T) {
	edit := func(n int) tidemark.Edit { // of so many bytes
		e := tidemark.Edit{From: "e", Block: 1, Blocks: []tidemark.Block{tidemark.Text("")}}
		e.Blocks[0].Text = strings.Repeat("x", n-len(encoded(t, e)))
		return e
	}
	const half = trimRow / 2
	for _, row := range []struct {
		sizes []int
		want  string // how many edits each has
	}{{[]int{half, half}, "[2]"}, {[]int{half, half + 1}, "[1 1]"}, {[]int{half, half + 1, half - 1}, "[1 2]"}, {[]int{half, half + 1, half, 100}, "[1 1 2]"}, {[]int{trimRow + 1, 100}, "[1 1]"}} {
		var edits []tidemark.Edit
		for _, n := range row.sizes {
			edits = append(edits, edit(n))
		}
		out, err := trimRows(edits, TrimMetrics{Before: 9, After: 5})
		var got []int
		for i, o := range out {
			got = append(got, len(o.Edits))
			if (o.After == 5) != (i == 0) {
				t.Errorf("%v: overlay %d comes to %d", row.sizes, i, o.After)
			}
		}
		if err != nil || fmt.Sprint(got) != row.want {
			t.Errorf("%v: %v, %v, want %s", row.sizes, got, err, row.want)
		}
	}
}
