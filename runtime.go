package tidemark

import (
	"context"
	"time"
)

// Runtime is what an actor may do beside compute. Nothing else waits or starts a goroutine in code
// that reaches the Worker: there one Go instance serves many Durable Objects, and a Go timer or a
// bare goroutine would wake in the event of another object (RATIONALE, "Why no Go timers?").
type Runtime interface {
	// Now is the wall clock. It may jump, in either direction.
	Now() time.Time
	// Sleep waits for d or until ctx ends, and then returns its cause.
	Sleep(ctx context.Context, d time.Duration) error
	// WithTimeout is context.WithTimeout; the cause after d is ErrTimeout.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	// Go runs f on its own, recovers its panics and counts it. It ends when f does.
	Go(f func())
}
