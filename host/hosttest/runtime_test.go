package hosttest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
)

// TestRuntime: waiting in the host's own time. It is short real time; only under js is there no other.
func TestRuntime(t *testing.T) {
	const short = 20 * time.Millisecond
	stop := errors.New("stopped by hand")
	for _, tc := range []struct {
		name string
		wait func(ctx context.Context, rt tidemark.Runtime) error
		want error
		long bool // lasts for short, not for nothing
	}{
		{"sleep", func(ctx context.Context, rt tidemark.Runtime) error { return rt.Sleep(ctx, short) }, nil, true},
		{"no sleep", func(ctx context.Context, rt tidemark.Runtime) error { return rt.Sleep(ctx, -1) }, nil, false},
		{"deadline", func(ctx context.Context, rt tidemark.Runtime) error {
			ctx, cancel := rt.WithTimeout(ctx, short)
			defer cancel()
			return rt.Sleep(ctx, time.Hour)
		}, tidemark.ErrTimeout, true},
		{"deadline of the parent", func(ctx context.Context, rt tidemark.Runtime) error {
			ctx, cancel := rt.WithTimeout(ctx, short)
			defer cancel()
			ctx, inner := rt.WithTimeout(ctx, time.Hour)
			defer inner()
			return rt.Sleep(ctx, time.Hour)
		}, tidemark.ErrTimeout, true},
		{"deadline not needed", func(ctx context.Context, rt tidemark.Runtime) error {
			ctx, cancel := rt.WithTimeout(ctx, time.Hour)
			cancel()
			return rt.Sleep(ctx, time.Hour)
		}, context.Canceled, false},
		{"cancelled from a goroutine", func(ctx context.Context, rt tidemark.Runtime) error {
			ctx, cancel := context.WithCancelCause(ctx)
			rt.Go(func() {
				if rt.Sleep(context.Background(), short) == nil {
					cancel(stop)
				}
			})
			return rt.Sleep(ctx, time.Hour)
		}, stop, true},
		{"cancelled before", func(ctx context.Context, rt tidemark.Runtime) error {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(stop)
			return rt.Sleep(ctx, 0)
		}, stop, false},
		{"a panic is not ours", func(ctx context.Context, rt tidemark.Runtime) error {
			rt.Go(func() { panic("in a goroutine") })
			return rt.Sleep(ctx, short)
		}, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rt := hosttest.Runtime(t)
			start := rt.Now()
			if err := tc.wait(t.Context(), rt); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if slept := rt.Now().Sub(start); tc.long && slept < short-2*time.Millisecond { // longer it may be on a busy machine
				t.Errorf("it slept for %v only", slept)
			}
		})
	}
}
