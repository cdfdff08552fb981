package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestWindowBounds: what the document takes as a window is what a session takes.
func TestWindowBounds(t *testing.T) {
	keys := config.Keys()
	i := slices.IndexFunc(keys, func(k config.Key) bool { return k.Name == "model.contextWindow" })
	if k := keys[i]; tidemark.Tokens(k.Min) != session.MinWindow || tidemark.Tokens(k.Max) != session.MaxWindow {
		t.Errorf("the document takes %d to %d, a session %d to %d", k.Min, k.Max, session.MinWindow, session.MaxWindow)
	}
}

// TestHandlerTransport: an answer of this process streams, ends with its reader, and a handler that
// breaks off is an error for the reader, as it is over the network.
func TestHandlerTransport(t *testing.T) {
	gone := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		fmt.Fprint(w, "first\n")
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /broken", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("GET /empty", func(http.ResponseWriter, *http.Request) {})
	get := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := handlerTransport{mux}.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := get("/stream")
	first := make([]byte, 6)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "first\n" {
		t.Fatalf("read %q, %v while the handler runs", first, err)
	}
	resp.Body.Close()
	<-gone
	if _, err := io.ReadAll(get("/broken").Body); !errors.Is(err, http.ErrAbortHandler) {
		t.Errorf("a broken answer ends with %v", err)
	}
	if resp := get("/empty"); resp.StatusCode != http.StatusOK {
		t.Errorf("an empty answer is %d", resp.StatusCode)
	}
}

// testNode opens a store in a folder of the test.
func testNode(t *testing.T, home string, set func(*config.Config)) *Node {
	t.Helper()
	cfg := config.Default()
	if set != nil {
		set(cfg)
	}
	n, err := OpenStore(t.Context(), home, cfg, (&cli.Main{Stderr: io.Discard}).Logger(cfg, true), false)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNodeForgets: quiet sessions make room for others, those that someone listens to stay, and a
// forgotten one is there again when it is asked for.
func TestNodeForgets(t *testing.T) {
	n := testNode(t, t.TempDir(), func(c *config.Config) { c.Server.MaxSessions = 3 })
	defer n.Close()
	heard, err := n.Session(t.Context(), "agent:main:local:dm:heard", true)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := heard.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := n.Session(t.Context(), tidemark.Key(fmt.Sprintf("agent:main:local:dm:s%d", i)), true); err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		if len(n.live) > 3 {
			t.Fatalf("%d sessions in memory, at most 3", len(n.live))
		}
	}
	if again, err := n.Session(t.Context(), "agent:main:local:dm:heard", false); err != nil || again != heard {
		t.Errorf("the session that is listened to was dropped (%v)", err)
	}
	if _, err := n.Session(t.Context(), "agent:main:local:dm:s0", false); err != nil {
		t.Errorf("a forgotten session: %v", err)
	}
	sub.Close()
	n.mu.Lock()
	n.forget(time.Now().Add(time.Hour), 100)
	left := len(n.live)
	n.mu.Unlock()
	if left != 0 {
		t.Errorf("%d sessions stay though all are quiet", left)
	}
}

// TestNodeFinds: what was never made is not found and leaves no trace.
func TestNodeFinds(t *testing.T) {
	home := t.TempDir()
	n := testNode(t, home, func(c *config.Config) { c.Agents = []config.Agent{{ID: "work"}} })
	defer n.Close()
	for _, r := range []struct {
		name  string
		key   tidemark.Key
		agent string
		want  error
	}{
		{name: "session", key: "agent:main:local:dm:nobody", want: tidemark.ErrNotFound},
		{name: "session of no agent", key: "agent:nobody:main", want: tidemark.ErrNotFound},
		{name: "agent", agent: "nobody", want: tidemark.ErrNotFound},
		{name: "configured agent", agent: "work"},
		{name: "main agent", agent: "main"},
	} {
		t.Run(r.name, func(t *testing.T) {
			var err error
			if r.agent != "" {
				_, err = n.Agent(t.Context(), r.agent)
			} else {
				_, err = n.Session(t.Context(), r.key, false)
			}
			if !errors.Is(err, r.want) {
				t.Errorf("got %v, want %v", err, r.want)
			}
		})
	}
	if n.known("nobody") {
		t.Error("looking for an agent made it")
	}
}

// TestNodeResumes: an input that was durable when the process ended is answered by the next one,
// without anybody asking.
func TestNodeResumes(t *testing.T) {
	home, key := t.TempDir(), tidemark.Key("agent:main:main")
	n := testNode(t, home, nil)
	s, err := n.Session(t.Context(), key, true)
	if err != nil {
		t.Fatal(err)
	}
	n.end() // no run can begin any more, as if the process had died here
	if _, err := s.Post(t.Context(), session.Input{ID: "one", Message: tidemark.NewText(tidemark.User, "hello"), Origin: tidemark.Origin{From: tidemark.FromPerson}}); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = testNode(t, home, nil)
	defer n.Close()
	if err := n.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	for {
		s, err := n.Session(ctx, key, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok, err := s.Reply(ctx, "one"); ok && err == nil {
			return
		}
		if n.RT.Sleep(ctx, time.Millisecond) != nil {
			t.Fatal("the input was not taken up")
		}
	}
}

// TestNodeShowsOldIngress: what came over a channel when it was another agent's is tried, and the reason is seen.
func TestNodeShowsOldIngress(t *testing.T) {
	home := t.TempDir()
	n := testNode(t, home, func(c *config.Config) { c.Agents = []config.Agent{{ID: "work"}} })
	p, err := n.porch("work")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.in.DB.Tx(t.Context(), []tidemark.Stmt{{SQL: `INSERT INTO channel_bodies(platform, hash, piece, at, bytes) VALUES('telegram', 'h', 0, ?, ?)`,
		Args: []any{n.RT.Now().UnixMilli(), []byte(`{}`)}}}); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = testNode(t, home, func(c *config.Config) { // the channel is main's by now
		c.Agents = []config.Agent{{ID: "work"}}
		c.Secrets.TelegramToken, c.Secrets.TelegramSecret = "1:AA", "secret"
	})
	defer n.Close()
	if err := n.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := n.Owner("work", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	for {
		rows, err := o.DB.Query(ctx, `SELECT error FROM channel_bodies LIMIT 1`)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d webhooks, %v", len(rows), err)
		}
		if strings.Contains(rows[0].Text(0), "not set up") {
			return
		}
		if n.RT.Sleep(ctx, time.Millisecond) != nil {
			t.Fatal("the webhook was not tried")
		}
	}
}

// TestStoreHasOneOwner: a second opener is told who has the store.
func TestStoreHasOneOwner(t *testing.T) {
	home := t.TempDir()
	n := testNode(t, home, nil)
	_, err := NewNode(home, config.Default(), n.log)
	var locked *native.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("a second opener got %v", err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = testNode(t, home, nil)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}
