package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/session"
)

// pointing is a harness whose compactions ask no model, on a clock of its own.
func pointing(t *testing.T, set session.Settings, list ...compaction.Strategy) (*harness, *clock) {
	t.Helper()
	h, c := newTimed(t, set, noon)
	h.stop()
	h.strategies = list
	h.open()
	return h, c
}

// conversations returns what the model was asked for memories of, as one text.
func (h *harness) conversations() string {
	var b strings.Builder
	for _, r := range h.model.summaries() {
		b.WriteString(inner(r.Messages[0].PlainText(), "<conversation>", "</conversation>"))
	}
	return b.String()
}

// TestEvictedIsRemembered: what leaves the view under markers reaches the memory as what a summary read does: each
// message once, behind the turn or at the latest at the reset, whether markers merged or not.
func TestEvictedIsRemembered(t *testing.T) {
	for _, tc := range []struct {
		name  string
		wakes bool
		list  []compaction.Strategy
	}{
		{"by wakes", true, []compaction.Strategy{compaction.Pointer{}}},
		{"at the reset", false, []compaction.Strategy{compaction.Pointer{}}},
		{"pointer and summary", true, []compaction.Strategy{compaction.Pointer{}, compaction.Summary{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, c := pointing(t, small, tc.list...)
			h.say("We decided on oak for the door.")
			h.fill(6)
			if asked := h.conversations(); strings.Contains(asked, "oak") {
				t.Fatalf("a turn waited for memories: %.300q", asked)
			}
			if tc.wakes {
				for range 20 {
					c.advance(time.Second)
					h.wake()
				}
				if asked := h.conversations(); strings.Count(asked, "oak") != 1 || len(h.agent.remembered()) == 0 {
					t.Fatalf("behind the turn, facts %q, asked for %.500q", h.agent.remembered(), asked)
				}
			}
			said := h.said()
			h.resetNow()
			h.idle()
			asked := h.conversations()
			if got := strings.Count(asked, "[user] message "); got != said-1 || strings.Count(asked, "oak") != 1 {
				t.Errorf("asked for the memories of %d messages, want each of %d once", got, said-1)
			}
			if want := len(h.model.summaries()); len(h.agent.remembered()) != want {
				t.Errorf("facts %q, want %d", h.agent.remembered(), want)
			}
			if got := h.events("reset"); strings.Contains(got[0], "memoriesOwed") || !tc.wakes && !strings.Contains(got[0], fmt.Sprintf(`"memories":%d`, len(h.agent.remembered()))) {
				t.Errorf("reset event %q", got)
			}
			calls := h.model.count()
			for range 5 {
				c.advance(15 * time.Minute)
				h.wake()
			}
			if h.model.count() != calls || !h.due().IsZero() {
				t.Errorf("%d calls more, due at %s", h.model.count()-calls, h.due())
			}
		})
	}
}

// TestEvictedWithoutModel: while the model cannot be reached turns and compactions go on, nothing is tried more
// often than each 15 minutes, and nothing is lost, in a later life and behind a reset neither.
func TestEvictedWithoutModel(t *testing.T) {
	h, c := pointing(t, small, compaction.Pointer{})
	down := fails(tidemark.ClassAuth)
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if !asksSummary(req) {
			return tidemark.Message{}, nil
		}
		_, err := down(req)
		return tidemark.Message{}, err
	})
	h.say("We decided on oak for the door.")
	h.fill(4)
	for range 60 {
		c.advance(10 * time.Second)
		h.wake()
	}
	if n := len(h.model.summaries()); n != 1 {
		t.Errorf("%d tries in ten minutes, want 1", n)
	}
	h.resetNow()
	h.idle()
	if got := h.events("reset"); len(got) != 1 || !strings.Contains(got[0], `"memoriesOwed":true`) {
		t.Errorf("events %q", got)
	}
	h.stop()
	h.open()
	h.model.set(nil)
	refused := len(h.model.summaries())
	for range 20 {
		c.advance(15 * time.Minute)
		h.wake()
	}
	asked := ""
	for _, r := range h.model.summaries()[refused:] {
		asked += inner(r.Messages[0].PlainText(), "<conversation>", "</conversation>")
	}
	if strings.Count(asked, "oak") != 1 || strings.Count(asked, "[user] message 0:") != 1 {
		t.Errorf("asked for %.500q", asked)
	}
	if d := h.due(); !d.IsZero() {
		t.Errorf("still due at %s", d)
	}
}

// TestEvictedIsNotAskedFor: without extractMemories no model is asked, nor of what is in view again by a lift.
func TestEvictedIsNotAskedFor(t *testing.T) {
	set := small
	set.NoMemories = true
	h, c := pointing(t, set, compaction.Pointer{})
	h.fill(3)
	c.advance(time.Hour)
	h.wake()
	h.resetNow()
	h.idle()
	if n := len(h.model.summaries()); n != 0 {
		t.Errorf("without memories: %d calls", n)
	}
	h, c = pointing(t, small, compaction.Pointer{})
	h.fill(1)
	v, err := h.View(t.Context())
	if err != nil || len(v.Shown) != 1 {
		t.Fatalf("%d overlays, %v", len(v.Shown), err)
	}
	if _, err := h.Undo(t.Context(), v.Shown[0].Overlay); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Minute)
	h.wake()
	if n := len(h.model.summaries()); n != 0 {
		t.Errorf("of a lifted overlay: %d calls", n)
	}
}

// said returns how many messages of persons the log has.
func (h *harness) said() int {
	h.t.Helper()
	n := 0
	for _, m := range h.originals() {
		if strings.HasPrefix(m, "user: ") {
			n++
		}
	}
	return n
}

// TestEvictedInChunks: what leaves the view at once and is more than a chunk is read in order, one chunk a wake, and
// a new life goes on where the last one ended.
func TestEvictedInChunks(t *testing.T) {
	for name, killed := range map[string]bool{"one life": false, "a life for each chunk": true} {
		t.Run(name, func(t *testing.T) {
			h, c := pointing(t, small, compaction.Pointer{})
			for i := range 10 {
				h.say(filler(i))
			}
			h.say(strings.Repeat("a long letter ", 600))
			if n := len(h.overlays()); n != 1 {
				t.Fatalf("%d overlays, want 1", n)
			}
			var counts []int
			for range 6 {
				if killed {
					h.stop()
					h.open()
				}
				c.advance(time.Second)
				h.wake()
				counts = append(counts, strings.Count(h.conversations(), "[user] message "))
			}
			if counts[1] <= counts[0] {
				t.Errorf("asked for %v messages wake by wake, want chunks", counts)
			}
			answers := len(h.originals()) - h.said()
			h.resetNow()
			h.idle()
			if got := strings.Count(h.conversations(), "[assistant] "); got != answers {
				t.Errorf("asked for %d answers, want each of %d once", got, answers)
			}
			for i := range 10 {
				if got := strings.Count(h.conversations(), fmt.Sprintf("[user] message %d:", i)); got != 1 {
					t.Errorf("message %d was asked for %d times", i, got)
				}
			}
			if want := len(h.model.summaries()); len(h.agent.remembered()) != want {
				t.Errorf("facts %q, want %d", h.agent.remembered(), want)
			}
		})
	}
}

// overlays returns the overlays of the log, oldest first.
func (h *harness) overlays() []tidemark.EntryID {
	h.t.Helper()
	entries, err := h.Reader.Entries(h.t.Context(), 0, 10000)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []tidemark.EntryID
	for _, e := range slices.Backward(entries) {
		if e.Kind == tidemark.KindOverlay {
			out = append(out, e.ID)
		}
	}
	return out
}

// undo lifts an overlay and returns the lift.
func (h *harness) undo(overlay tidemark.EntryID) tidemark.EntryID {
	h.t.Helper()
	if changed, err := h.Undo(h.t.Context(), overlay); err != nil || !changed {
		h.t.Fatalf("undo %s: %v, %v", overlay, changed, err)
	}
	all := h.overlays()
	return all[len(all)-1]
}

// TestEvictedAndLifted: what stays out of the view though its overlay is lifted, and what goes out again because a lift
// is lifted, is asked for like the rest; what came back is asked for when it leaves again, or by the reset.
func TestEvictedAndLifted(t *testing.T) {
	for _, tc := range []struct {
		name   string
		cycles int
		lift   func(h *harness, wake func())
		early  int // how often the first message was asked for before the reset
	}{
		{"under a wider marker", 2, func(h *harness, _ func()) { h.undo(h.overlays()[0]) }, 1},
		{"back in view", 2, func(h *harness, _ func()) {
			all := h.overlays()
			h.undo(all[0])
			h.undo(all[1])
		}, 0},
		{"beside another marker", 3, func(h *harness, _ func()) { h.undo(h.overlays()[2]) }, 1},
		{"a lift that is lifted", 1, func(h *harness, wake func()) {
			lift := h.undo(h.overlays()[0])
			wake()
			h.undo(lift)
		}, 1},
		{"the lift of the wider marker alone", 2, func(h *harness, wake func()) {
			all := h.overlays()
			h.undo(all[0])
			lift := h.undo(all[1])
			wake()
			h.undo(lift)
		}, 1},
		{"evicted again before it was read", 1, func(h *harness, _ func()) {
			h.undo(h.overlays()[0])
			h.fill(2)
		}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, c := pointing(t, small, compaction.Pointer{})
			wake := func() {
				for range 20 {
					c.advance(time.Second)
					h.wake()
				}
			}
			h.say("We decided on oak for the door.")
			h.fill(tc.cycles)
			tc.lift(h, wake)
			wake()
			if got := strings.Count(h.conversations(), "oak"); got != tc.early {
				t.Errorf("asked for it %d times, want %d", got, tc.early)
			}
			said := h.said()
			h.resetNow()
			h.idle()
			asked := h.conversations()
			if got := strings.Count(asked, "[user] "); got != said || strings.Count(asked, "oak") != 1 {
				t.Errorf("with the reset asked for %d messages, want each of %d once", got, said)
			}
			c.advance(time.Hour)
			h.wake()
			if d := h.due(); !d.IsZero() {
				t.Errorf("still due at %s", d)
			}
		})
	}
}
