//go:build !js

// A server that listens: there is none under js/wasm.

package whatsapp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/internal/graph"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// await is far more than anything here takes, and ends a test that would hang.
const await = tidemarktest.Patience

var ada = graph.Person{Number: "15557654321", UserID: "US.9aZ", Name: "Ada"}

// rig is our client against the fake.
type rig struct {
	*graph.Server
	channel.Platform
	ctx context.Context

	mu   sync.Mutex // guards the following
	got  []channel.Arrival
	bad  int // webhooks that did not verify
	down int // webhooks that are to be refused
}

func newRig(t *testing.T, cfg graph.Config) *rig {
	t.Helper()
	r := &rig{}
	hook := &http.Server{Handler: http.HandlerFunc(r.webhook), ReadHeaderTimeout: await}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = hook.Serve(l) }()
	cfg.Webhook = "http://" + l.Addr().String()
	if r.Server, err = graph.New(cfg); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	r.Platform = New(Config{Token: graph.DefaultToken, AppSecret: graph.DefaultAppSecret, VerifyToken: graph.DefaultVerifyToken,
		BaseURL: r.URL, Transport: transport, Runtime: tidemarktest.NewRuntime(t)})
	ctx, cancel := context.WithTimeout(t.Context(), await)
	r.ctx = ctx
	t.Cleanup(func() {
		cancel()
		transport.CloseIdleConnections()
		_ = r.Close()
		_ = hook.Close()
	})
	return r
}

// webhook is a business: verify, decode, acknowledge.
func (r *rig) webhook(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		answer, err := r.Platform.Handshake(req.URL.Query())
		if err != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, answer)
		return
	}
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down > 0 {
		r.down--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	out, err := r.Decode(body)
	if err = errors.Join(err, r.Verify(req.Header, body)); err != nil {
		r.bad++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.got = append(r.got, out...)
}

// arrivals waits until the fake has nothing left to post.
func (r *rig) arrivals(t *testing.T) []channel.Arrival {
	t.Helper()
	if err := r.Idle(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bad > 0 {
		t.Fatalf("%d webhooks did not verify", r.bad)
	}
	return r.got
}

func (r *rig) to(peer string) tidemark.Address {
	return tidemark.Address{Platform: Name, Account: graph.DefaultAccount, Peer: peer}
}

func sendError(t *testing.T, err error) *tidemark.SendError {
	t.Helper()
	var s *tidemark.SendError
	if !errors.As(err, &s) {
		t.Fatalf("got %v, want a SendError", err)
	}
	return s
}

func TestFakeHandshake(t *testing.T) {
	if err := newRig(t, graph.Config{}).Server.Handshake(t.Context()); err != nil {
		t.Error(err)
	}
	if err := newRig(t, graph.Config{VerifyToken: "another"}).Server.Handshake(t.Context()); err == nil {
		t.Error("a foreign verify token was answered")
	}
}

func TestSend(t *testing.T) {
	for _, row := range []struct {
		name string
		out  tidemark.Outgoing
		body string
	}{
		{"number", tidemark.Outgoing{To: tidemark.Address{Peer: "+1 555 765 4321"}, Ref: "k/1", Text: "hé <b> 🌊"},
			`{"messaging_product":"whatsapp","recipient_type":"individual","to":"15557654321","type":"text","text":{"preview_url":false,"body":"hé <b> 🌊"},"biz_opaque_callback_data":"k/1"}`},
		{"user id", tidemark.Outgoing{To: tidemark.Address{Peer: "US.9aZ"}, Text: "x"},
			`{"messaging_product":"whatsapp","recipient_type":"individual","recipient":"US.9aZ","type":"text","text":{"preview_url":false,"body":"x"}}`},
		{"user id of a portfolio", tidemark.Outgoing{To: tidemark.Address{Peer: "US.ENT.11815799212886844830"}, Text: "x"},
			`{"messaging_product":"whatsapp","recipient_type":"individual","recipient":"US.ENT.11815799212886844830","type":"text","text":{"preview_url":false,"body":"x"}}`},
		{"group", tidemark.Outgoing{To: tidemark.Address{Peer: "Y2FwaV9ncm91cA", Group: true}, Text: "x"},
			`{"messaging_product":"whatsapp","recipient_type":"group","to":"Y2FwaV9ncm91cA","type":"text","text":{"preview_url":false,"body":"x"}}`},
		{"answer", tidemark.Outgoing{To: tidemark.Address{Peer: "1555"}, Text: "x", Quote: "wamid.A1"},
			`{"messaging_product":"whatsapp","recipient_type":"individual","to":"1555","type":"text","context":{"message_id":"wamid.A1"},"text":{"preview_url":false,"body":"x"}}`},
		{"a reference that is too long is left out", tidemark.Outgoing{To: tidemark.Address{Peer: "1555"}, Text: "x", Ref: strings.Repeat("r", 513)},
			`{"messaging_product":"whatsapp","recipient_type":"individual","to":"1555","type":"text","text":{"preview_url":false,"body":"x"}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, graph.Config{})
			row.out.To.Account = graph.DefaultAccount
			id, err := r.Send(r.ctx, row.out)
			if err != nil {
				t.Fatal(err)
			}
			sent := r.Sent()
			if len(sent) != 1 || sent[0].ID != id || string(sent[0].Body) != row.body {
				t.Errorf("sent %s as %s\nwant %s", sent[0].Body, id, row.body)
			}
		})
	}
}

// TestStatusesOfSent: in any order, each names the message and the row of the ledger.
func TestStatusesOfSent(t *testing.T) {
	for _, disorder := range []bool{false, true} {
		r := newRig(t, graph.Config{Disorder: disorder})
		id, err := r.Send(r.ctx, tidemark.Outgoing{To: r.to(ada.Number), Ref: "agent:main:main/7", Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, a := range r.arrivals(t) {
			if a.Status == nil || a.Status.ID != id || a.Status.Ref != "agent:main:main/7" || a.Status.At.IsZero() {
				t.Fatalf("arrival %+v", a)
			}
			seen[a.Status.Status]++
		}
		want := map[string]int{"sent": 1, "delivered": 1, "read": 1}
		if disorder {
			want = map[string]int{"sent": 2, "delivered": 2, "read": 2}
		}
		if !reflect.DeepEqual(seen, want) {
			t.Errorf("disorder %v: %v", disorder, seen)
		}
	}
}

// TestCodes has a row for each row of the API's table of errors, as an answer and, where that may
// be, as a status.
func TestCodes(t *testing.T) {
	const again, failed, closed, halted = tidemark.SendAgain, tidemark.SendFailed, tidemark.SendClosed, tidemark.SendHalted
	rows := map[int]tidemark.SendClass{
		131047: closed,
		131026: failed, 131049: failed, 130472: failed,
		130429: again, 80007: again, 4: again, 131056: again,
		131048: halted, 368: halted,
		131016: again, 131000: again, 1: again, 2: again,
		100: failed, 131008: failed, 131009: failed, 131051: failed,
		131052: failed, 131053: failed,
		190: halted, 0: halted, 10: halted, 200: halted, 299: halted,
		131021: failed, 131031: failed, 131042: failed, 33: failed,
		132000: failed, 132015: failed, 133004: failed, 133010: failed,
	}
	if len(rows) != len(graph.Codes) {
		t.Errorf("%d rows, the fake has %d codes", len(rows), len(graph.Codes))
	}
	r := newRig(t, graph.Config{})
	for code, class := range rows {
		_, err := r.Send(r.ctx, tidemark.Outgoing{To: r.to(graph.Trigger(graph.Refuse, code)), Text: "x"})
		s := sendError(t, err)
		if s.Class != class || s.Code != code || s.Text == "" || (s.RetryAfter != 0) != (code == 131056) {
			t.Errorf("%d: %+v, want %s", code, s, class)
		}
		if code == 0 {
			continue // no status has it
		}
		if _, err := r.Send(r.ctx, tidemark.Outgoing{To: r.to(graph.Trigger(graph.Late, code)), Ref: "late", Text: "x"}); err != nil {
			t.Errorf("%d, late: %v", code, err)
		}
	}
	late := map[int]tidemark.SendClass{}
	for _, a := range r.arrivals(t) {
		if a.Status == nil || a.Status.Status != tidemark.StatusFailed || a.Status.Ref != "late" {
			t.Fatalf("arrival %+v", a)
		}
		late[a.Status.Error.Code] = a.Status.Error.Class
	}
	delete(rows, 0)
	if !reflect.DeepEqual(late, rows) {
		t.Errorf("by status %v\nwant %v", late, rows)
	}
	if n := len(r.Sent()); n != len(rows) {
		t.Errorf("%d messages were taken, want those that fail late: %d", n, len(rows))
	}
}

// TestFate: a send whose answer does not come is unknown once it was begun, and only then.
func TestFate(t *testing.T) {
	for _, row := range []struct {
		name  string
		fault graph.Fault
		class tidemark.SendClass
		after time.Duration
		taken int
	}{
		{"taken, the answer is lost", graph.Fault{Mode: graph.Lost}, tidemark.SendUnknown, 0, 1},
		{"taken, the answer is cut", graph.Fault{Mode: graph.Cut}, tidemark.SendUnknown, 0, 1},
		{"taken, the answer is no JSON", graph.Fault{Mode: graph.Garbled}, tidemark.SendUnknown, 0, 1},
		{"not taken, never answered", graph.Fault{Mode: graph.Slow}, tidemark.SendUnknown, 0, 0},
		{"not taken, the connection closed", graph.Fault{Mode: graph.Dropped}, tidemark.SendUnknown, 0, 0},
		{"not taken, a proxy's 502", graph.Fault{Mode: graph.BadGateway}, tidemark.SendUnknown, 0, 0},
		{"a 5xx with a code that nobody knows", graph.Fault{Code: 987, Status: 500}, tidemark.SendUnknown, 0, 0},
		{"a 4xx with a code that nobody knows", graph.Fault{Code: 987, Status: 400}, tidemark.SendFailed, 0, 0},
		{"a pause that is asked for", graph.Fault{Code: 130429, Status: 429, RetryAfter: 17}, tidemark.SendAgain, 17 * time.Second, 0},
		{"the pair's own pause", graph.Fault{Code: 131056}, tidemark.SendAgain, 4 * time.Second, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, graph.Config{})
			r.Fail(ada.Number, row.fault)
			ctx := r.ctx
			if row.fault.Mode == graph.Lost || row.fault.Mode == graph.Slow {
				c, cancel := context.WithTimeoutCause(r.ctx, 500*time.Millisecond, tidemark.ErrTimeout)
				defer cancel()
				ctx = c
			}
			_, err := r.Send(ctx, tidemark.Outgoing{To: r.to(ada.Number), Text: "x", Ref: "k/1"})
			s := sendError(t, err)
			if s.Class != row.class || s.RetryAfter != row.after || len(r.Sent()) != row.taken {
				t.Errorf("got %+v with %d taken", s, len(r.Sent()))
			}
			if row.fault.Mode == graph.Cut && s.Text != "the answer was cut off" {
				t.Errorf("it says %q", s.Text)
			}
			if got := r.arrivals(t); (len(got) > 0) != (row.taken > 0) {
				t.Errorf("%d statuses of %d messages", len(got), row.taken)
			}
		})
	}
}

// TestNeverWritten: without a connection nothing was sent, so it may be tried again.
func TestNeverWritten(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		name  string
		cfg   Config
		ctx   context.Context
		class tidemark.SendClass
	}{
		{"refused", Config{Token: "t", BaseURL: gone, Transport: &http.Transport{}}, t.Context(), tidemark.SendAgain},
		{"ended before", Config{Token: "t", BaseURL: gone, Transport: &http.Transport{}}, ended, tidemark.SendAgain},
		{"no token", Config{BaseURL: gone, Transport: &http.Transport{}}, t.Context(), tidemark.SendHalted},
		{"no transport", Config{Token: "t"}, t.Context(), tidemark.SendHalted},
		{"no address", Config{Token: "t", BaseURL: "://", Transport: &http.Transport{}}, t.Context(), tidemark.SendHalted},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := New(row.cfg).Send(row.ctx, tidemark.Outgoing{To: tidemark.Address{Account: "1", Peer: "1"}, Text: "x"})
			if s := sendError(t, err); s.Class != row.class {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestSecretsStayOut(t *testing.T) {
	r := newRig(t, graph.Config{})
	r.Fail("1", graph.Fault{Code: 190, Text: "Malformed access token " + graph.DefaultToken}, graph.Fault{Code: 190, Text: "Malformed EAAGm0PX4ZCpsBAKZBPZCZB of yours, in EAA words"})
	for range 2 {
		_, err := r.Send(r.ctx, tidemark.Outgoing{To: r.to("1"), Text: "x"})
		if s := sendError(t, err); strings.Contains(s.Error(), graph.DefaultToken) || strings.Contains(s.Error(), "EAAGm0") || !strings.Contains(s.Text, "[redacted]") {
			t.Errorf("got %v", s)
		}
	}
}

func TestPairLimit(t *testing.T) {
	now := time.Unix(1795200000, 0)
	var mu sync.Mutex
	r := newRig(t, graph.Config{Burst: 2, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	var got []string
	for i := range 5 {
		if i == 4 {
			mu.Lock()
			now = now.Add(6 * time.Second)
			mu.Unlock()
		}
		_, err := r.Send(r.ctx, tidemark.Outgoing{To: r.to(ada.Number), Text: "x"})
		if err != nil {
			got = append(got, string(sendError(t, err).Class))
			continue
		}
		got = append(got, "sent")
	}
	if want := []string{"sent", "sent", "again", "again", "sent"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWindow(t *testing.T) {
	r := newRig(t, graph.Config{Window: true})
	try := func() channel.Arrival {
		t.Helper()
		if _, err := r.Send(r.ctx, tidemark.Outgoing{To: r.to(ada.UserID), Text: "x"}); err != nil {
			t.Fatal(err)
		}
		got := r.arrivals(t)
		return got[len(got)-1]
	}
	if a := try(); a.Status == nil || a.Status.Error == nil || a.Status.Error.Class != tidemark.SendClosed {
		t.Errorf("before they wrote: %+v", a)
	}
	r.Say(ada, r.Text(ada, "hi"))
	r.arrivals(t) // the webhook before any status of what is sent next
	if a := try(); a.Status == nil || a.Status.Status != tidemark.StatusRead {
		t.Errorf("after they wrote: %+v", a)
	}
	r.Expire(ada.Number)
	if a := try(); a.Status == nil || a.Status.Error == nil || a.Status.Error.Class != tidemark.SendClosed {
		t.Errorf("a day later: %+v", a)
	}
}

// TestPosted: what the fake posts is verified and read, escapes, retries and batches included.
func TestPosted(t *testing.T) {
	r := newRig(t, graph.Config{Gaps: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}})
	r.mu.Lock()
	r.down = 2
	r.mu.Unlock()
	text := r.Text(ada, "é / 🌊 \"</script>")
	r.Say(ada, text.Quote(graph.DefaultNumber, "wamid.B7"))
	got := r.arrivals(t)
	if len(got) != 1 || got[0].Message == nil {
		t.Fatalf("got %+v", got)
	}
	m := got[0].Message
	if m.ID != text.ID() || m.Text != "é / 🌊 \"</script>" || m.Quoted != "wamid.B7" || m.Name != "Ada" {
		t.Errorf("got %+v", m)
	}
	p := r.Posts()[0]
	if p.Tries != 3 || !p.Acked || !strings.Contains(p.Body, `\u00e9 \/ \ud83c\udf0a`) {
		t.Errorf("post %+v", p)
	}
	var values []map[string]any
	for range 1000 {
		values = append(values, r.Value(ada, r.Text(ada, strings.Repeat("x", 2500))))
	}
	batch := r.Envelope("messages", values...)
	if len(batch) < 2<<20 || len(batch) > channel.MaxBody {
		t.Fatalf("%d bytes", len(batch))
	}
	r.Post(batch)
	if got := r.arrivals(t); len(got) != 1001 {
		t.Errorf("%d arrivals, want 1001", len(got))
	}
}

func TestWorking(t *testing.T) {
	r := newRig(t, graph.Config{})
	m := r.Text(ada, "hi")
	r.Say(ada, m)
	r.arrivals(t)
	if err := r.Working(r.ctx, r.to(ada.Number), m.ID()); err != nil {
		t.Fatal(err)
	}
	if got := r.Reads(); len(got) != 1 || got[0] != (graph.Read{ID: m.ID(), Typing: true}) {
		t.Errorf("got %+v", got)
	}
	if err := r.Working(r.ctx, r.to(ada.Number), "wamid.unknown"); err == nil {
		t.Error("an unknown message was marked as read")
	}
	group := r.to("G")
	group.Group = true
	if err := r.Working(r.ctx, group, m.ID()); err != nil || len(r.Reads()) != 1 {
		t.Errorf("a group has no read mark: %v", err)
	}
}

func TestParts(t *testing.T) {
	r := newRig(t, graph.Config{})
	long := strings.Repeat("word ", 2000) + "\n\n```go\n" + strings.Repeat("x := 1\n", 1000) + "```\n"
	parts := r.Parts(tidemark.Address{}, "# Title\n\n**bold** [a](https://x.test)\n\n"+long)
	if len(parts) < 4 || !strings.HasPrefix(parts[0], "*Title*") {
		t.Fatalf("%d parts, the first begins %.40q", len(parts), parts[0])
	}
	for _, p := range parts {
		if _, err := r.Send(r.ctx, tidemark.Outgoing{To: r.to(ada.Number), Text: p}); err != nil {
			t.Errorf("a part was refused: %v", err)
		}
		if strings.Count(p, "```")%2 != 0 {
			t.Errorf("a fence is open in %.60q", p)
		}
	}
	_, err := r.Send(r.ctx, tidemark.Outgoing{To: r.to(ada.Number), Text: strings.Repeat("é", 4097)})
	if s := sendError(t, err); s.Class != tidemark.SendFailed || s.Code != 100 {
		t.Errorf("too long: %+v", s)
	}
}
