package bench_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/compaction"
)

// BenchmarkEpisodes plans one pass over a history of which nothing has left, of some episodes with twelve messages each:
// with nothing known before, and with what the turn before counted.
func BenchmarkEpisodes(b *testing.B) {
	budget := compaction.Budget{Window: 200_000, Reserve: compaction.DefaultReserve, Keep: compaction.DefaultKeep}
	for _, n := range []int{100, 400, 1600} {
		v, err := bench.EpisodeHistory(n, 1)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("cold/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len((&compaction.Episodes{}).Plan(v, budget)) == 0 {
					b.Fatal("nothing leaves")
				}
			}
		})
		b.Run(fmt.Sprintf("warm/%d", n), func(b *testing.B) {
			e := &compaction.Episodes{}
			e.States(v)
			b.ReportAllocs()
			for b.Loop() {
				if len(e.Plan(v, budget)) == 0 {
					b.Fatal("nothing leaves")
				}
			}
		})
	}
}
