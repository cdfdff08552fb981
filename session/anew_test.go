package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/search"
)

// deepZebra is a long result of a chore with one word far behind its beginning.
func deepZebra(c tidemark.Block) tidemark.Block {
	text := lines(90<<10, func(i int) string { return fmt.Sprintf("row %d of the dump %d", i, i*i) })
	return tidemark.ToolResult(c.ID, text+"here sits one okapi alone\n"+lines(20<<10, func(i int) string { return fmt.Sprintf("more %d", i) }), false)
}

// okapi counts what a recall finds of the deep word.
func (h *harness) okapi(all bool) (n int) {
	h.t.Helper()
	got, err := h.Recall(h.t.Context(), search.Wanted{Query: "okapi", All: all})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range got.Results {
		if strings.Contains(r.Text, "one okapi alone") {
			n++
		}
	}
	return n
}

// chored is a conversation with a turn that is skipped, whose result is long.
func chored(t *testing.T) *harness {
	t.Helper()
	h := newAlone(t, overBudget)
	h.model.set(chores)
	h.agent.call = deepZebra
	h.say("what is a tide?")
	h.say("what is an ebb?")
	h.say("ok, go on")
	return h
}

// TestSkippedDeep: what stands deep in a turn that is skipped is found by who asks for all, and by nobody else.
func TestSkippedDeep(t *testing.T) {
	h := chored(t)
	if n, all := h.okapi(false), h.okapi(true); n != 0 || all != 1 {
		t.Errorf("found %d times, %d times in all", n, all)
	}
	found, err := h.Search(t.Context(), "okapi", 10)
	if err != nil || len(found) != 0 {
		t.Errorf("a search finds %+v, %v", found, err)
	}
}
