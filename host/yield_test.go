package host_test

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
)

// TestPage: so many entries of a history stand in memory together, or so many tokens, and always one.
func TestPage(t *testing.T) {
	list := func(n int, tokens tidemark.Tokens) (out []tidemark.Skeleton) {
		for i := range n {
			out = append(out, tidemark.Skeleton{Seq: int64(i + 1), Tokens: tokens})
		}
		return out
	}
	for _, tc := range []struct {
		name string
		list []tidemark.Skeleton
		want int
	}{
		{"nothing", nil, 0}, {"as many as may be", list(64, 1), 64}, {"more", list(65, 1), 64}, {"as large as may be", list(5, 50_000), 5}, {"larger", list(5, 50_001), 4}, {"one that is too large", list(3, 900_000), 1},
	} {
		got := host.PageOf(tc.list)
		if len(got) != tc.want || tc.want > 0 && got[tc.want-1] != int64(tc.want) {
			t.Errorf("%s: %v, want %d", tc.name, got, tc.want)
		}
	}
}

// paused is a runtime that notes its pauses.
type paused struct {
	tidemark.Runtime
	slept []time.Duration
}

func (p *paused) Sleep(ctx context.Context, d time.Duration) error {
	p.slept = append(p.slept, d)
	return context.Cause(ctx)
}

// TestPace: behind so much work others have a turn, and the work is counted anew.
func TestPace(t *testing.T) {
	rt := &paused{Runtime: hosttest.Runtime(t)}
	var p host.Yielder
	for i, step := range []struct{ bytes, pauses int }{{host.YieldBytes - 1024 - 1, 0}, {0, 1}, {host.YieldBytes - 1024 - 1, 1}, {0, 2}, {host.YieldBytes - 1024, 3}} {
		if err := p.Did(t.Context(), rt, step.bytes); err != nil || len(rt.slept) != step.pauses {
			t.Errorf("step %d: %d pauses, %v, want %d", i, len(rt.slept), err, step.pauses)
		}
	}
	if rt.slept[0] != host.YieldRest {
		t.Errorf("a pause of %s", rt.slept[0])
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := p.Did(ctx, rt, host.YieldBytes); err == nil {
		t.Error("who left goes on")
	}
}
