package session_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// clock is a runtime whose time a test sets. A sleep ends and a deadline passes when the clock gets
// there; with sleepy unset a sleep moves the clock itself, so that nothing waits.
type clock struct {
	*tidemarktest.Runtime

	mu     sync.Mutex // guards the following
	now    time.Time
	skew   time.Duration // of the wall clock; timers do not know of it
	timers []*timer
	sleepy bool
	waits  time.Duration // sleeps of this length are sleepy ones in any case
	slept  []time.Duration
	armed  chan struct{}   // closed with the next timer, if set
	dead   <-chan struct{} // once closed, nothing sleeps on: the process has been killed. Nil: it lives
}

type timer struct {
	at   time.Time
	fire func()
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(c.skew)
}

// jump moves the wall clock alone, as a host that sets its time does.
func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew += d
}

// set moves the clock, in either direction, and fires what is due.
func (c *clock) set(now time.Time) {
	c.mu.Lock()
	now = now.Add(-c.skew)
	c.now = now
	var due []*timer
	c.timers = slices.DeleteFunc(c.timers, func(t *timer) bool {
		if t.at.After(now) {
			return false
		}
		due = append(due, t)
		return true
	})
	c.mu.Unlock()
	for _, t := range due {
		t.fire()
	}
}

// diesWith stops the clock for those who sleep when dead is closed; nil lets it go on.
func (c *clock) diesWith(dead <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = dead
}

func (c *clock) advance(d time.Duration) { c.set(c.Now().Add(d)) }

// after calls fire when d has passed; stop forgets it.
func (c *clock) after(d time.Duration, fire func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{c.now.Add(d), fire}
	c.timers = append(c.timers, t)
	if c.armed != nil {
		close(c.armed)
		c.armed = nil
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timers = slices.DeleteFunc(c.timers, func(x *timer) bool { return x == t })
	}
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	sleepy := c.sleepy || d == c.waits
	c.slept = append(c.slept, d)
	dead := c.dead
	c.mu.Unlock()
	select {
	case <-dead:
		<-ctx.Done()
	default:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !sleepy {
		c.advance(d)
		return nil
	}
	over := make(chan struct{})
	defer c.after(d, func() { close(over) })()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *clock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	stop := c.after(d, func() { cancel(tidemark.ErrTimeout) })
	return limited, func() { stop(); cancel(context.Canceled) }
}

// sleeps returns how long the sleeps were so far.
func (c *clock) sleeps() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.slept)
}

// newTimed is a harness whose clock stands at a moment, given in RFC 3339.
func newTimed(t *testing.T, set session.Settings, now string) (*harness, *clock) {
	t.Helper()
	return timed(t, set, now, withNeighbours)
}

// newTimedAlone is newTimed without neighbours.
func newTimedAlone(t *testing.T, set session.Settings, now string) (*harness, *clock) {
	t.Helper()
	return timed(t, set, now, func(testing.TB, tidemark.DB) *neighbours { return nil })
}

func timed(t *testing.T, set session.Settings, now string, beside func(testing.TB, tidemark.DB) *neighbours) (*harness, *clock) {
	t.Helper()
	c := &clock{Runtime: tidemarktest.NewRuntime(t), now: moment(t, now)}
	h := &harness{t: t, db: hosttest.DB(t), blobs: tidemarktest.NewBlobs(), model: &model{}, agent: &fakeAgent{}, rt: c, set: set, key: "agent:main:main"}
	h.beside = beside(t, h.db)
	h.open()
	return h, c
}

func moment(t *testing.T, s string) time.Time {
	t.Helper()
	m, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// info returns what the directory would show.
func (h *harness) info() tidemark.SessionInfo {
	h.t.Helper()
	i, err := h.Info(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return i
}

// current returns the texts of the messages of the current session.
func (h *harness) current() []string {
	h.t.Helper()
	var out []string
	for e, err := range h.Reader.All(h.t.Context(), false) {
		if err != nil {
			h.t.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, string(m.Role)+": "+m.PlainText())
	}
	return out
}

// due returns when the session wants to be woken; the zero time for never.
func (h *harness) due() time.Time {
	h.t.Helper()
	all, err := session.Due(h.t.Context(), h.db, h.rt.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	return all[h.key]
}

// wake calls Wake as an alarm does, and waits until nothing is in work.
func (h *harness) wake() {
	h.t.Helper()
	if err := h.Wake(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.idle()
}

// idle waits until everything that the session started has ended.
func (h *harness) idle() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), tidemarktest.Patience)
	defer cancel()
	if err := h.rt.(*clock).Wait(ctx); err != nil {
		h.t.Fatalf("the session does not come to rest: %v", err)
	}
}

// summaries returns the calls that asked for a summary or for memories.
func (m *model) summaries() []tidemark.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []tidemark.Request
	for _, r := range m.calls {
		if asksSummary(r) {
			out = append(out, r)
		}
	}
	return out
}
