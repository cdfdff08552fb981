//go:build chaos

package main

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// wrap lays the doors by which test/chaos breaks a Worker, …/debug/ and a word, before those of an
// object. Only a build with the tag chaos has them.
func wrap(o *cloudflare.Obj, app cloudflare.App) cloudflare.App {
	c := chaos{o}
	doors := map[string]func(http.ResponseWriter, *http.Request) error{
		"runtime": c.runtime, "panic": c.panic, "background": c.background, "fatal": c.fatal, "gc": c.gc, "hog": c.hog,
	}
	inner := app.HTTP
	app.HTTP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, word, found := strings.Cut(r.URL.Path, "/debug/")
		door := doors[word]
		if !found || door == nil {
			inner.ServeHTTP(w, r)
			return
		}
		if err := door(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
		}
	})
	return app
}

// chaos breaks one object, or the instance that it lives in.
type chaos struct{ o *cloudflare.Obj }

// number reads a parameter; without one it is otherwise.
func number(r *http.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return otherwise
}

// runtime tells what the instance and the object hold.
func (c chaos) runtime(w http.ResponseWriter, _ *http.Request) error {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	raw, err := json.Marshal(map[string]any{
		"name": c.o.Name(), "goroutines": runtime.NumGoroutine(), "running": c.o.Running(), "panics": c.o.Panics(),
		"heap": m.HeapAlloc, "sys": m.Sys, "collections": m.NumGC,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(raw)
	return err
}

// panic panics in the handler, after some events of a stream.
func (c chaos) panic(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range number(r, "after", 0) {
		fmt.Fprintf(w, "data: %s %d\n\n", c.o.Name(), i)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		if err := c.o.Sleep(r.Context(), 10*time.Millisecond); err != nil {
			return err
		}
	}
	panic("chaos in a handler of " + c.o.Name())
}

// background panics in a goroutine of the object.
func (c chaos) background(http.ResponseWriter, *http.Request) error {
	c.o.Go(func() { panic("chaos in a goroutine of " + c.o.Name()) })
	return nil
}

// fatal ends the instance: by a panic that nobody recovers, an error of the runtime, an exhausted
// stack.
func (c chaos) fatal(_ http.ResponseWriter, r *http.Request) error {
	switch r.URL.Query().Get("how") {
	case "throw":
		var mu sync.Mutex
		mu.Unlock()
	case "stack":
		return fmt.Errorf("%d calls returned", deep(10_000_000))
	default:
		go panic("chaos in a bare goroutine")
	}
	return c.o.Sleep(r.Context(), time.Hour)
}

//go:noinline
func deep(n int) int {
	if n == 0 {
		return 0
	}
	return deep(n-1) + 1
}

// gc collects at every percent of growth from now on, and once at once.
func (c chaos) gc(_ http.ResponseWriter, r *http.Request) error {
	debug.SetGCPercent(number(r, "percent", 75))
	runtime.GC()
	return nil
}

// hog holds megabytes for a moment; the memory of WASM never shrinks again.
func (c chaos) hog(_ http.ResponseWriter, r *http.Request) error {
	held := make([][]byte, min(number(r, "mb", 1), 64))
	for i := range held {
		held[i] = make([]byte, 1<<20)
		held[i][i] = 1
	}
	err := c.o.Sleep(r.Context(), 10*time.Millisecond)
	runtime.KeepAlive(held)
	return err
}
