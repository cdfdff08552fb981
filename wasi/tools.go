package wasi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// DefaultRunning is how many calls run at once; others wait. Their memory together is bounded by it.
const DefaultRunning = 8

// Config is what tools are opened with.
type Config struct {
	// Home is the folder of the store; tools lie in tools/, compiled modules in cache/wasm/. Nothing is made
	// before it is needed.
	Home string
	// Reserved are the names of tools that are built in.
	Reserved []string
	// Running is how many calls run at once; 0: DefaultRunning.
	Running int
	// Logger may be nil.
	Logger *slog.Logger
}

// Tools are the modules of a home, ready to be called. Its methods may be called at once. What others add to the
// folder, change or remove is seen at the next listing or call.
type Tools struct {
	store    Store
	compiler compiler
	log      *slog.Logger
	slots    chan struct{} // one for each call that runs
	life     context.Context
	end      context.CancelFunc
	work     sync.WaitGroup // what runs in the background
	filler   sync.Mutex     // held while an instance is started in advance
	loading  sync.Mutex     // held while a tool is read from disk

	mu      sync.Mutex // guards the following, and what tool says
	all     map[string]*tool
	running map[*instance]struct{}
	idle    int // instances that wait for their input
	closed  bool
	said    map[string]string // what was logged of broken tools
}

// Open opens the tools of a home. It starts a goroutine that gives back what is idle; Close ends it.
func Open(c Config) (*Tools, error) {
	if c.Home == "" {
		return nil, fmt.Errorf("open tools: no home folder: %w", tidemark.ErrInvalid)
	}
	log := c.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ts := &Tools{store: Store{Home: c.Home, Reserved: c.Reserved}, log: log,
		compiler: compiler{cache: cache{dir: filepath.Join(c.Home, "cache", "wasm")}, log: log},
		slots:    make(chan struct{}, cmp.Or(c.Running, DefaultRunning)),
		all:      map[string]*tool{}, running: map[*instance]struct{}{}, said: map[string]string{}}
	ts.life, ts.end = context.WithCancel(context.Background())
	ts.store.mend()
	ts.work.Add(1)
	go ts.tend()
	return ts, nil
}

// Close ends all calls and frees what they used. It waits for them, a few seconds at most.
func (ts *Tools) Close() error {
	ts.mu.Lock()
	if ts.closed {
		ts.mu.Unlock()
		return nil
	}
	ts.closed = true
	ts.end()
	var ending []*instance
	for in := range ts.running {
		in.end(errClosed)
		ending = append(ending, in)
	}
	ts.mu.Unlock()
	limit := time.NewTimer(2 * endGrace)
	defer limit.Stop()
	for _, in := range ending {
		select {
		case <-in.done:
		case <-limit.C:
			return fmt.Errorf("close tools: a module reads from its mount and does not come back: %w", tidemark.ErrTimeout)
		}
	}
	ts.work.Wait()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for name, t := range ts.all {
		delete(ts.all, name)
		ts.retire(t)
	}
	return nil
}

// endGrace is how long a module that is to end may take. It ends at once, but for a read from a dead disk.
const endGrace = 2 * time.Second

// Tools lists the tools that work, by name. Broken ones are left out; the log says why, once.
func (ts *Tools) Tools(context.Context) ([]tidemark.Tool, error) {
	names, err := ts.store.names()
	if err != nil {
		return nil, err
	}
	out := make([]tidemark.Tool, 0, len(names))
	for _, name := range names {
		t, err := ts.acquire(name)
		if err != nil {
			ts.tell(name, err)
			continue
		}
		out = append(out, tidemark.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema,
			Idempotent: t.Idempotent, Timeout: t.limits.time + queueTime})
		ts.drop(t)
	}
	ts.forget(names)
	return out, nil
}

// queueTime is what a call may take beside its run: it waits for others, or its module is compiled.
const queueTime = 10 * time.Second

// tell logs that a tool is broken, once for each reason.
func (ts *Tools) tell(name string, err error) {
	ts.mu.Lock()
	told := ts.said[name] == err.Error()
	ts.said[name] = err.Error()
	ts.mu.Unlock()
	if !told && !errors.Is(err, tidemark.ErrNotFound) {
		ts.log.Warn("a tool is left out: mend it, or take it away with `tidemark tool rm`", "tool", name, "err", err)
	}
}

// forget retires the tools that are gone.
func (ts *Tools) forget(there []string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for name, t := range ts.all {
		if !slices.Contains(there, name) {
			delete(ts.all, name)
			ts.retire(t)
		}
	}
	for name := range ts.said {
		if !slices.Contains(there, name) {
			delete(ts.said, name)
		}
	}
}

// List reads what is installed, broken tools too.
func (ts *Tools) List() ([]Installed, error) { return ts.store.List() }

// Find reads one tool. One that is broken comes with an error.
//
// # Errors
//
// tidemark.ErrNotFound when there is none, tidemark.ErrInvalid and tidemark.ErrTooLarge for one that is broken.
func (ts *Tools) Find(name string) (Installed, error) {
	if checkName(name) != nil {
		return Installed{}, ts.store.missing(name)
	}
	return ts.store.read(name)
}

// acquire returns a tool as it is now. The caller gives it back by release, or by drop when it did not run it.
//
// # Errors
//
// tidemark.ErrNotFound when there is none, others when it is broken.
func (ts *Tools) acquire(name string) (*tool, error) {
	if err := checkName(name); err != nil {
		return nil, ts.store.missing(name)
	}
	if t := ts.current(name); t != nil {
		return t, nil
	}
	ts.loading.Lock()
	defer ts.loading.Unlock()
	if t := ts.current(name); t != nil { // another call was faster
		return t, nil
	}
	t, err := ts.load(name)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if old := ts.all[name]; old != nil {
		delete(ts.all, name)
		ts.retire(old)
	}
	if err != nil {
		return nil, err
	}
	t.uses, t.used = 1, time.Now()
	if ts.closed {
		t.retired = true
		return t, nil
	}
	ts.all[name] = t
	return t, nil
}

// current returns the version in memory if it is the one on disk.
func (ts *Tools) current(name string) *tool {
	files, err := ts.store.stat(name)
	if err != nil {
		return nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.all[name]
	if t == nil {
		return nil
	}
	for i, f := range files {
		if k := t.files[i]; !os.SameFile(f, k) || f.Size() != k.Size() || !f.ModTime().Equal(k.ModTime()) {
			return nil
		}
	}
	t.uses++
	return t
}

func (ts *Tools) load(name string) (*tool, error) {
	one, err := ts.store.read(name)
	if err != nil {
		return nil, err
	}
	t := &tool{Installed: one, limits: one.limits()}
	if t.schema, err = parseSchema(one.InputSchema); err != nil {
		return nil, err
	}
	t.root, err = openMount(one.Manifest, ts.store.Home)
	return t, err
}

// drop gives back a tool that was only looked at.
func (ts *Tools) drop(t *tool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.uses--
	ts.settle(t)
}

// Call runs a tool. What the tool does wrong, and an input that it does not take, is a result with is_error.
//
// # Errors
//
// The cause of ctx when that ended, tidemark.ErrUnavailable when the tools are closed, and those of the file system.
func (ts *Tools) Call(ctx context.Context, call tidemark.Block) (tidemark.Block, error) {
	r, err := ts.Run(ctx, call)
	return r.Result, err
}

// Run is Call with figures.
func (ts *Tools) Run(ctx context.Context, call tidemark.Block) (Run, error) {
	began := time.Now()
	t, err := ts.acquire(call.Name)
	if err != nil {
		return refused(call, err)
	}
	defer ts.release(t)
	if why := t.wrong(call.Input); why != "" {
		return Run{Result: tidemark.ToolResult(call.ID, fmt.Sprintf("%s was not run: %s", t.Name, why), true), Took: time.Since(began)}, nil
	}
	select {
	case ts.slots <- struct{}{}:
	case <-ctx.Done():
		return Run{}, context.Cause(ctx)
	case <-ts.life.Done():
		return Run{}, fmt.Errorf("tool %s: %w: %w", t.Name, errClosed, tidemark.ErrUnavailable)
	}
	e, err := ts.open(ctx, t)
	if err != nil {
		<-ts.slots
		return refused(call, err)
	}
	in := ts.take(t)
	r := Run{Waited: in != nil}
	if in == nil {
		in = ts.begin(t, e)
	}
	r.Result, err = ts.await(ctx, t, in, call)
	if err == nil {
		r.Took = time.Since(began)
		out, _ := in.out.bytes()
		r.Output, r.Memory = len(out), in.used()
	}
	ts.fill(t)
	return r, err
}

// used is the memory of an instance that has ended.
func (in *instance) used() int64 {
	select {
	case <-in.done:
		return in.memory
	default:
		return 0
	}
}

// refused is a call of a tool that is not there or broken.
func refused(call tidemark.Block, err error) (Run, error) {
	for _, kind := range []error{tidemark.ErrNotFound, tidemark.ErrInvalid, tidemark.ErrTooLarge} {
		if errors.Is(err, kind) {
			return Run{Result: tidemark.ToolResult(call.ID, "not run: "+strings.TrimSuffix(err.Error(), ": "+kind.Error()), true)}, nil
		}
	}
	return Run{}, err
}

// wrong says why an input is not given to a tool, in words for the model.
func (t *tool) wrong(input []byte) string {
	if len(input) > t.limits.input {
		return fmt.Sprintf("the input has %d bytes, at most %d (maxInputBytes in its manifest)", len(input), t.limits.input)
	}
	return t.schema.wrong(bytes.TrimSpace(input))
}

// await hands the input over and waits for the end. The slot of the call is free when the module has ended.
func (ts *Tools) await(ctx context.Context, t *tool, in *instance, call tidemark.Block) (tidemark.Block, error) {
	limit := time.AfterFunc(t.limits.time, func() { in.end(errTime) })
	defer limit.Stop()
	unwatch := context.AfterFunc(ctx, func() { in.end(context.Cause(ctx)) })
	defer unwatch()
	in.feed <- call.Input // it has room for this one
	ended := in.ended()
	if ended {
		<-ts.slots
	} else {
		go func() {
			<-in.done
			<-ts.slots
		}()
	}
	why := context.Cause(in.life)
	if ended && in.err == nil {
		why = nil
	} else if code, fault := exit(in.err); ended && code == 0 && fault == "" {
		why = nil
	}
	switch {
	case why == nil, errors.Is(why, errOutput):
	case errors.Is(why, errTime):
		ended = false
	case errors.Is(why, errClosed), errors.Is(why, errIdle):
		return tidemark.Block{}, fmt.Errorf("tool %s: %w: %w", t.Name, errClosed, tidemark.ErrUnavailable)
	case ctx.Err() != nil && errors.Is(why, context.Cause(ctx)):
		return tidemark.Block{}, why
	}
	return in.result(call, t.Manifest, ended), nil
}

// ended waits for the end of an instance. One that was told to end and does not is given up.
func (in *instance) ended() bool {
	select {
	case <-in.done:
		return true
	case <-in.life.Done():
	}
	grace := time.NewTimer(endGrace)
	defer grace.Stop()
	select {
	case <-in.done:
		return true
	case <-grace.C:
		return false
	}
}

// Add checks a tool, compiles its module and installs it. With replace it may take the place of another.
//
// # Errors
//
// tidemark.ErrInvalid and tidemark.ErrTooLarge for a module or a manifest that is wrong, tidemark.ErrConflict when
// there is one of the name. Then nothing was changed.
func (ts *Tools) Add(ctx context.Context, module []byte, m Manifest, replace bool) (Installed, error) {
	if err := m.Check(); err != nil {
		return Installed{}, err
	}
	if err := ts.store.check(m); err != nil {
		return Installed{}, err
	}
	e, err := ts.compiler.engine(ctx, module, m.limits())
	if err != nil {
		return Installed{}, err
	}
	e.close()
	if err := ts.store.put(module, m, replace); err != nil {
		return Installed{}, err
	}
	return ts.store.read(m.Name)
}

// Remove takes a tool away. Calls in work end as they began.
func (ts *Tools) Remove(name string) error { return ts.store.Remove(name) }
