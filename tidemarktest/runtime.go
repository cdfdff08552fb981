package tidemarktest

import (
	"context"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

var _ tidemark.Runtime = (*Runtime)(nil)

// Runtime is a [tidemark.Runtime] on Go's own clock, which is the fake one within testing/synctest.
// A panic in its goroutines fails the test, and so does a goroutine that has not ended with it.
type Runtime struct {
	t testing.TB

	mu      sync.Mutex // guards the following
	running int
	started int
	idle    chan struct{} // closed when running falls to 0; nil while nobody waits
}

// Patience is how long tests wait for what must come: a machine may be busy, so what is still missing then hangs. In a
// synctest bubble the time passes at once.
const Patience = 2 * time.Minute

// NewRuntime gives a runtime that belongs to t.
func NewRuntime(t testing.TB) *Runtime {
	r := &Runtime{t: t}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := r.Wait(ctx); err != nil {
			t.Errorf("%d goroutines of the runtime outlive the test", r.Running())
		}
	})
	return r
}

// Now implements [tidemark.Runtime].
func (r *Runtime) Now() time.Time { return time.Now() }

// Sleep implements [tidemark.Runtime].
func (r *Runtime) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WithTimeout implements [tidemark.Runtime].
func (r *Runtime) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, tidemark.ErrTimeout)
}

// Go implements [tidemark.Runtime].
func (r *Runtime) Go(f func()) {
	r.mu.Lock()
	r.running++
	r.started++
	r.mu.Unlock()
	go func() {
		defer r.end()
		defer func() {
			if p := recover(); p != nil {
				r.t.Errorf("panic in a goroutine of the runtime: %v\n%s", p, debug.Stack())
			}
		}()
		f()
	}()
}

func (r *Runtime) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	if r.running == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// Running is the number of goroutines that have not ended.
func (r *Runtime) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// Started is the number of goroutines that were ever started.
func (r *Runtime) Started() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// Wait waits until no goroutine runs, or until ctx ends and then returns its cause.
func (r *Runtime) Wait(ctx context.Context) error {
	r.mu.Lock()
	if r.running == 0 {
		r.mu.Unlock()
		return nil
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
