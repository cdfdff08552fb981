package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/syumai/workers/cloudflare"
	"github.com/syumai/workers/cloudflare/fetch"
	"github.com/syumai/workers/cloudflare/r2"
	"github.com/tidemark-ai/tidemark"
	ours "github.com/tidemark-ai/tidemark/host/cloudflare"
)

// What follows makes one call by our bridge or by syumai/workers, for the part library of the benchmark
// (test/bench/library.mjs). A callback of the library is no event of an object, so what it answers may not
// go on to our bridge: each call runs in a goroutine of its own, which the handler looks after.

// call does one thing and reads its answer to the end.
type call func(ctx context.Context) error

// callOf finds the call that a request asks for: what (env, fetch, peer or blob), by whom, of which url and size,
// with how many bytes as its body.
func (p *probe) callOf(r *http.Request) call {
	what, url, key, size := r.FormValue("what"), r.FormValue("url"), r.FormValue("key"), number(r, "size")
	library := r.FormValue("by") == "library"
	body, cookies := number(r, "body"), number(r, "cookies")
	send := func(f func(*http.Request) (*http.Response, error)) call {
		return func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if body > 0 { // one of its own for each request
				req, err = http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(make([]byte, body)))
			}
			if err != nil {
				return err
			}
			res, err := f(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if n := len(res.Header.Values("Set-Cookie")); n != cookies {
				return fmt.Errorf("%d cookies, want %d", n, cookies)
			}
			return whole(res.Body, size)
		}
	}
	switch {
	case what == "env" && library:
		return func(context.Context) error { return told(cloudflare.Getenv("PROBE")) }
	case what == "env":
		return func(context.Context) error { return told(ours.Env("PROBE")) }
	case what == "fetch" && library:
		return send(func(req *http.Request) (*http.Response, error) {
			return fetch.NewClient().Do(&fetch.Request{Request: req}, &fetch.RequestInit{Redirect: fetch.RedirectModeManual})
		})
	case what == "fetch":
		return send(p.o.Transport().RoundTrip)
	case what == "peer" && library:
		return send(func(req *http.Request) (*http.Response, error) { return stubFetch(bare+key, req) })
	case what == "peer":
		return send(p.o.Peer("SESSION", bare+key).RoundTrip)
	case what == "blob" && library:
		return func(context.Context) error { return bucketGet(key, size) }
	}
	return func(ctx context.Context) error {
		_, body, err := p.o.Blobs("BUCKET").Get(ctx, key)
		if err != nil {
			return err
		}
		defer body.Close()
		return whole(body, size)
	}
}

func told(value string) error {
	if value == "" {
		return errors.New("the variable is not set")
	}
	return nil
}

func stubFetch(name string, req *http.Request) (*http.Response, error) {
	space, err := cloudflare.NewDurableObjectNamespace("SESSION")
	if err != nil {
		return nil, err
	}
	stub, err := space.Get(space.IdFromName(name))
	if err != nil {
		return nil, err
	}
	return stub.Fetch(req)
}

func bucketGet(key string, size int) error {
	bucket, err := r2.NewBucket("BUCKET")
	if err != nil {
		return err
	}
	o, err := bucket.Get(key)
	if err != nil {
		return err
	}
	if o == nil {
		return fmt.Errorf("get %s: %w", key, tidemark.ErrNotFound)
	}
	return whole(o.Body, size)
}

// whole reads a body of so many bytes; the size 0 is any.
func whole(body io.Reader, size int) error {
	n, err := io.Copy(io.Discard, struct{ io.Reader }{body})
	if err == nil && size > 0 && n != int64(size) {
		return fmt.Errorf("read %d bytes, want %d", n, size)
	}
	return err
}

// started runs f in a goroutine of the object; its panic is an error.
func (p *probe) started(f func() error) <-chan error {
	done := make(chan error, 1)
	p.o.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				done <- fmt.Errorf("panic: %v", v)
			}
		}()
		done <- f()
	})
	return done
}

// ended looks whether a goroutine has ended, until the time is over.
func (p *probe) ended(done <-chan error, most time.Duration) (bool, error) {
	for end := time.Now().Add(most); time.Now().Before(end); {
		select {
		case err := <-done:
			return true, err
		default:
		}
		if err := p.o.Sleep(p.o.Context(), 5*time.Millisecond); err != nil {
			return false, err
		}
	}
	return false, nil
}

// calls makes n of them and gives the microseconds of one; with then it asks the object's database behind them.
func (p *probe) calls(w http.ResponseWriter, r *http.Request) error {
	f, n := p.callOf(r), number(r, "n")
	var took time.Duration
	_, err := p.ended(p.started(func() error {
		begun := time.Now()
		for range n {
			if err := f(r.Context()); err != nil {
				return err
			}
		}
		took = time.Since(begun)
		if r.FormValue("then") == "" {
			return nil
		}
		_, err := p.o.DB().Query(r.Context(), `SELECT 1 LIMIT 1`)
		return err
	}), time.Minute)
	if err != nil {
		return err
	}
	return answer(w, float64(took.Microseconds())/float64(n))
}

// cut cancels the context of a call in its middle and gives how long the call goes on, one second at most.
func (p *probe) cut(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	f := p.callOf(r)
	done := p.started(func() error { return f(ctx) })
	if err := p.o.Sleep(r.Context(), 100*time.Millisecond); err != nil {
		return err
	}
	cancel()
	begun := time.Now()
	over, err := p.ended(done, time.Second)
	return answer(w, map[string]any{"ended": over, "ms": time.Since(begun).Milliseconds(), "error": fmt.Sprint(err)})
}

// rest collects what nobody holds and gives what Go has allocated so far, and what is left.
func (p *probe) rest(w http.ResponseWriter, r *http.Request) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	total := m.TotalAlloc
	for range 3 { // what a finalizer lets go of is collected by the next
		runtime.GC()
		if err := p.o.Sleep(r.Context(), 10*time.Millisecond); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&m)
	return answer(w, map[string]any{"total": total, "heap": m.HeapAlloc})
}

// zeros answers with so many bytes, ms later.
func (p *probe) zeros(w http.ResponseWriter, r *http.Request) error {
	if ms := number(r, "ms"); ms > 0 {
		if err := p.o.Sleep(r.Context(), time.Duration(ms)*time.Millisecond); err != nil {
			return err
		}
	}
	return writeZeros(w, number(r, "size"))
}

func writeZeros(w http.ResponseWriter, size int) error {
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err := w.Write(make([]byte, size))
	return err
}

// plainly serves what the library's own handler bridge hands to Go, outside any object.
func plainly(w http.ResponseWriter, r *http.Request) {
	_ = writeZeros(w, number(r, "size"))
}
