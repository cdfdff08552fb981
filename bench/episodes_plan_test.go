package bench_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/tidemark-ai/tidemark"
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

// TestEpisodesHold: what is pinned, or is the newest call of a tool that keeps the state of the task, stays wherever it stands,
// whether anything is known from an earlier plan or not.
func TestEpisodesHold(t *testing.T) {
	budget := compaction.Budget{Window: 200_000, Reserve: compaction.DefaultReserve, Keep: compaction.DefaultKeep}
	for _, n := range []int{20, 63, 64, 65, 300} {
		v, err := bench.EpisodeHistory(100, 1)
		if err != nil {
			t.Fatal(err)
		}
		kept := &compaction.Episodes{}
		kept.Plan(v, budget)
		for v.Items[n].Message.Role != tidemark.Assistant || len(v.Items[n].Message.Calls()) != 1 {
			n++
		}
		for _, pinned := range []bool{true, false} {
			it := &v.Items[n]
			if it.Pinned = pinned; !pinned {
				it.Message = tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(it.Message.Calls()[0], compaction.DefaultStay, nil)}}
				kept = &compaction.Episodes{}
			}
			cold, warm := (&compaction.Episodes{}).Plan(v, budget), kept.Plan(v, budget)
			if len(cold) == 0 || !reflect.DeepEqual(cold, warm) || !reflect.DeepEqual(cold, kept.Plan(v, budget)) {
				t.Errorf("item %d, pinned %t: %d edits, and %d with what was known", n, pinned, len(cold), len(warm))
			}
			left, err := compaction.Preview(v, cold, budget)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(left.Items, func(o compaction.Item) bool { return o.ID == it.ID }) {
				t.Errorf("item %d, pinned %t: it left", n, pinned)
			}
		}
	}
}
