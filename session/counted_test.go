package session

import (
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// TestCountsOfCuts: a block that lost its middle is told as cut, and not as shortened, too.
func TestCountsOfCuts(t *testing.T) {
	short := tidemark.Edit{From: "a", Block: 1, Blocks: []tidemark.Block{tidemark.Text("short")}}
	cut := tidemark.Edit{From: "b", Block: 1, Blocks: []tidemark.Block{tidemark.Text("cut")}, Data: []byte(mustJSON(compaction.Gap{Of: 100, Head: 10, Tail: 10}))}
	span := tidemark.Edit{From: "c", To: "d"}
	var c Compacted
	if spans := c.counts([]tidemark.Edit{short, cut, short}, -1); spans || c.Shortened != 2 || len(c.Cut) != 1 || c.Cut[0].Of != 100 {
		t.Errorf("spans %v, %+v", spans, c)
	}
	if spans := new(Compacted).counts([]tidemark.Edit{short, span}, -1); !spans {
		t.Error("a span is not seen")
	}
	if spans := new(Compacted).counts([]tidemark.Edit{short, span}, 1); spans {
		t.Error("a summary is taken for a span without one")
	}
}

// TestTopicOfTheNewest: what a turn is about is told by the last three things that people said.
func TestTopicOfTheNewest(t *testing.T) {
	words := []string{"harbour", "lighthouse", "compass", "lantern", "anchor"}
	var v View
	for _, w := range words {
		v.Items = append(v.Items, compaction.Item{Message: tidemark.NewText(tidemark.User, "about the "+w), Source: tidemark.FromPerson},
			compaction.Item{Message: tidemark.NewText(tidemark.Assistant, "ok"), Source: tidemark.FromModel})
	}
	got := topicWords(v)
	for i, w := range words {
		if slices.Contains(got, w) != (i >= 2) {
			t.Errorf("%s, in place %d of %d: %q", w, i, len(words), got)
		}
	}
}
