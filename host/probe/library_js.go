package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"
	"weak"

	"github.com/syumai/workers"
	cf "github.com/syumai/workers/cloudflare"
	"github.com/syumai/workers/cloudflare/fetch"
	"github.com/syumai/workers/cloudflare/r2"

	"github.com/tidemark-ai/tidemark"
)

// What is here can be done by the bridge and, with by=theirs, by syumai/workers: test/bench/library.mjs measures
// the two beside each other.

// opened are the objects by their names: the library has one handler for all of them.
var opened = map[string]weak.Pointer[probe]{}

func serveTheirs() {
	workers.ServeNonBlock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		opened[strings.Split(r.URL.Path, "/")[3]].Value().mux.ServeHTTP(w, r)
	}))
}

func theirs(r *http.Request) bool { return r.FormValue("by") == "theirs" }

// fetch asks the server at url, or the object of a name, and reads the answer. It sends size bytes; ms bounds it.
func (p *probe) fetch(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if ms := number(r, "ms"); ms > 0 {
		short, cancel := p.o.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
		ctx = short
	}
	req, err := request(ctx, r)
	if err != nil {
		return err
	}
	res, err := p.send(r, req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil {
		return err
	}
	w.Header()["Set-Cookie"] = res.Header["Set-Cookie"]
	return answer(w, map[string]any{"bytes": n, "header": res.Header})
}

func request(ctx context.Context, r *http.Request) (*http.Request, error) {
	url := r.FormValue("url")
	if name := r.FormValue("name"); name != "" {
		url = "https://object/v1/sessions/" + name + "/count"
	}
	if n := number(r, "size"); n > 0 {
		return http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(strings.Repeat("x", n)))
	}
	return http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
}

func (p *probe) send(r, req *http.Request) (*http.Response, error) {
	name := r.FormValue("name")
	switch {
	case !theirs(r) && name == "":
		return p.o.Transport().RoundTrip(req)
	case !theirs(r):
		return p.o.Peer("SESSION", bare+name).RoundTrip(req)
	case name == "":
		return fetch.NewClient().Do(&fetch.Request{Request: req}, &fetch.RequestInit{Redirect: fetch.RedirectModeManual})
	}
	space, err := cf.NewDurableObjectNamespace("SESSION")
	if err != nil {
		return nil, err
	}
	stub, err := space.Get(space.IdFromName(bare + name))
	if err != nil {
		return nil, err
	}
	return stub.Fetch(req)
}

// get reads a blob, put writes one of size bytes.
func (p *probe) get(w http.ResponseWriter, r *http.Request) error {
	body, err := p.open(r)
	if err != nil {
		return err
	}
	defer body.Close()
	n, err := io.Copy(io.Discard, body)
	if err != nil {
		return err
	}
	return answer(w, n)
}

func (p *probe) open(r *http.Request) (io.ReadCloser, error) {
	if !theirs(r) {
		_, body, err := p.o.Blobs("BUCKET").Get(r.Context(), r.FormValue("key"))
		return body, err
	}
	b, err := r2.NewBucket("BUCKET")
	if err != nil {
		return nil, err
	}
	o, err := b.Get(r.FormValue("key"))
	if err != nil {
		return nil, err
	}
	return io.NopCloser(o.Body), nil
}

func (p *probe) put(_ http.ResponseWriter, r *http.Request) error {
	size := int64(number(r, "size"))
	body := io.LimitReader(pattern{}, size)
	if !theirs(r) {
		_, err := p.o.Blobs("BUCKET").Put(r.Context(), r.FormValue("key"), body, size, tidemark.PutOptions{ContentType: "text/plain"})
		return err
	}
	b, err := r2.NewBucket("BUCKET")
	if err != nil {
		return err
	}
	_, err = b.Put(r.FormValue("key"), io.NopCloser(body), &r2.PutOptions{HTTPMetadata: r2.HTTPMetadata{ContentType: "text/plain"}})
	return err
}

// heap tells what Go holds.
func (p *probe) heap(w http.ResponseWriter, _ *http.Request) error {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return answer(w, map[string]any{"heap": m.HeapAlloc})
}

func (p *probe) small(w http.ResponseWriter, _ *http.Request) error { return answer(w, "small") }

// big answers with size bytes, made tells how many of them were written.
func (p *probe) big(w http.ResponseWriter, r *http.Request) error {
	if r.FormValue("length") != "" {
		w.Header().Set("Content-Length", r.FormValue("size"))
	}
	p.written = 0
	chunk := make([]byte, 32<<10)
	for left := number(r, "size"); left > 0; left -= len(chunk) {
		chunk = chunk[:min(left, len(chunk))]
		if _, err := w.Write(chunk); err != nil {
			return err
		}
		p.written += len(chunk)
	}
	return nil
}

func (p *probe) made(w http.ResponseWriter, _ *http.Request) error { return answer(w, p.written) }

// events sends n of them.
func (p *probe) events(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range number(r, "n") {
		fmt.Fprintf(w, "data: %d\n\n", i)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
	}
	return nil
}
