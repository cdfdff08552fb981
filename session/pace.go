package session

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// Work after which a long loop lets others have a turn. All objects of an isolate share one thread,
// whose clock stands still meanwhile, so work is counted and not timed: in WASM this much takes about
// 0.2 s at worst.
const (
	paceBytes = 256 << 10
	paceItem  = 1 << 10 // what a message costs whatever its size
	paceRest  = room.PaceRest
)

// pace counts the work of a loop. Its zero value is ready.
type pace struct{ work int }

// did notes one item of that many bytes and waits for a moment when it is time.
func (p *pace) did(ctx context.Context, rt tidemark.Runtime, bytes int) error {
	if p.work += bytes + paceItem; p.work < paceBytes {
		return nil
	}
	p.work = 0
	return rt.Sleep(ctx, paceRest)
}
