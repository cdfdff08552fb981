package channel_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// fakePlatform posts lists of arrivals as JSON, signed with a word. Its files are in memory.
type fakePlatform struct {
	files map[string][]byte
	open  func(channel.Media) error // asked before a file is opened
}

func (f *fakePlatform) Name() string { return "fake" }

func (f *fakePlatform) Handshake(q url.Values) (string, error) {
	if q.Get("token") != "word" {
		return "", fmt.Errorf("handshake: %w", tidemark.ErrForbidden)
	}
	return q.Get("challenge"), nil
}

func (f *fakePlatform) Signed(h http.Header) error { return f.Verify(h, nil) }

func (f *fakePlatform) Verify(h http.Header, _ []byte) error {
	if h.Get("X-Signature") != "word" {
		return fmt.Errorf("signature: %w", tidemark.ErrUnauthorized)
	}
	return nil
}

func (f *fakePlatform) Decode(body []byte) (out []channel.Arrival, err error) {
	if err := json.Unmarshal(body, &out); err != nil {
		return nil, fmt.Errorf("decode: %w: %w", err, tidemark.ErrInvalid)
	}
	return out, nil
}

func (f *fakePlatform) Open(_ context.Context, _ string, m channel.Media) (channel.Media, io.ReadCloser, error) {
	if f.open != nil {
		if err := f.open(m); err != nil {
			return m, nil, err
		}
	}
	raw, ok := f.files[m.ID]
	if !ok {
		return m, nil, fmt.Errorf("file: %w", tidemark.ErrNotFound)
	}
	return m, io.NopCloser(bytes.NewReader(raw)), nil
}

// inbox is the sessions of a test: like real ones, they take an id once.
type inbox struct {
	mu     sync.Mutex
	fail   func(key tidemark.Key, in channel.Input) error // asked before each post
	posts  map[tidemark.Key][]channel.Input
	seen   map[string]int // calls by key and id
	status []tidemark.Delivery
	said   []string
	saidID map[string]bool
}

func newInbox() *inbox {
	return &inbox{posts: map[tidemark.Key][]channel.Input{}, seen: map[string]int{}, saidID: map[string]bool{}}
}

func (b *inbox) Post(_ context.Context, key tidemark.Key, in channel.Input) error {
	if b.fail != nil {
		if err := b.fail(key, in); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := string(key) + " " + in.ID
	if b.seen[id]++; b.seen[id] == 1 {
		b.posts[key] = append(b.posts[key], in)
	}
	return nil
}

func (b *inbox) Delivered(_ context.Context, _ tidemark.Key, d tidemark.Delivery) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = append(b.status, d)
	return nil
}

func (b *inbox) Say(_ context.Context, _ tidemark.Key, id string, to tidemark.Address, text string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.saidID[id] {
		b.saidID[id] = true
		b.said = append(b.said, to.Peer+": "+text)
	}
	return nil
}

// texts are what was posted to a session, in order.
func (b *inbox) texts(key tidemark.Key) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, in := range b.posts[key] {
		if in.Command != "" {
			out = append(out, "/"+in.Command+" "+in.Text)
			continue
		}
		out = append(out, in.Message.PlainText())
	}
	return out
}

func (b *inbox) total() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.posts {
		n += len(p)
	}
	return n
}

// clock is a runtime whose time a test can let pass. The databases of a host without threads would not wait
// in a bubble of testing/synctest.
type clock struct {
	*tidemarktest.Runtime
	ahead atomic.Int64
}

func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// pass lets time pass.
func (r *rig) pass(d time.Duration) { r.rt.ahead.Add(int64(d)) }

// passTo lets time pass until then.
func (r *rig) passTo(at time.Time) {
	if d := at.Sub(r.rt.Now()); d > 0 {
		r.pass(d)
	}
}

// rig is an Ingress on real SQLite.
type rig struct {
	t     *testing.T
	db    tidemark.DB
	blobs *tidemarktest.Blobs
	fake  *fakePlatform
	inbox *inbox
	book  *channel.Book
	rt    *clock
	rules channel.Rules
	in    *channel.Ingress
}

func newRig(t *testing.T, rules channel.Rules) *rig {
	t.Helper()
	rules.Agent = "main"
	r := &rig{t: t, db: hosttest.DB(t), blobs: tidemarktest.NewBlobs(), fake: &fakePlatform{files: map[string][]byte{}}, inbox: newInbox(), rt: &clock{Runtime: tidemarktest.NewRuntime(t)}, rules: rules}
	var err error
	if r.book, err = channel.OpenBook(t.Context(), hosttest.DB(t), r.rt, r.inbox); err != nil {
		t.Fatal(err)
	}
	r.in = r.open(t.Context(), r.db)
	return r
}

// open begins a life on a database.
func (r *rig) open(ctx context.Context, db tidemark.DB) *channel.Ingress {
	r.t.Helper()
	in, err := channel.OpenIngress(ctx, channel.Config{DB: db, Blobs: r.blobs, Runtime: r.rt, Sessions: r.inbox,
		Channels: map[string]channel.Channel{"fake": {Platform: channel.Platform{Webhook: r.fake, Library: r.fake}, Rules: r.rules}},
		Desk:     func(string) channel.Desk { return r.book }, Schedule: func(time.Time) {}})
	if err != nil && ctx.Err() == nil {
		r.t.Fatal(err)
	}
	return in
}

var signed = http.Header{"X-Signature": {"word"}}

func body(t *testing.T, arrivals ...channel.Arrival) []byte {
	t.Helper()
	raw, err := json.Marshal(arrivals)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// post receives arrivals in one webhook.
func (r *rig) post(arrivals ...channel.Arrival) {
	r.t.Helper()
	if err := r.in.Receive(r.t.Context(), "fake", signed, body(r.t, arrivals...)); err != nil {
		r.t.Fatal(err)
	}
}

// rest waits until the work at hand is done, and returns when more is due.
func (r *rig) rest() time.Time {
	r.t.Helper()
	next, err := r.in.Wake(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return next
}

// said is a message of somebody.
func said(from, id, text string) channel.Arrival {
	return channel.Arrival{Message: &channel.Incoming{ID: id, Message: id, From: []string{from}, Name: "Ada",
		Reply: tidemark.Address{Platform: "fake", Account: "4400", Peer: from}, At: time.Unix(1_800_000_000, 0), Kind: "text", Text: text}}
}

func sum(raw []byte) string {
	s := sha256.Sum256(raw)
	return hex.EncodeToString(s[:])
}

func (r *rig) want(key tidemark.Key, texts ...string) {
	r.t.Helper()
	if got := r.inbox.texts(key); !slices.Equal(got, texts) {
		r.t.Errorf("%s has %q, want %q", key, got, texts)
	}
}
