package session_test

import (
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestChannelIsBack: answers that wait while their channel is not set up are due for the process that has it
// again, and are not looked for all the time meanwhile.
func TestChannelIsBack(t *testing.T) {
	const day = 24 * time.Hour
	for _, row := range []struct {
		name  string
		away  time.Duration
		wakes int // at most, meanwhile
	}{
		{"twenty minutes", 20 * time.Minute, 3},
		{"a week", 7 * day, 20},
		{"half a year", 180 * day, 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{Fail: failing(tidemark.SendHalted)}
			h, clock := newPhone(t, c)
			h.post(wrote(ann, "in1", "hello"))
			h.idle()
			h.wantLedger("pending halted: ok 1")
			h.stop()
			h.courier = nil
			h.open()
			end, wakes := clock.Now().Add(row.away), 0
			for at := h.nextDue(); at.Before(end); at = h.nextDue() {
				if at.IsZero() {
					t.Fatal("nothing wakes the session any more")
				}
				clock.set(at)
				h.wake()
				if wakes++; wakes > row.wakes {
					t.Fatalf("woken %d times in %s", wakes, clock.Now().Sub(end.Add(-row.away)))
				}
			}
			clock.set(end)
			h.stop()
			h.courier, c.Fail = c, nil
			all, err := session.Due(t.Context(), h.db, clock.Now())
			if at, ok := all[h.key]; !ok || !at.IsZero() || err != nil {
				t.Errorf("due at %s, %v, %v: not when a process begins", at, ok, err)
			}
			h.open()
			h.idle()
			h.wantLedger("sent: ok 1")
			h.wake()
			if at := h.due(); !at.IsZero() && at.Before(clock.Now().Add(time.Minute)) {
				t.Errorf("due at %s with nothing to send", at)
			}
		})
	}
}

// TestAwayWithNothingToSend: what waits for the person wakes nobody, also without a channel.
func TestAwayWithNothingToSend(t *testing.T) {
	c := &tidemarktest.Courier{Fail: failing(tidemark.SendClosed, 1)}
	h, clock := newPhone(t, c)
	h.post(wrote(ann, "in1", "hello"))
	h.idle()
	h.wantLedger("pending closed: ok 1")
	h.stop()
	h.courier = nil
	h.open()
	for at := h.nextDue(); !at.IsZero() && at.Before(moment(t, noon).Add(time.Hour)); at = h.nextDue() {
		clock.set(at)
		h.wake()
	}
	if got := column(t, h.db, `SELECT kind FROM due WHERE kind = 'out' AND key NOT IN ('agent:main:aunt', 'agent:main:zoe') LIMIT 9`); len(got) > 0 {
		t.Errorf("due: %q", got)
	}
	h.stop()
	h.courier = c
	h.open()
	h.post(wrote(ann, "in2", "I am back"))
	h.idle()
	wantTexts(t, c, "ok 1", "ok 2")
}

// nextDue is when an object is woken.
func (h *harness) nextDue() time.Time {
	h.t.Helper()
	if h.beside != nil { // they are due since long
		rows, err := h.db.Query(h.t.Context(), `SELECT min(at) FROM due WHERE key = ? LIMIT 1`, string(h.key))
		if err != nil {
			h.t.Fatal(err)
		}
		if rows[0].Null(0) {
			return time.Time{}
		}
		return time.UnixMilli(rows[0].Int(0))
	}
	at, err := session.NextDue(h.t.Context(), h.db)
	if err != nil {
		h.t.Fatal(err)
	}
	return at
}
