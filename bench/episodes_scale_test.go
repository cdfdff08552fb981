package bench_test

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
)

// TestEpisodesScale: a pass stands on the provider's measure, whether it counts more or fewer tokens than we estimate.
func TestEpisodesScale(t *testing.T) {
	for _, percent := range []tidemark.Tokens{60, 83, 100, 140} {
		v, err := bench.EpisodeHistory(40, 1)
		if err != nil {
			t.Fatal(err)
		}
		estimated := v.Size
		v.Size = estimated * percent / 100
		e := &compaction.Episodes{Budget: episodes.Budget{Tokens: 12_000}}
		b := compaction.Budget{Window: 200_000, Reserve: 20_000, Keep: 20_000}
		after, err := compaction.Preview(v, e.Plan(v, b), b)
		if err != nil {
			t.Fatal(err)
		}
		size := (v.Fixed + after.Tokens()) * percent / 100
		if low := e.LowMark(b); size > low || size < low-3000 {
			t.Errorf("counted as %d %% of the estimate: %d tokens stay of %d, want a little below %d", percent, size, v.Size, low)
		}
	}
}
