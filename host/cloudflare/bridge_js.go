package cloudflare

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"syscall/js"

	"github.com/tidemark-ai/tidemark"
)

// App is what an object does with its events. The zero value answers 404 and ignores alarms.
type App struct {
	HTTP  http.Handler
	Alarm func(ctx context.Context) error // an error makes the platform call again, later
	// Sockets hears of the object's sockets; nil: it accepts none.
	Sockets tidemark.SocketHandler
}

// gcEvery is the number of events between two collections: Go's own collector sees only Go memory,
// while each reference it has not dropped yet pins a JavaScript object (54,000 were measured).
const gcEvery = 500

// bridge is the Go side of one instance: the objects in it and what they wait for.
type bridge struct {
	open   func(*Obj) App
	logger *slog.Logger
	mu     sync.Mutex // guards the following; never held over a wait
	objs   map[int]*Obj
	waits  map[int]*wait
	next   int
	events int
}

// wait is one answer that an object waits for.
type wait struct {
	obj *Obj
	ch  chan answer // holds one
}

// answer is what JavaScript delivered: a value, or an error as text.
type answer struct {
	ok bool
	v  js.Value
}

// Serve hands the instance to the bridge: open is called once for each object, in its first event,
// and must not wait. Serve never returns.
func Serve(logger *slog.Logger, open func(*Obj) App) {
	b := newBridge(logger, open)
	// syumai/workers reads the same object once at start; it is gone from the global scope afterwards.
	binding := js.Global().Get("context").Get("binding")
	b.register(binding)
	binding.Set("open", js.FuncOf(func(_ js.Value, args []js.Value) any {
		b.attach(args[0].Int(), args[1].String(), args[2].String(), args[3])
		return nil
	}))
	select {}
}

// Open attaches an object outside of any event. Only the test runner (build/exec-wasm.mjs) offers
// that; in a Worker objects come by [Serve].
func Open(logger *slog.Logger, kind, name string) (*Obj, error) {
	open := js.Global().Get("tidemarkOpen")
	if open.IsUndefined() {
		return nil, errors.New("open object: this host opens none by itself, use Serve")
	}
	b := newBridge(logger, func(*Obj) App { return App{} })
	binding := js.Global().Get("Object").New()
	b.register(binding)
	h := open.Invoke(kind, name, binding)
	return b.attach(h.Get("generation").Int(), kind, name, h), nil
}

func newBridge(logger *slog.Logger, open func(*Obj) App) *bridge {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &bridge{open: open, logger: logger, objs: map[int]*Obj{}, waits: map[int]*wait{}}
}

// register sets the functions by which JavaScript enters. They live as long as the instance, serve
// all objects, and never wait.
func (b *bridge) register(binding js.Value) {
	binding.Set("call", js.FuncOf(func(_ js.Value, args []js.Value) any {
		b.call(args[0].Int(), args[1].Int(), args[2].String(), args[3])
		return nil
	}))
	binding.Set("deliver", js.FuncOf(func(_ js.Value, args []js.Value) any {
		b.deliver(args[0].Int(), args[1].Int(), answer{ok: args[2].Bool(), v: args[3]})
		return nil
	}))
	binding.Set("gone", js.FuncOf(func(_ js.Value, args []js.Value) any {
		if o := b.obj(args[0].Int()); o != nil {
			o.gone(args[1].Int())
		}
		return nil
	}))
	binding.Set("kill", js.FuncOf(func(_ js.Value, args []js.Value) any {
		b.kill(args[0].Int())
		return nil
	}))
}

func (b *bridge) attach(generation int, kind, name string, h js.Value) *Obj {
	ctx, cancel := context.WithCancelCause(context.Background())
	o := &Obj{b: b, generation: generation, kind: kind, name: name, h: h, ctx: ctx, cancel: cancel, calls: map[int]context.CancelCauseFunc{}}
	b.mu.Lock()
	b.objs[generation] = o
	b.mu.Unlock()
	if err := o.guarded(func() error { o.app = b.open(o); return o.restore() }); err != nil {
		o.app = App{HTTP: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { panic(err) })}
	}
	return o
}

func (b *bridge) obj(generation int) *Obj {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objs[generation]
}

func (b *bridge) call(generation, n int, kind string, payload js.Value) {
	o := b.obj(generation)
	if o == nil {
		return
	}
	o.Go(func() { o.event(n, kind, payload) })
	b.tick()
}

// tick counts an event and collects now and then.
func (b *bridge) tick() {
	b.mu.Lock()
	b.events++
	collect := b.events%gcEvery == 0
	b.mu.Unlock()
	if collect {
		runtime.GC()
	}
}

// deliver hands an answer to the one that waits, if it still does.
func (b *bridge) deliver(generation, id int, a answer) {
	b.mu.Lock()
	w := b.waits[id]
	b.mu.Unlock()
	if w == nil || w.obj.generation != generation {
		return
	}
	select {
	case w.ch <- a:
	default: // a second answer to one wait: the first stands
	}
	b.tick()
}

// kill ends an object whose Durable Object is gone. It may run in the event of another one.
func (b *bridge) kill(generation int) {
	b.mu.Lock()
	o := b.objs[generation]
	delete(b.objs, generation)
	b.mu.Unlock()
	if o != nil {
		o.cancel(tidemark.ErrDead)
	}
}

// wait registers an answer to come.
func (b *bridge) wait(o *Obj) (int, *wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	w := &wait{obj: o, ch: make(chan answer, 1)}
	b.waits[b.next] = w
	return b.next, w
}

func (b *bridge) forget(id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits, id)
}
