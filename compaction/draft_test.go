package compaction_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// TestDraft: a pointer that is counted and not yet written takes what it does when it is: whatever the ids, the
// time and the length of the result, one result in a message or several, inputs too.
func TestDraft(t *testing.T) {
	names := []string{"e_%06d", "e\"%06d", "e\\%06d", "e\n%06d", "é%06d", "\xff\xfe%06d", "\x01\x7f%06d"} // of the same length
	years := []int{2026, 1, 0, -5, 9999, 10_000, 12_026}
	one := func(r *rand.Rand, n int) string {
		return fmt.Sprintf(names[max(0, r.IntN(3*len(names))-2*len(names))], n) // most are plain
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 11))
		var v compaction.View
		add := func(n int, m tidemark.Message) {
			id := tidemark.EntryID(one(r, n))
			v.Items = append(v.Items, compaction.Item{ID: id, From: tidemark.EntryID(fmt.Sprint(n)), To: tidemark.EntryID(fmt.Sprint(n)), Seq: int64(n), Last: int64(n), Message: m, Tokens: tidemark.Estimate(m),
				At: time.Date(years[max(0, r.IntN(3*len(years))-2*len(years))], 3, 4, 5, 6, 7, 0, time.UTC)})
		}
		for n := 1; n < 60; {
			call := one(r, n)
			input := fmt.Appendf(nil, `{"path":"a","text":%q}`, strings.Repeat("tide ", r.IntN(400)))
			result := tidemark.ToolResult(call, strings.Repeat("turns, ", 100<<r.IntN(10))+"\nat noon", r.IntN(5) == 0)
			results := []tidemark.Block{result}
			if r.IntN(4) == 0 {
				results = append(results, tidemark.ToolResult(call+"b", strings.Repeat("ebb ", r.IntN(900)), false))
			}
			if r.IntN(8) == 0 {
				result.Content = append(result.Content, tidemark.Text("more"))
				results[0] = result
			}
			role := tidemark.User
			if r.IntN(10) == 0 {
				role = tidemark.Assistant
			}
			add(n, tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(call, "write", input)}})
			add(n+1, tidemark.Message{Role: role, Content: results})
			n += 2
		}
		v.Size = v.Tokens()
		counted, sum, written, err := compaction.Drafted(compaction.Pointer{Tail: 2}, v, compaction.Budget{Window: v.Size / tidemark.Tokens(2+r.IntN(8))})
		if err != nil {
			t.Fatal(err)
		}
		planned, all := 0, tidemark.Tokens(0)
		for i, it := range written {
			planned += it.Stubs
			if all += it.Tokens; counted[i] != it.Tokens {
				t.Fatalf("seed %d: %d tokens are counted for %q, it takes %d: %s", seed, counted[i], it.ID, it.Tokens, it.Message.AppendJSON(nil))
			}
		}
		if planned == 0 || sum != all {
			t.Fatalf("seed %d: %d pointers, %d tokens are counted, they take %d", seed, planned, sum, all)
		}
	}
}

// BenchmarkPointerMarkers plans over 200 events behind the markers of 1,023 compactions, as many markers as can
// stand, which all become one.
func BenchmarkPointerMarkers(b *testing.B) {
	c := &cycles{}
	const made = 1023
	for cycles := (made + 1) / 2; cycles > 0; cycles /= 2 {
		data := fmt.Appendf(nil, `{"marker":{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","count":100,"tokens":5000,"topics":[{"word":"docker","count":9},{"word":"tide","count":3}],"cycles":%d}}`, cycles)
		m, _ := compaction.MarkerOf(tidemark.Edit{Data: data})
		id := c.add(m.Message())
		it := &c.v.Items[len(c.v.Items)-1]
		it.Overlay, it.Data = id, data
	}
	entries, _ := workOf(200, 30)
	for _, e := range entries {
		c.add(e.Message)
	}
	fastest := time.Duration(1 << 62)
	for b.Loop() {
		begun := time.Now()
		edits := (compaction.Pointer{}).Plan(c.v, compaction.Budget{Window: c.v.Size / 2, Keep: c.v.Size / 10})
		fastest = min(fastest, time.Since(begun))
		if m, _ := compaction.MarkerOf(edits[len(edits)-1]); m.Cycles != made+1 {
			b.Fatalf("the marker stands for %d cycles", m.Cycles)
		}
	}
	b.ReportMetric(float64(fastest)/float64(time.Millisecond), "ms-fastest")
}
