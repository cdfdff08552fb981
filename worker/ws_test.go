//go:build !js

package worker_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/worker"
)

// withSockets serves with the sockets of the native host, which end with the test.
func withSockets(t *testing.T, change func(*worker.Config, *actors)) *server {
	t.Helper()
	rt := native.NewRuntime(nil)
	k := native.NewSockets(rt)
	t.Cleanup(func() {
		k.Close()
		ctx, cancel := context.WithTimeout(context.Background(), tidemarktest.Patience)
		defer cancel()
		if err := rt.Wait(ctx); err != nil {
			t.Error(err)
		}
	})
	return serve(t, func(c *worker.Config, a *actors) {
		c.Sockets = k
		if change != nil {
			change(c, a)
		}
	})
}

// said is what came on a socket.
type said struct {
	Type, ID, Run, Text, Ref, State string
	Again                           bool
	Count, Messages                 int
	Error                           struct{ Type, Message string }
}

type socket struct {
	t *testing.T
	*websocket.Conn
}

func (s *server) socket(query string, protocols ...string) *socket {
	s.t.Helper()
	c, _, err := websocket.Dial(s.t.Context(), "ws"+strings.TrimPrefix(s.URL, "http")+"/ws?"+query, &websocket.DialOptions{Subprotocols: protocols})
	if err != nil {
		s.t.Fatalf("dial %s: %v", query, err)
	}
	s.t.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(32 << 20)
	return &socket{s.t, c}
}

func (k *socket) say(text string) {
	k.t.Helper()
	if err := k.Write(k.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		k.t.Fatal(err)
	}
}

// until reads up to a message of a type, and returns it with the types on the way.
func (k *socket) until(kind string) (said, []string) {
	k.t.Helper()
	return k.untilOne(kind)
}

// untilOne is until for any of some types.
func (k *socket) untilOne(kinds ...string) (said, []string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), tidemarktest.Patience)
	defer cancel()
	var on []string
	for {
		_, raw, err := k.Read(ctx)
		if err != nil {
			k.t.Fatalf("no %v: %v: %v", kinds, err, on)
		}
		var m said
		if err := json.Unmarshal(raw, &m); err != nil {
			k.t.Fatal(err)
		}
		if on = append(on, m.Type); slices.Contains(kinds, m.Type) {
			return m, on
		}
	}
}

// TestSocket: a turn from hello to done, joined in its middle.
func TestSocket(t *testing.T) {
	g := newGate()
	s := withSockets(t, func(_ *worker.Config, a *actors) { a.provider = g })
	a := s.socket("session=main&create=1", worker.SocketProtocol)
	if a.Subprotocol() != worker.SocketProtocol {
		t.Errorf("protocol %q", a.Subprotocol())
	}
	if h, on := a.until("hello"); len(on) != 1 || h.Count != 1 || h.ID == "" {
		t.Errorf("%v %+v", on, h)
	}
	a.say(`{"type":"post","id":"x","text":"hi","ref":"r"}`)
	got := map[string]said{} // the receipt comes before, between or behind the others
	for range 3 {
		m, _ := a.untilOne("receipt", "taken", "text")
		got[m.Type] = m
	}
	if r := got["receipt"]; r.ID != "x" || r.Ref != "r" || r.State != "new" {
		t.Errorf("%+v", r)
	}
	run := got["taken"]
	<-g.begun
	b := s.socket("session=main")
	if h, _ := b.until("hello"); h.Run != run.Run || h.Text != g.piece || h.Messages != 1 || h.Count != 2 {
		t.Errorf("%+v", h)
	}
	g.on <- nil
	if m, on := b.until("text"); m.Text != "second" || len(on) != 1 {
		t.Errorf("%v %+v", on, m)
	}
	a.until("done")
	b.until("done")
	if err := b.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	if p, _ := a.until("presence"); p.Count != 1 {
		t.Errorf("%+v", p)
	}
}

// TestSocketStops: a host that ends its sockets says so, and nothing of them is left.
func TestSocketStops(t *testing.T) {
	rt := native.NewRuntime(nil)
	k := native.NewSockets(rt)
	s := serve(t, func(c *worker.Config, _ *actors) { c.Sockets = k })
	a := s.socket("session=main&create=1")
	a.until("hello")
	go k.Close()
	_, _, err := a.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	if err := rt.Wait(ctx); err != nil {
		t.Error(err)
	}
}

// TestSocketDeadPeer: a client that answers no ping is cut off.
func TestSocketDeadPeer(t *testing.T) {
	rt := native.NewRuntime(nil)
	k := native.NewSockets(rt)
	k.Ping, k.Pong = 50*time.Millisecond, 50*time.Millisecond
	s := serve(t, func(c *worker.Config, _ *actors) { c.Sockets = k })
	t.Cleanup(k.Close)
	s.socket("session=main&create=1").until("hello") // it answers pings only while it is read
	ctx, cancel := context.WithTimeout(t.Context(), tidemarktest.Patience)
	defer cancel()
	if err := rt.Wait(ctx); err != nil {
		t.Errorf("the socket is still open: %v", err)
	}
}

// TestSocketRefusals: what is no handshake of ours is answered as HTTP.
func TestSocketRefusals(t *testing.T) {
	up := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
	tests := []struct {
		name, query string
		headers     []string
		status      int
		kind        string
	}{
		{"plain", "session=main", nil, http.StatusUpgradeRequired, "upgrade"},
		{"no session", "session=main", up, http.StatusNotFound, "not_found"},
		{"no key", "", up, http.StatusBadRequest, "invalid"},
		{"bad create", "session=main&create=x", up, http.StatusBadRequest, "invalid"},
		{"bad name", "session=main&create=1&name=%00", up, http.StatusBadRequest, "invalid"},
		{"other protocol", "session=main&create=1", append([]string{"Sec-WebSocket-Protocol", "chat"}, up...), http.StatusBadRequest, "invalid"},
		{"old version", "session=main&create=1", append(append([]string{}, up...), "Sec-WebSocket-Version", "8"), http.StatusBadRequest, "invalid"},
		{"bad key", "session=main&create=1", append(append([]string{}, up...), "Sec-WebSocket-Key", "x"), http.StatusBadRequest, "invalid"},
		{"foreign page", "session=main&create=1", append([]string{"Origin", "https://evil.example.com"}, up...), http.StatusForbidden, "forbidden"},
	}
	s := withSockets(t, nil)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := get[fault](s, tc.status, "GET", "/ws?"+tc.query, "", tc.headers...)
			missing := strings.HasPrefix(f.Error.Message, "session: it is missing")
			if f.Error.Type != tc.kind || missing != (tc.query == "") {
				t.Errorf("%+v", f)
			}
		})
	}
	s.text(404, "GET", "/v1/sessions/main", "")
	none := serve(t, nil)
	none.say("main", "hi")
	none.text(501, "GET", "/ws?session=main", "", up...)
}

// TestRootEvents: /events is the stream of the session that it names.
func TestRootEvents(t *testing.T) {
	s := serve(t, nil)
	s.say("main", "hi")
	e := s.listen("GET", "/events?session=main", "")
	e.until("hello")
	s.say("main", "again")
	e.until("done")
	s.text(404, "GET", "/events?session=other", "")
	if text := s.text(400, "GET", "/events", ""); !strings.Contains(text, "session: it is missing") {
		t.Error(text)
	}
}
