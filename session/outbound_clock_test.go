package session_test

import (
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestClockBackWhileSending: what waits by a clock that was ahead does not wait until that time, and what
// waits as long as the platform asked is not sent before.
func TestClockBackWhileSending(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, row := range []struct {
		name   string
		fail   *tidemark.SendError // the first ten tries
		jump   time.Duration
		dies   bool
		ledger string
	}{
		{"again", &tidemark.SendError{Class: tidemark.SendAgain}, -year, false, "sent: ok 1"},
		{"again, in another life", &tidemark.SendError{Class: tidemark.SendAgain}, -year, true, "sent: ok 1"},
		{"halted", &tidemark.SendError{Class: tidemark.SendHalted}, -year, false, "sent: ok 1"},
		{"halted, in another life", &tidemark.SendError{Class: tidemark.SendHalted}, -year, true, "sent: ok 1"},
		{"unknown", &tidemark.SendError{Class: tidemark.SendUnknown}, -year, false, "unknown: ok 1"},
		{"a day, as was asked", &tidemark.SendError{Class: tidemark.SendAgain, RetryAfter: 24 * time.Hour}, -time.Second, false, "pending: ok 1"},
		{"a day, as was asked, in another life", &tidemark.SendError{Class: tidemark.SendAgain, RetryAfter: 24 * time.Hour}, -time.Second, true, "pending: ok 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{Fail: func(int, tidemark.Outgoing) error { return row.fail }}
			h, clock := newPhone(t, c)
			clock.jump(year)
			h.post(wrote(ann, "in1", "hello"))
			h.idle()
			if row.fail.Class == tidemark.SendAgain {
				for c.Tries() < 5 && row.fail.RetryAfter == 0 { // until the pause is one for the alarm
					clock.advance(20 * time.Second)
					h.idle()
				}
			}
			clock.jump(row.jump)
			c.Fail = nil
			if row.dies {
				h.stop()
				h.idle()
			}
			if at := h.due(); row.jump == -year && at.After(clock.Now().Add(time.Hour)) {
				t.Errorf("what waits is due at %s, the clock says %s", at, clock.Now())
			}
			if row.dies {
				h.open()
				h.idle()
			}
			h.wake()
			h.wantLedger(row.ledger)
			if at := h.due(); at.After(clock.Now().Add(25 * time.Hour)) {
				t.Errorf("due at %s, the clock says %s", at, clock.Now())
			}
		})
	}
}

// TestClockBackForOthers: who writes when the clock is right again is answered, behind what waited.
func TestClockBackForOthers(t *testing.T) {
	const year = 365 * 24 * time.Hour
	c := &tidemarktest.Courier{Fail: failing(tidemark.SendHalted, 1)}
	h, clock := newPhone(t, c)
	clock.jump(year)
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	h.wantLedger("pending halted: ok 1")
	clock.jump(-year)
	h.post(wrote(ann, "in2", "are you there?"))
	h.idle()
	wantTexts(t, c, "ok 1", "ok 2")
}
