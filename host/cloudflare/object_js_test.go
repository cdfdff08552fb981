package cloudflare

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestDead: an object whose host is gone fails every call before it touches JavaScript, and whatever
// waits ends.
func TestDead(t *testing.T) {
	o := testObj(t)
	started, ended := make(chan struct{}), make(chan error, 1)
	o.Go(func() {
		close(started)
		ended <- o.Sleep(context.Background(), maxSleep)
	})
	<-started
	o.b.kill(o.generation)
	if err := <-ended; !errors.Is(err, tidemark.ErrDead) {
		t.Errorf("a sleeper got %v", err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"query": func() error { _, err := o.DB().Query(t.Context(), `SELECT 1 LIMIT 1`); return err },
		"tx":    func() error { return o.DB().Tx(t.Context(), []tidemark.Stmt{{SQL: `SELECT 1`}}) },
		"sleep": func() error { return o.Sleep(t.Context(), 0) },
		"alarm": func() error { return o.SetAlarm(t.Context(), o.Now()) },
		"put": func() error {
			_, err := o.Blobs("BUCKET").Put(t.Context(), "k", strings.NewReader(""), 0, tidemark.PutOptions{})
			return err
		},
		"large put": func() error {
			_, err := o.Blobs("BUCKET").Put(t.Context(), "k", strings.NewReader(""), 1<<30, tidemark.PutOptions{})
			return err
		},
		"get":    func() error { _, _, err := o.Blobs("BUCKET").Get(t.Context(), "k"); return err },
		"delete": func() error { return o.Blobs("BUCKET").Delete(t.Context(), "k") },
		"list":   func() error { _, _, err := o.Blobs("BUCKET").List(t.Context(), "", "", 1); return err },
		"fetch": func() error {
			res, err := o.Transport().RoundTrip(req)
			if err == nil {
				res.Body.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := call(); !errors.Is(err, tidemark.ErrDead) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
	if n := len(o.b.waits); n != 0 {
		t.Errorf("%d waits are left", n)
	}
}

// TestUnbound: a bucket that wrangler.toml does not bind is told by its name, and is no outage.
func TestUnbound(t *testing.T) {
	b := testObj(t).Blobs("NOWHERE")
	_, put := b.Put(t.Context(), "k", strings.NewReader(""), 0, tidemark.PutOptions{})
	_, _, get := b.Get(t.Context(), "k")
	_, _, list := b.List(t.Context(), "", "", 1)
	for name, err := range map[string]error{"put": put, "get": get, "delete": b.Delete(t.Context(), "k"), "list": list} {
		if err == nil || !strings.Contains(err.Error(), "bound as NOWHERE") || errors.Is(err, tidemark.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDeliver: an answer reaches the one that waits and nobody else.
func TestDeliver(t *testing.T) {
	o := testObj(t)
	id, w := o.b.wait(o)
	o.b.deliver(o.generation+1, id, answer{ok: true})
	o.b.deliver(o.generation, id+1, answer{ok: true})
	if len(w.ch) != 0 {
		t.Fatal("a foreign answer was taken")
	}
	o.b.deliver(o.generation, id, answer{ok: true})
	o.b.deliver(o.generation, id, answer{ok: false})
	if a := <-w.ch; !a.ok || len(w.ch) != 0 {
		t.Error("a second answer displaced the first")
	}
	o.b.forget(id)
	o.b.deliver(o.generation, id, answer{ok: true})
	if len(w.ch) != 0 {
		t.Error("an answer came to nobody")
	}
}

// TestPanicsAreCounted: neither a goroutine nor an event takes the instance along.
func TestPanicsAreCounted(t *testing.T) {
	o := testObj(t)
	done := make(chan struct{})
	o.Go(func() { defer close(done); panic("one") })
	<-done
	if err := o.guarded(func() error { panic("two") }); err == nil || !strings.Contains(err.Error(), "two") {
		t.Errorf("got %v", err)
	}
	if err := o.guarded(func() error { panic(http.ErrAbortHandler) }); !errors.Is(err, http.ErrAbortHandler) {
		t.Errorf("an abort is %v", err)
	}
	if err := o.Sleep(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if o.Panics() != 2 || o.Running() != 0 {
		t.Errorf("%d panics, %d running; want 2, 0", o.Panics(), o.Running())
	}
}

// TestQueryCannotWrite: as on the native host.
func TestQueryCannotWrite(t *testing.T) {
	db := testObj(t).DB()
	if err := db.Tx(t.Context(), []tidemark.Stmt{{SQL: `CREATE TABLE k (x)`}}); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`INSERT INTO k VALUES (1) RETURNING x`, `WITH v AS (SELECT 1) INSERT INTO k SELECT * FROM v RETURNING x`} {
		if _, err := db.Query(t.Context(), sql); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", sql, err)
		}
	}
	rows, err := db.Query(t.Context(), `SELECT count(*) FROM k LIMIT 1`)
	if err != nil || rows[0].Int(0) != 0 {
		t.Errorf("left %v, %v", rows, err)
	}
}

func testObj(t *testing.T) *Obj {
	t.Helper()
	o, err := Open(nil, "Test", t.Name())
	if err != nil {
		t.Fatalf("run js/wasm tests with -exec build/exec-wasm.sh: %v", err)
	}
	return o
}
