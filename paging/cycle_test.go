package paging

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestCycle: where results come at an even rate and none is read again, batches come as often as is best.
func TestCycle(t *testing.T) {
	const requests = 150
	for _, bytes := range []int{4_000, 10_000, 30_000} {
		var b strings.Builder
		b.WriteString(`{"session":"s","steps":[{"append":[{"role":"user","content":"Read them."}]}`)
		for i := range requests {
			fmt.Fprintf(&b, `,{"append":[{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"Read","input":{"file_path":"/f%d"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%d %s"}]}]}`,
				i, i, i, i, strings.Repeat("x", bytes))
		}
		b.WriteString(`]}`)
		sc := Scanner{Tools: DefaultTools()}
		s, err := sc.Session([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		best, at := math.Inf(1), 0
		for period := 1; period <= 30; period++ {
			leave, from := make([][]int, len(s.Steps)), 0
			for k := period + 2; k < len(leave); k += period {
				for ; from < k-2; from++ {
					leave[k] = append(leave[k], from)
				}
			}
			if c := planCost(t, Options{}, s, leave); c < best {
				best, at = c, period
			}
		}
		r := replayed(t, Options{}, s)
		if ratio := r.Cost / best; !(ratio <= 1.02) {
			t.Errorf("results of %d bytes: %.3f of what a batch each %d requests costs, want at most 1.02", bytes, ratio, at)
		}
	}
}
