package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/syumai/workers"
	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// last is the object opened last: what no code may do is to use it from another one.
var last *cloudflare.Obj

func main() {
	workers.ServeNonBlock(http.HandlerFunc(plainly)) // beside ours, to be measured: nothing else calls it
	alarms := map[string]int{}                       // how many are done, by object: who asks an object of this instance wakes no other
	cloudflare.Serve(cloudflare.NewLogger(slog.LevelError), func(o *cloudflare.Obj) cloudflare.App {
		last = o
		p := &probe{o: o, mux: http.NewServeMux()}
		for path, f := range map[string]func(http.ResponseWriter, *http.Request) error{
			"write": p.write, "rows": p.rows, "stream": p.stream, "relay": p.relay, "wait": p.wait, "steal": p.steal,
			"blob": p.blob, "alarm": p.alarm, "peer": p.peer, "timeout": p.timeout, "count": p.count, "env": p.env,
			"panic": p.panic, "background": p.background, "fatal": p.fatal, "recurse": p.recurse, "timer": p.timer, "hog": p.hog, "empty": p.empty, "model": p.model, "fetch": p.fetch,
			"calls": p.calls, "cut": p.cut, "rest": p.rest, "zeros": p.zeros,
			"alarms": func(w http.ResponseWriter, r *http.Request) error { return answer(w, alarms[r.FormValue("name")]) },
		} {
			p.mux.HandleFunc("/v1/sessions/{key}/"+path, func(w http.ResponseWriter, r *http.Request) {
				if err := f(w, r); err != nil {
					http.Error(w, err.Error(), http.StatusTeapot)
				}
			})
		}
		return cloudflare.App{HTTP: p.mux, Alarm: func(ctx context.Context) error {
			err := p.note(ctx, "alarm")
			alarms[p.name()]++
			return err
		}}
	})
}

// probe serves one object.
type probe struct {
	o   *cloudflare.Obj
	mux *http.ServeMux
}

// bare are the keys that the tests use: a name of one's own, which the front makes a whole key of.
const bare = "agent:main:local:dm:"

func (p *probe) name() string { return strings.TrimPrefix(p.o.Name(), bare) }

func (p *probe) note(ctx context.Context, text string) error {
	return p.o.DB().Tx(ctx, []tidemark.Stmt{
		{SQL: `CREATE TABLE IF NOT EXISTS notes(id INTEGER PRIMARY KEY, object TEXT, text TEXT)`},
		{SQL: `INSERT INTO notes(object, text) VALUES (?, ?)`, Args: []any{p.name(), text}, Want: 1},
	})
}

// write stores a row; rows gives all of them.
func (p *probe) write(w http.ResponseWriter, r *http.Request) error {
	return p.note(r.Context(), r.FormValue("text"))
}

func (p *probe) rows(w http.ResponseWriter, r *http.Request) error {
	if err := p.note(r.Context(), "rows"); err != nil {
		return err
	}
	rows, err := p.o.DB().Query(r.Context(), `SELECT object, text FROM notes ORDER BY id LIMIT 1000`)
	if err != nil {
		return err
	}
	out := [][2]string{}
	for _, row := range rows {
		out = append(out, [2]string{row.Text(0), row.Text(1)})
	}
	return answer(w, out)
}

func answer(w http.ResponseWriter, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(raw)
	return err
}

func number(r *http.Request, name string) int {
	n, _ := strconv.Atoi(r.FormValue(name))
	return n
}

// stream sends n events, ms apart, with a row written before each. With gate it sends the last one only when the row
// "go" was written.
func (p *probe) stream(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	n := number(r, "n")
	for i := range n {
		if i == n-1 && r.FormValue("gate") != "" {
			if err := p.until(r.Context(), "go"); err != nil {
				return p.note(p.o.Context(), "cut")
			}
		}
		fmt.Fprintf(w, "data: %s %d\n\n", p.name(), i)
		err := errors.Join(p.note(r.Context(), fmt.Sprint("stream ", i)), control.Flush(), p.o.Sleep(r.Context(), time.Duration(number(r, "ms"))*time.Millisecond))
		if err != nil {
			return p.note(p.o.Context(), "cut")
		}
	}
	return nil
}

// until waits for a row.
func (p *probe) until(ctx context.Context, text string) error {
	for {
		rows, err := p.o.DB().Query(ctx, `SELECT 1 FROM notes WHERE text = ? LIMIT 1`, text)
		if err != nil || len(rows) > 0 {
			return err
		}
		if err := p.o.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// relay fetches a URL and passes its stream on as it comes.
func (p *probe) relay(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := p.o.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.FormValue("url"), strings.NewReader("from "+p.name()))
	if err != nil {
		return err
	}
	req.Header.Set("Date", "Sat, 21 Nov 2026 00:00:00 GMT")
	res, err := p.o.Transport().RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	buf := make([]byte, 4096)
	for {
		n, err := res.Body.Read(buf)
		w.Write(buf[:n])
		if flush := http.NewResponseController(w).Flush(); flush != nil {
			return p.note(p.o.Context(), "cut")
		}
		if err == io.EOF {
			return nil
		}
		if err != nil { // the client's leaving ends the read, too
			return errors.Join(err, p.note(p.o.Context(), "cut"))
		}
	}
}

// wait hangs until its client leaves, writing now and then: only a write shows that it has left.
func (p *probe) wait(w http.ResponseWriter, r *http.Request) error {
	for {
		fmt.Fprint(w, ": still here\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			break
		}
		if err := p.o.Sleep(r.Context(), 20*time.Millisecond); err != nil {
			break
		}
	}
	return p.note(p.o.Context(), "gone: "+context.Cause(r.Context()).Error())
}

// steal uses the database of another object.
func (p *probe) steal(w http.ResponseWriter, r *http.Request) error {
	_, err := last.DB().Query(p.o.Context(), `SELECT 1 LIMIT 1`)
	return answer(w, map[string]any{"own": last == p.o, "error": fmt.Sprint(err)})
}

func (p *probe) blob(w http.ResponseWriter, r *http.Request) error {
	b := p.o.Blobs("BUCKET")
	key := p.name() + "/" + r.FormValue("key")
	size := int64(number(r, "size"))
	put, err := b.Put(r.Context(), key, io.LimitReader(pattern{}, size), size, tidemark.PutOptions{
		IfAbsent: true, ContentType: "text/plain", Metadata: map[string]string{"sessionKey": p.name()},
	})
	if err != nil {
		return answer(w, map[string]any{"conflict": errors.Is(err, tidemark.ErrConflict), "error": err.Error()})
	}
	got, body, err := b.Get(r.Context(), key)
	if err != nil {
		return err
	}
	defer body.Close()
	n, err := io.Copy(io.Discard, body)
	if err != nil {
		return err
	}
	page, _, err := b.List(r.Context(), p.name()+"/", "", 10)
	if err != nil {
		return err
	}
	return answer(w, map[string]any{"size": n, "same": put.ETag == got.ETag, "metadata": got.Metadata, "listed": len(page)})
}

// pattern is an endless source.
type pattern struct{}

func (pattern) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func (p *probe) alarm(w http.ResponseWriter, r *http.Request) error {
	return p.o.SetAlarm(r.Context(), p.o.Now().Add(time.Duration(number(r, "ms"))*time.Millisecond))
}

// peer asks another object for its rows.
func (p *probe) peer(w http.ResponseWriter, r *http.Request) error {
	name := r.FormValue("name")
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "https://object/v1/sessions/"+name+"/rows", nil)
	if err != nil {
		return err
	}
	res, err := p.o.Peer("SESSION", bare+name).RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(w, res.Body)
	return err
}

func (p *probe) timeout(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := p.o.WithTimeout(r.Context(), 20*time.Millisecond)
	defer cancel()
	err := p.o.Sleep(ctx, time.Hour)
	return answer(w, map[string]any{"timeout": errors.Is(err, tidemark.ErrTimeout)})
}

// count reads a request's body as it comes.
func (p *probe) count(w http.ResponseWriter, r *http.Request) error {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return err
	}
	return answer(w, map[string]any{"bytes": n, "length": r.ContentLength, "agent": r.Header.Get("X-Dated")})
}

func (p *probe) env(w http.ResponseWriter, r *http.Request) error {
	return answer(w, map[string]any{"value": cloudflare.Env("PROBE"), "missing": cloudflare.Env("NOTHING")})
}

func (p *probe) empty(w http.ResponseWriter, r *http.Request) error {
	w.WriteHeader(http.StatusNoContent)
	err := http.NewResponseController(w).Flush()
	_, werr := w.Write([]byte("nobody reads this"))
	return errors.Join(err, werr, http.NewResponseController(w).Flush())
}

func (p *probe) panic(http.ResponseWriter, *http.Request) error { panic("probe") }

// background panics in a goroutine of the object.
func (p *probe) background(w http.ResponseWriter, r *http.Request) error {
	before := p.o.Panics()
	p.o.Go(func() { panic("probe") })
	if err := p.o.Sleep(r.Context(), time.Millisecond); err != nil {
		return err
	}
	return answer(w, map[string]any{"panics": p.o.Panics() - before, "running": p.o.Running()})
}

// fatal panics in a bare goroutine, which ends the instance.
func (p *probe) fatal(w http.ResponseWriter, r *http.Request) error {
	go func() { panic("probe ends the instance") }()
	return p.o.Sleep(r.Context(), time.Hour)
}

// recurse exhausts the stack of the JavaScript engine.
func (p *probe) recurse(w http.ResponseWriter, r *http.Request) error {
	return answer(w, deep(10_000_000))
}

//go:noinline
func deep(n int) int {
	if n == 0 {
		return 0
	}
	return deep(n-1) + 1
}

// hog needs megabytes for a moment; the memory of WASM never shrinks again.
func (p *probe) hog(_ http.ResponseWriter, r *http.Request) error {
	held := make([]byte, number(r, "mb")<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	return nil
}

// timer waits for a Go timer, which never fires.
func (p *probe) timer(w http.ResponseWriter, r *http.Request) error {
	time.Sleep(time.Second) // a shorter one may be over before its own event is
	return nil
}

// fetch asks the server at url and reads the answer; ms bounds it.
func (p *probe) fetch(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if ms := number(r, "ms"); ms > 0 {
		short, cancel := p.o.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
		ctx = short
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.FormValue("url"), nil)
	if err != nil {
		return err
	}
	res, err := p.o.Transport().RoundTrip(req)
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
