package session_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/session"
)

// chronicle is an agent that keeps sittings.
type chronicle struct {
	fakeAgent
	mu  sync.Mutex // guards had
	had map[tidemark.EntryID]memory.Sitting
}

func (c *chronicle) Sittings(_ context.Context, es []memory.Sitting) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range es {
		c.had[e.First] = e
	}
	return nil
}

// later is a runtime whose clock a test moves on.
type later struct {
	tidemark.Runtime
	mu sync.Mutex // guards by
	by time.Duration
}

func (l *later) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Runtime.Now().Add(l.by)
}

func (l *later) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by += d
}

// TestSittingsAreTold: when a conversation has been silent for half an hour, the agent is told what it was about,
// once, and nothing where the digest is off.
func TestSittingsAreTold(t *testing.T) {
	for _, on := range []bool{true, false} {
		h := newHarness(t, session.Settings{})
		h.sittings = on
		h.stop()
		c, clock := &chronicle{had: map[tidemark.EntryID]memory.Sitting{}}, &later{Runtime: h.rt}
		life, stop := context.WithCancel(context.Background())
		t.Cleanup(stop)
		s, err := session.Open(life, session.Config{Key: h.key, DB: h.db, Blobs: h.blobs, Provider: h.model, Agent: c, Runtime: clock, Settings: session.Settings{Model: "test"}, Rooms: h.rooms()})
		if err != nil {
			t.Fatal(err)
		}
		h.Session = s
		wake := func() int {
			t.Helper()
			if err := s.Wake(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.had)
		}
		h.say("deploy the staging server, please: the staging deployment")
		clock.pass(29 * time.Minute)
		if n := wake(); n != 0 {
			t.Errorf("told of %d before the half hour", n)
		}
		h.say("and the wiki")
		clock.pass(31 * time.Minute)
		want := map[bool]int{true: 1}[on]
		if n := wake(); n != want {
			t.Fatalf("on %v: told of %d sittings", on, n)
		}
		if n := wake(); n != want {
			t.Errorf("told again: %d", n)
		}
		h.say("holidays in Rome, holidays")
		clock.pass(31 * time.Minute)
		if n := wake(); n != 2*want {
			t.Errorf("on %v: told of %d sittings", on, n)
		}
		for _, e := range c.had {
			if e.Key != h.key || e.Count != 4 && e.Count != 2 || len(e.Topics) == 0 || e.Last == "" || e.Open || e.Ended == "" || !strings.HasPrefix(e.About, "deploy the staging server") && !strings.HasPrefix(e.About, "holidays in Rome") {
				t.Errorf("sitting %+v", e)
			}
		}
	}
}

// TestSittingsEnd: a reset ends a sitting, and what an import brings of another day is over, without half an hour
// of waiting.
func TestSittingsEnd(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.sittings = true
	h.stop()
	c := &chronicle{had: map[tidemark.EntryID]memory.Sitting{}}
	life, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	s, err := session.Open(life, session.Config{Key: h.key, DB: h.db, Blobs: h.blobs, Provider: h.model, Agent: c, Runtime: h.rt, Settings: session.Settings{Model: "test"}, Rooms: h.rooms()})
	if err != nil {
		t.Fatal(err)
	}
	h.Session = s
	told := func(want int) {
		t.Helper()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.had) != want {
			t.Errorf("told of %d sittings, want %d", len(c.had), want)
		}
	}
	at := time.Now().Add(-48 * time.Hour)
	if _, err := h.Import(t.Context(), func(yield func(replay.Message, error) bool) {
		_ = yield(replay.Message{Message: tidemark.NewText(tidemark.User, "the harbour wall"), At: at}, nil) &&
			yield(replay.Message{Message: tidemark.NewText(tidemark.User, "the orchard fence"), At: at.Add(4 * time.Hour)}, nil)
	}, nil); err != nil {
		t.Fatal(err)
	}
	told(2)
	h.say("deploy the staging server")
	h.resetNow()
	told(3)
}
