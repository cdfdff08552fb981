package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall/js"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Obj is one Durable Object, for as long as its host keeps it. It is the object's
// tidemark.Runtime, and gives its other ports: [Obj.DB], [Obj.Blobs], [Obj.Transport], [Obj.Peer].
type Obj struct {
	b          *bridge
	generation int
	kind, name string
	h          js.Value
	ctx        context.Context // ends with ErrDead when the host drops the object
	cancel     context.CancelCauseFunc
	app        App
	running    atomic.Int64 // goroutines started by Go and not ended
	panics     atomic.Int64 // panics that Go recovered
	mu         sync.Mutex   // guards calls; never held over a wait
	calls      map[int]context.CancelCauseFunc

	// Refused hears of a write that the object's storage refused; nil: nobody does. It is set when the object is opened.
	Refused func(error)
}

var _ tidemark.Runtime = (*Obj)(nil)

// Kind is the class of the object, "Session" or "Agent".
func (o *Obj) Kind() string { return o.kind }

// Name is the name by which the front found the object.
func (o *Obj) Name() string { return o.name }

// Logger is the one that the instance was given.
func (o *Obj) Logger() *slog.Logger { return o.b.logger }

// Panics is the number of panics that Go recovered since the object was opened.
func (o *Obj) Panics() int64 { return o.panics.Load() }

// Running is the number of goroutines that Go started and that have not ended.
func (o *Obj) Running() int64 { return o.running.Load() }

// Context ends when the host drops the object; its cause is then tidemark.ErrDead.
func (o *Obj) Context() context.Context { return o.ctx }

// Now is the wall clock. In production it stands still while Go computes.
func (o *Obj) Now() time.Time { return time.Now() }

// Go runs f in a goroutine of the object, recovers its panic, counts and logs it.
func (o *Obj) Go(f func()) {
	o.running.Add(1)
	go func() {
		defer o.running.Add(-1)
		defer func() {
			if p := recover(); p != nil {
				o.panics.Add(1)
				o.b.logger.Error("panic in a goroutine", "object", o.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}()
		f()
	}()
}

// maxSleep is the longest delay that setTimeout takes, in whole hours.
const maxSleep = 596 * time.Hour

// Sleep waits for d in a timer of the object's own.
func (o *Obj) Sleep(ctx context.Context, d time.Duration) error {
	for {
		if err := o.alive(ctx); err != nil || d <= 0 {
			return err
		}
		step := min(d, maxSleep)
		ms := (step + time.Millisecond - 1) / time.Millisecond
		if _, err := o.await(ctx, "sleep", int(ms)); err != nil {
			return err
		}
		d -= step
	}
}

// WithTimeout is context.WithTimeout without a Go timer; the cause after d is tidemark.ErrTimeout.
// The deadline is not to be seen in the context.
func (o *Obj) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	o.Go(func() {
		if o.Sleep(ctx, d) == nil {
			cancel(tidemark.ErrTimeout)
		}
	})
	return ctx, func() { cancel(context.Canceled) }
}

// alive gives the reason why nothing should be begun: the object or the context has ended.
func (o *Obj) alive(ctx context.Context) error {
	if o.ctx.Err() != nil {
		return tidemark.ErrDead
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// host calls a method of the object's JavaScript half that answers at once.
func (o *Obj) host(method string, args ...any) (v js.Value, err error) {
	if o.ctx.Err() != nil {
		return js.Undefined(), tidemark.ErrDead
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case js.Error:
			err = hostError(p.Value.Get("name").String() + ": " + p.Value.Get("message").String())
		default:
			panic(p)
		}
	}()
	return o.h.Call(method, args...), nil
}

// tell is host where nobody waits for the outcome: an object that has ended has nothing to hear.
func (o *Obj) tell(method string, args ...any) {
	if _, err := o.host(method, args...); err != nil && !errors.Is(err, tidemark.ErrDead) {
		o.b.logger.Error("host call", "object", o.name, "call", method, "err", err)
	}
}

// await calls a method that answers later and waits for it. When ctx ends first the operation is
// stopped and its answer, if it still comes, is dropped.
func (o *Obj) await(ctx context.Context, method string, args ...any) (js.Value, error) {
	if err := o.alive(ctx); err != nil {
		return js.Undefined(), err
	}
	id, w := o.b.wait(o)
	defer o.b.forget(id)
	if _, err := o.host(method, append([]any{id}, args...)...); err != nil {
		return js.Undefined(), err
	}
	select {
	case a := <-w.ch:
		if !a.ok {
			return js.Undefined(), hostError(a.v.String())
		}
		return a.v, nil
	case <-ctx.Done():
		o.tell("cancel", id)
		return js.Undefined(), context.Cause(ctx)
	case <-o.ctx.Done():
		return js.Undefined(), tidemark.ErrDead
	}
}
