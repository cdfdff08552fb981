package wasi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of instances that are started in advance.
const (
	idlePerTool = 2
	idleInAll   = 16
	idleTime    = 5 * time.Minute // after which an instance, and then the code of its module, is given back
	startTime   = time.Second     // to the first read of the input
	maxStrikes  = 3               // starts that did not get there, after which a tool goes without
)

// tool is one version of an installed tool. What is behind mu is guarded by Tools.mu.
type tool struct {
	Installed
	schema schema
	limits limits
	root   *os.Root // of the mount, nil for none

	opening sync.Mutex // held while its module is compiled
	broken  error      // what another try will not mend; guarded by opening

	engine  *engine // nil until it is needed
	uses    int     // callers that have it
	live    int     // instances that have not ended
	idle    []*instance
	filling bool
	strikes int
	retired bool // another version took its place, or none
	used    time.Time
}

// open returns the code of a tool that the caller holds.
func (ts *Tools) open(ctx context.Context, t *tool) (*engine, error) {
	t.opening.Lock()
	defer t.opening.Unlock()
	ts.mu.Lock()
	e, closed := t.engine, ts.closed
	ts.mu.Unlock()
	switch {
	case closed:
		return nil, fmt.Errorf("tool %s: %w: %w", t.Name, errClosed, tidemark.ErrUnavailable)
	case t.broken != nil:
		return nil, t.broken
	case e != nil:
		return e, nil
	}
	module, err := readBounded(filepath.Join(t.Folder, moduleName), MaxModule)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	if e, err = ts.compiler.engine(ctx, module, t.limits); err != nil {
		err = fmt.Errorf("tool %s: %w", t.Name, err)
		if errors.Is(err, tidemark.ErrInvalid) && ctx.Err() == nil {
			t.broken = err
		}
		return nil, err
	}
	ts.mu.Lock()
	t.engine = e
	ts.mu.Unlock()
	return e, nil
}

// begin starts an instance of a tool that the caller holds.
func (ts *Tools) begin(t *tool, e *engine) *instance {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.live++
	in := e.start(t.Name, t.limits, t.root, func(in *instance) {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		delete(ts.running, in)
		t.live--
		ts.settle(t)
	})
	ts.running[in] = struct{}{}
	if ts.closed {
		in.end(errClosed)
	}
	return in
}

// release gives a tool back.
func (ts *Tools) release(t *tool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.uses--
	t.used = time.Now()
	ts.settle(t)
}

// settle frees a retired tool that nobody has any more. It is called with the lock held.
func (ts *Tools) settle(t *tool) {
	if !t.retired || t.uses > 0 || t.live > 0 {
		return
	}
	if t.engine != nil {
		t.engine.close()
		t.engine = nil
	}
	if t.root != nil {
		_ = t.root.Close() // it was only read
		t.root = nil
	}
}

// retire takes a version out of use; calls in work end as they began. It is called with the lock held.
func (ts *Tools) retire(t *tool) {
	t.retired = true
	ts.spare(t, time.Now())
	ts.settle(t)
}

// spare ends the instances that wait since before a time. It is called with the lock held.
func (ts *Tools) spare(t *tool, before time.Time) {
	keep := t.idle[:0]
	for _, in := range t.idle {
		if in.born.After(before) {
			keep = append(keep, in)
			continue
		}
		in.end(errIdle)
		ts.idle--
	}
	clear(t.idle[len(keep):])
	t.idle = keep
}

// take returns an instance that waits for its input, nil for none. The one that waits longest goes first: its
// clock is the oldest.
func (ts *Tools) take(t *tool) *instance {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(t.idle) == 0 {
		return nil
	}
	in := t.idle[0]
	t.idle = append(t.idle[:0], t.idle[1:]...)
	ts.idle--
	return in
}

// fill starts instances of a tool in advance, in the background.
func (ts *Tools) fill(t *tool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.filling || t.engine == nil || !ts.room(t) {
		return
	}
	t.filling = true
	t.uses++
	e := t.engine
	ts.work.Add(1)
	go func() {
		defer ts.work.Done()
		defer ts.release(t)
		for ts.advance(t, e) {
		}
	}()
}

// room reports whether a tool may have one more. It is called with the lock held.
func (ts *Tools) room(t *tool) bool {
	return !ts.closed && !t.retired && t.strikes < maxStrikes && len(t.idle) < idlePerTool && ts.idle < idleInAll
}

// advance starts one instance and has it wait; it returns false when there is nothing more to do. One tool at a
// time does that, so that starting takes one processor at most.
func (ts *Tools) advance(t *tool, e *engine) bool {
	ts.filler.Lock()
	defer ts.filler.Unlock()
	ts.mu.Lock()
	if !ts.room(t) {
		t.filling = false
		ts.mu.Unlock()
		return false
	}
	ts.mu.Unlock()
	in := ts.begin(t, e)
	limit := time.NewTimer(min(startTime, t.limits.time))
	defer limit.Stop()
	waits := false
	select {
	case <-in.wait:
		waits = !in.early
	case <-in.done:
	case <-limit.C:
	}
	if !ts.keep(t, in, waits) {
		in.end(errSlow)
		in.ended() // before another one starts
	}
	return true
}

// keep has a started instance wait for a call, or says that it is not wanted.
func (ts *Tools) keep(t *tool, in *instance, waits bool) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	switch {
	case waits && ts.room(t):
		t.strikes = 0
		t.idle = append(t.idle, in)
		ts.idle++
		return true
	case waits: // closed or replaced meanwhile
	case in.isEarly():
		t.strikes = maxStrikes // what it read would be stale at its call
	default:
		t.strikes++
	}
	return false
}

// isEarly reports an instance that read its mount before its input. It is for one that waits or has ended.
func (in *instance) isEarly() bool {
	select {
	case <-in.wait:
	case <-in.done:
	default:
		return false
	}
	return in.early
}

// tend gives back what is not needed any more, until the tools are closed.
func (ts *Tools) tend() {
	defer ts.work.Done()
	const looks = 10 // in idleTime
	tick := time.NewTicker(idleTime / looks)
	defer tick.Stop()
	for {
		select {
		case <-ts.life.Done():
			return
		case now := <-tick.C:
			ts.rest(now.Add(-idleTime))
		}
	}
}

// rest gives back what was not used since a time.
func (ts *Tools) rest(since time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		ts.spare(t, since)
		if t.engine != nil && t.uses == 0 && t.live == 0 && t.used.Before(since) {
			t.engine.close()
			t.engine = nil
		}
	}
}
