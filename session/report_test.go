package session_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/session"
)

// TestReportEvery: with it the directory is told of a busy session once in that time, and of its last
// word behind the last turn by the alarm.
func TestReportEvery(t *testing.T) {
	for _, row := range []struct {
		name  string
		every time.Duration
		want  int64 // after five turns within a minute, and after the wake
		woken int64
	}{
		{"after every turn", 0, 5, 5},
		{"once a minute", time.Minute, 1, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, c := newTimed(t, session.Settings{ReportEvery: row.every}, "2026-11-21T10:00:00Z")
			var told atomic.Int64
			h.agent.told = func() { told.Add(1) }
			begin := c.Now()
			for range 5 {
				h.say("hello")
				h.idle()
				c.advance(time.Second)
			}
			if got := told.Load(); got != row.want {
				t.Errorf("told %d times, want %d", got, row.want)
			}
			if row.every > 0 {
				if at := h.due(); at.Before(begin.Add(row.every)) || at.After(begin.Add(row.every+5*time.Second)) {
					t.Fatalf("due at %s, want a minute after the first report at %s", at, begin)
				}
				c.set(h.due())
				h.wake()
			}
			if got := told.Load(); got != row.woken {
				t.Errorf("after the wake told %d times, want %d", got, row.woken)
			}
			if at := h.due(); !at.IsZero() {
				t.Errorf("still due at %s", at)
			}
		})
	}
}
