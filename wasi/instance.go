package wasi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"
)

// Why an instance was ended before it ended by itself.
var (
	errTime   = errors.New("time limit")
	errOutput = errors.New("output limit")
	errIdle   = errors.New("not needed any more")
	errSlow   = errors.New("does not read its input at its start")
	errClosed = errors.New("the tools are closed")
)

// How much of standard error is kept. The first words say what is wrong, where a stack trace follows; the last
// ones, where a log leads there.
const (
	stderrHead = 1 << 10
	stderrTail = 2 << 10
)

// instance is one run of a module, for one call. Its goroutine ends with the module, which ends when the life of
// the instance does: at the next turn of a loop or call of a function.
type instance struct {
	life context.Context //nolint:containedctx // of the run, which outlives none of its callers' contexts
	end  context.CancelCauseFunc
	feed chan []byte   // the input, once
	wait chan struct{} // closed when it waits for input
	done chan struct{} // closed when it has ended
	born time.Time

	in     stdin
	out    writer
	errs   ends
	early  bool // it opened a file before it read; written before wait or done is closed
	fed    bool // of the instance's goroutine alone
	memory int64
	err    error // how the module ended; this and memory are written before done is closed
}

// start begins a run. left is called at its end, before done is closed.
func (e *engine) start(name string, l limits, root *os.Root, left func(*instance)) *instance {
	in := &instance{feed: make(chan []byte, 1), wait: make(chan struct{}), done: make(chan struct{}), born: time.Now()}
	in.life, in.end = context.WithCancelCause(context.Background())
	in.in.of = in
	in.out = writer{most: l.output, over: func() { in.end(errOutput) }}
	in.errs.life = in.life
	go func() {
		defer close(in.done)
		defer left(in)
		defer in.end(nil)
		in.err = in.run(e, name, root)
	}()
	return in
}

// run is the life of the module. It runs with nothing but what is named here.
func (in *instance) run(e *engine, name string, root *os.Root) error {
	config := wazero.NewModuleConfig().WithName("").WithArgs(name).WithStartFunctions().
		WithStdin(&in.in).WithStdout(&in.out).WithStderr(&in.errs).
		WithSysWalltime().WithSysNanotime().WithNanosleep(in.sleep).WithRandSource(rand.Reader)
	if root != nil {
		m := &mount{root: root, ctx: in.life, used: func() { in.early = in.early || !in.fed }}
		fs := wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(m.forGuest(), guestMount) //nolint:forcetypeassert // it says so
		config = config.WithFSConfig(fs)
	}
	mod, err := e.rt.InstantiateModule(in.life, e.code, config)
	if err != nil {
		return err
	}
	_, err = mod.ExportedFunction("_start").Call(in.life)
	if m := mod.ExportedMemory("memory"); m != nil {
		in.memory = int64(m.Size())
	}
	return errors.Join(err, mod.Close(context.Background()))
}

// sleep waits for a module, at most as long as it lives.
func (in *instance) sleep(ns int64) {
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
	case <-in.life.Done():
	}
}

// stdin gives the input once it is there. The first read is where an instance waits in advance.
type stdin struct {
	of   *instance
	data []byte
}

// Read implements io.Reader.
func (s *stdin) Read(p []byte) (int, error) {
	if in := s.of; !in.fed {
		close(in.wait)
		select {
		case s.data = <-in.feed:
			in.fed = true
		case <-in.life.Done():
			in.fed = true
			return 0, syscall.EIO
		}
	}
	n := copy(p, s.data)
	s.data = s.data[n:]
	if s.of.life.Err() != nil {
		return 0, syscall.EIO
	}
	return n, nil // 0 is the end, to wazero
}

// writer keeps what a module writes, up to a bound.
type writer struct {
	most int
	over func()
	mu   sync.Mutex // guards the following: a caller that does not wait for the end of the module reads meanwhile
	kept []byte
	full bool
}

// Write implements io.Writer. Beyond the bound it costs nothing, because a module may ask for it without end.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full {
		return 0, syscall.EFBIG
	}
	if len(w.kept)+len(p) > w.most {
		w.kept = append(w.kept, p[:w.most-len(w.kept)]...)
		w.full = true
		w.over()
		return 0, syscall.EFBIG
	}
	w.kept = append(w.kept, p...)
	return len(p), nil
}

func (w *writer) bytes() (kept []byte, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept, w.full
}

// ends keeps the beginning and the end of what a module writes.
type ends struct {
	life context.Context //nolint:containedctx // of the instance: it ends a write of many pieces
	mu   sync.Mutex      // guards the following
	head []byte
	tail []byte // up to twice its bound
	cut  bool   // something between them is gone
}

// Write implements io.Writer. However long p is, it costs little.
func (e *ends) Write(p []byte) (int, error) {
	if e.life.Err() != nil {
		return 0, syscall.EIO
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(p)
	first := min(len(p), stderrHead-len(e.head))
	e.head, p = append(e.head, p[:first]...), p[first:]
	if len(p) > stderrTail {
		p, e.tail, e.cut = p[len(p)-stderrTail:], e.tail[:0], true
	}
	e.tail = append(e.tail, p...)
	if len(e.tail) > 2*stderrTail {
		e.shorten()
	}
	return n, nil
}

func (e *ends) shorten() {
	e.tail, e.cut = append(e.tail[:0], e.tail[len(e.tail)-stderrTail:]...), true
}

// text is what was kept, for people and models.
func (e *ends) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.tail) > stderrTail {
		e.shorten()
	}
	text := string(e.head)
	if e.cut {
		text += " […] "
	}
	return strings.TrimSpace(strings.ToValidUTF8(text+string(e.tail), ""))
}

// exit is how a module ended: its exit code, or what it failed of.
func exit(err error) (code uint32, fault string) {
	var ended *sys.ExitError
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &ended):
		return ended.ExitCode(), ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	const long = 300
	return 0, fmt.Sprintf("%.*s", long, strings.TrimPrefix(first, "wasm error: "))
}
