//go:build !js

package native

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
)

var _ tidemark.Runtime = (*Runtime)(nil)

// Runtime is the machine's clock and goroutines. All objects of a process may share one.
type Runtime struct {
	log *slog.Logger // may be nil

	mu      sync.Mutex // guards the following
	running int
	idle    chan struct{} // closed when running falls to 0; nil while nobody waits
}

// NewRuntime gives a runtime that reports panics to logger, which may be nil.
func NewRuntime(logger *slog.Logger) *Runtime { return &Runtime{log: logger} }

// Now implements [tidemark.Runtime].
func (r *Runtime) Now() time.Time { return time.Now() }

// Sleep implements [tidemark.Runtime].
func (r *Runtime) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
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
	r.mu.Unlock()
	go func() {
		defer r.end()
		defer func() {
			if p := recover(); p != nil && r.log != nil { // what it worked on resumes from its rows
				r.log.Error("panic in a goroutine", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
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

// Wait waits until no goroutine runs, or until ctx ends and then returns its cause. A server calls
// it after it has stopped to accept work.
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
		return fmt.Errorf("wait for %d goroutines: %w", r.Running(), context.Cause(ctx))
	}
}
