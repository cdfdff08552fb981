package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
)

// TestSweep walks over some nights: one sweep each, in the agent's own night, and again in an hour
// when the bucket was down.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	swept, down := 0, false
	w.blobs.Fail = func(op, key string) error {
		if op == "list" && strings.HasSuffix(key, "/sessions/") {
			swept++
			if down {
				return errors.New("the bucket is down")
			}
		}
		return nil
	}
	wake := func() time.Time {
		t.Helper()
		next, err := w.Wake(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	next := wake()
	for _, night := range []struct {
		name string
		day  int
	}{{"first", 22}, {"second", 23}} {
		t.Run(night.name, func(t *testing.T) {
			local := next.In(w.cfg.Zone)
			if local.Day() != night.day || local.Hour() != 3 {
				t.Fatalf("the next sweep is at %s, want the night of the %d", local, night.day)
			}
			before := swept
			w.clock.move(next.Sub(w.clock.Now()) - time.Second)
			if wake(); swept != before {
				t.Error("swept before its time")
			}
			w.clock.move(time.Second)
			next = wake()
			once := swept
			if again := wake(); once == before || swept != once || !again.Equal(next) {
				t.Errorf("listed %d times and %d more, then wants %s, again %s", once-before, swept-once, next, again)
			}
		})
	}

	w.clock.move(next.Sub(w.clock.Now()))
	down = true
	if again := wake(); again.Sub(w.clock.Now()) != time.Hour {
		t.Errorf("after a sweep that failed, the next is in %s", again.Sub(w.clock.Now()))
	}
	down = false
	w.clock.move(-48 * time.Hour) // the clock is set back
	if again := wake(); again.Sub(w.clock.Now()) > 24*time.Hour {
		t.Errorf("with the clock set back the next sweep is in %s", again.Sub(w.clock.Now()))
	}
}

// TestSweepMends: an archive that nobody reported is in the index in the morning.
func TestSweepMends(t *testing.T) {
	w := newWorld(t)
	next, err := w.Wake(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	line := "{\"role\":\"user\",\"content\":\"hello\"}\n"
	if _, err := w.blobs.Put(t.Context(), archive.WholeKey(w.cfg.Name, "stray"), strings.NewReader(line), int64(len(line)), tidemark.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	w.clock.move(next.Sub(w.clock.Now()))
	if _, err := w.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, _, err := archive.List(t.Context(), w.blobs, w.cfg.Name, archive.ListOptions{Limit: 10})
	if err != nil || len(page) != 1 || !strings.Contains(page[0].Key, "stray") {
		t.Errorf("the index has %+v, %v", page, err)
	}
}
