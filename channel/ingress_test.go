package channel_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

var open = channel.Rules{Access: channel.AccessOpen}

// TestStorm: the same thousand messages five times, in other batches and by two writers, are each posted,
// once, and each person's in order.
func TestStorm(t *testing.T) {
	r := newRig(t, open)
	const people, each = 50, 20
	var all []channel.Arrival
	for n := range each {
		for p := range people {
			a := said(fmt.Sprintf("1555%04d", p), fmt.Sprintf("m%d.%d", p, n), fmt.Sprint(n))
			a.Message.At = a.Message.At.Add(time.Duration(n) * time.Second)
			all = append(all, a)
		}
	}
	var wg sync.WaitGroup
	for round, size := range []int{1000, 100, 250, 500, 1000} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for at := 0; at < len(all); at += size {
				if err := r.in.Receive(t.Context(), "fake", signed, body(t, all[at:at+size]...)); err != nil {
					t.Error(round, err)
				}
			}
		}()
		if round == 0 {
			wg.Wait() // what comes again comes behind it
		}
	}
	wg.Wait()
	if next := r.rest(); !next.IsZero() {
		t.Errorf("something is left for %s", next)
	}
	if n := r.inbox.total(); n != people*each {
		t.Errorf("%d posts, want %d", n, people*each)
	}
	var want []string
	for n := range each {
		want = append(want, fmt.Sprint(n))
	}
	for p := range people {
		r.want(tidemark.Key(fmt.Sprintf("agent:main:fake:dm:1555%04d", p)), want...)
	}
}

// TestReceive: what is not the platform's is refused before anything is stored.
func TestReceive(t *testing.T) {
	r := newRig(t, open)
	for _, row := range []struct {
		name, platform string
		h              map[string][]string
		body           []byte
		want           error
	}{
		{"signed", "fake", signed, body(t, said("15550001", "a", "hi")), nil},
		{"again", "fake", signed, body(t, said("15550001", "a", "hi")), nil},
		{"unsigned", "fake", nil, body(t, said("15550001", "b", "hi")), tidemark.ErrUnauthorized},
		{"forged", "fake", map[string][]string{"X-Signature": {"other"}}, body(t, said("15550001", "c", "hi")), tidemark.ErrUnauthorized},
		{"another platform", "smoke", signed, nil, tidemark.ErrNotFound},
		{"10 MB", "fake", signed, make([]byte, 10<<20), tidemark.ErrTooLarge},
		{"no JSON", "fake", signed, []byte("{{{"), nil}, // acknowledged: it would come again for days
		{"deep", "fake", signed, []byte(strings.Repeat("[", 1<<20)), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := r.in.Receive(t.Context(), row.platform, row.h, row.body); !errors.Is(err, row.want) {
				t.Errorf("%v, want %v", err, row.want)
			}
		})
	}
	r.rest()
	r.want("agent:main:fake:dm:15550001", "hi")
	dead, err := channel.GivenUp(t.Context(), r.in.DB)
	if err != nil || len(dead) != 2 {
		t.Errorf("given up: %+v, %v; want what cannot be read", dead, err)
	}
	if answer, err := r.in.Handshake("fake", url.Values{"token": {"word"}, "challenge": {"7"}}); err != nil || answer != "7" {
		t.Errorf("handshake: %q, %v", answer, err)
	}
	if _, err := r.in.Handshake("fake", url.Values{"token": {"x"}}); !errors.Is(err, tidemark.ErrForbidden) {
		t.Errorf("handshake with another word: %v", err)
	}
}

// TestLargeBody: a body of 3 MB is stored and read in pieces.
func TestLargeBody(t *testing.T) {
	r := newRig(t, open)
	var all []channel.Arrival
	for i := range 700 {
		all = append(all, said("15550001", fmt.Sprint(i), strings.Repeat("x", 4096)))
	}
	r.post(all...)
	r.rest()
	if n := r.inbox.total(); n != len(all) {
		t.Errorf("%d posts, want %d", n, len(all))
	}
}

// TestOrder: within a webhook a person's messages go by the platform's time, and in its order within a
// second; statuses find their session.
func TestOrder(t *testing.T) {
	r := newRig(t, open)
	late, early, same := said("15550001", "1", "late"), said("15550001", "2", "early"), said("15550001", "3", "early too")
	late.Message.At = late.Message.At.Add(time.Second)
	r.post(late, channel.Arrival{Status: &tidemark.Delivery{Ref: "agent:main:main/7", ID: "w", Status: "sent"}}, early, same,
		channel.Arrival{Status: &tidemark.Delivery{ID: "unknown", Status: "sent"}}, channel.Arrival{Odd: "sticker of a kind"})
	r.rest()
	r.want("agent:main:fake:dm:15550001", "early", "early too", "late")
	if len(r.inbox.status) != 1 || r.inbox.status[0].ID != "w" {
		t.Errorf("statuses %+v", r.inbox.status)
	}
}

// TestFailing: a session that fails holds up its own person only, is tried again when it is due, in
// order, and what never succeeds ends visibly.
func TestFailing(t *testing.T) {
	r := newRig(t, open)
	down := true
	r.inbox.fail = func(_ tidemark.Key, in channel.Input) error {
		switch {
		case in.Message.PlainText() == "poison":
			return fmt.Errorf("post: %w", tidemark.ErrInvalid)
		case in.Origin.Peer == "15550001" && down:
			return fmt.Errorf("post: %w", tidemark.ErrUnavailable)
		}
		return nil
	}
	r.post(said("15550001", "1", "one"), said("15550002", "2", "fine"), said("15550001", "3", "two"), said("15550003", "4", "poison"), said("15550003", "5", "after"))
	next := r.rest()
	r.want("agent:main:fake:dm:15550002", "fine")
	r.want("agent:main:fake:dm:15550001")
	r.post(said("15550001", "6", "three")) // must not overtake
	r.rest()
	r.want("agent:main:fake:dm:15550001")
	down = false
	for tries := 0; !next.IsZero() && tries < 10; tries++ {
		r.passTo(next)
		next = r.rest()
	}
	r.want("agent:main:fake:dm:15550001", "one", "two", "three")
	r.want("agent:main:fake:dm:15550003", "after")
	if dead, err := channel.GivenUp(t.Context(), r.in.DB); err != nil || len(dead) != 1 || !strings.Contains(dead[0].Error, "invalid") {
		t.Errorf("given up: %+v, %v", dead, err)
	}
}

// mortal is a database whose process dies at its n-th write, just before or just after it.
type mortal struct {
	tidemark.DB
	mu    sync.Mutex
	left  int
	after bool
	die   context.CancelFunc
}

func (m *mortal) Tx(ctx context.Context, stmts []tidemark.Stmt) error {
	m.mu.Lock()
	m.left--
	left := m.left
	m.mu.Unlock()
	if left < 0 || left == 0 && !m.after {
		m.die()
		return tidemark.ErrDead
	}
	err := m.DB.Tx(ctx, stmts)
	if left == 0 {
		m.die()
		return tidemark.ErrDead
	}
	return err
}

// TestKill ends the life at each write, before and after it: what was acknowledged is posted, each in
// its order and once; what was not is posted again by the platform.
func TestKill(t *testing.T) {
	arrivals := []channel.Arrival{said("15550001", "1", "a"), said("15550002", "2", "b"), said("15550001", "3", "c")}
	for n := 1; n < 12; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(n, after), func(t *testing.T) {
				r := newRig(t, open)
				life, die := context.WithCancel(t.Context())
				defer die()
				first := r.open(life, &mortal{DB: r.db, left: n, after: after, die: die})
				for _, a := range arrivals[:2] {
					if err := first.Receive(life, "fake", signed, body(t, a)); err != nil {
						break
					}
				}
				for range 3 { // the next life, and what the platform posts again
					if _, err := first.Wake(life); err != nil {
						break
					}
				}
				die()
				r.rt.Wait(t.Context())
				r.in = r.open(t.Context(), r.db)
				for _, a := range arrivals {
					r.post(a)
				}
				r.rest()
				r.want("agent:main:fake:dm:15550001", "a", "c")
				r.want("agent:main:fake:dm:15550002", "b")
			})
		}
	}
}
