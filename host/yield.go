package host

import (
	"context"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Work after which a long loop lets others have a turn. All objects of an isolate share one thread,
// whose clock stands still meanwhile, so work is counted and not timed: in WASM this much takes about
// 0.2 s at worst.
const (
	YieldBytes = 256 << 10
	YieldRest  = time.Millisecond // between two pages
	yieldItem  = 1 << 10          // what a message costs whatever its size
)

// Yielder counts the work of a loop. Its zero value is ready.
type Yielder struct{ work int }

// Did notes one item of that many bytes and waits for a moment when it is time.
func (p *Yielder) Did(ctx context.Context, rt tidemark.Runtime, bytes int) error {
	if p.work += bytes + yieldItem; p.work < YieldBytes {
		return nil
	}
	p.work = 0
	return rt.Sleep(ctx, YieldRest)
}

// PageOf returns the first entries of a history that may stand in memory together.
func PageOf(skeletons []tidemark.Skeleton) []int64 {
	const most, mostTokens = 64, 250_000
	var seqs []int64
	var tokens tidemark.Tokens
	for _, k := range skeletons {
		if tokens += k.Tokens; len(seqs) == most || len(seqs) > 0 && tokens > mostTokens {
			break
		}
		seqs = append(seqs, k.Seq)
	}
	return seqs
}
