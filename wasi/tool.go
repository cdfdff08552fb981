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

// idleTime is after which the code of a module is given back that nobody calls.
const idleTime = 5 * time.Minute

// tool is one version of an installed tool. What is behind broken is guarded by Tools.mu.
type tool struct {
	Installed
	schema schema
	limits limits
	root   *os.Root // of the mount, nil for none

	opening sync.Mutex // held while its module is compiled
	broken  error      // what another try will not mend; guarded by opening

	engine  *engine // nil until it is needed
	uses    int     // callers that have it, and instances that have not ended
	retired bool    // another version took its place, or none
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
func (ts *Tools) begin(t *tool, e *engine, input []byte) *instance {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.uses++
	in := e.start(t.Name, t.limits, t.root, input, func(in *instance) {
		ts.mu.Lock()
		delete(ts.running, in)
		t.used = time.Now()
		ts.mu.Unlock()
		ts.release(t)
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
	ts.settle(t)
}

// settle frees a retired tool that nobody has any more. It is called with the lock held.
func (ts *Tools) settle(t *tool) {
	if !t.retired || t.uses > 0 {
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
	ts.settle(t)
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

// rest gives back the code of what was not used since a time.
func (ts *Tools) rest(since time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		if t.engine != nil && t.uses == 0 && t.used.Before(since) {
			t.engine.close()
			t.engine = nil
		}
	}
}
