package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark/recall"
)

// TestBoth: what only the first of two queries found stays a find.
func TestBoth(t *testing.T) {
	got := both([]recall.Hit{{Doc: 1, Score: 2, Coverage: 1}, {Doc: 2, Score: 1}}, []recall.Hit{{Doc: 3, Score: 3}, {Doc: 1, Score: 1}}, 1)
	if len(got) != 3 || got[0].Doc != 3 || got[1].Doc != 1 || got[1].Coverage != 1 || got[2].Doc != 2 {
		t.Errorf("%+v", got)
	}
}
