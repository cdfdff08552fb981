package compaction_test

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// TestFit: the documented formula holds wherever it can; small windows scale.
func TestFit(t *testing.T) {
	for _, c := range []struct{ window, reserve, keep, limit, kept tidemark.Tokens }{
		{200_000, 20_000, 20_000, 180_000, 20_000},
		{60_000, 20_000, 20_000, 40_000, 20_000},
		{40_000, 20_000, 20_000, 20_000, 10_000},
		{32_000, 20_000, 20_000, 16_000, 8_000},
		{8_000, 20_000, 20_000, 4_000, 2_000},
		{6_000, 1_500, 1_200, 4_500, 1_200},
		{8_000, 5_000, 2_000, 3_000, 1_500},
		{2_000, 1_000_000, 0, 1_000, 0},
	} {
		b := compaction.Budget{Window: c.window, Reserve: c.reserve, Keep: c.keep}.Fit()
		if b.Limit() != c.limit || b.Keep != c.kept {
			t.Errorf("window %d, reserve %d, keep %d: limit %d, keeps %d; want %d, %d", c.window, c.reserve, c.keep, b.Limit(), b.Keep, c.limit, c.kept)
		}
	}
}
