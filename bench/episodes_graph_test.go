package bench_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
)

// BenchmarkGraph makes the graph of a whole log, and copies it as a branch does. A session adds each message once.
func BenchmarkGraph(b *testing.B) {
	for _, n := range []int{100, 1600} {
		v, err := bench.EpisodeHistory(n, 1)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("add/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g := (&compaction.Episodes{}).NewGraph()
				for i := range v.Items {
					it := &v.Items[i]
					g.Add(episodes.Message{ID: it.ID, Seq: it.Seq, Tokens: it.Tokens, Content: it.Message})
				}
				if len(g.Episodes()) < n {
					b.Fatalf("%d episodes", len(g.Episodes()))
				}
			}
		})
		b.Run(fmt.Sprintf("clone/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if c := v.Graph.Clone(); len(c.Episodes()) < n {
					b.Fatalf("%d episodes", len(c.Episodes()))
				}
			}
		})
	}
}
