package session

import (
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
