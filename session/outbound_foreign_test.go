package session_test

import (
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestOldStatus: a status from before a row names another message by the same ref, as there are behind a
// restored backup. It settles nothing, but one that clocks or a known id explain does.
func TestOldStatus(t *testing.T) {
	refused := &tidemark.SendError{Class: tidemark.SendFailed, Code: 131, Text: "because"}
	for _, row := range []struct {
		name   string
		fail   bool // the send, with class unknown
		d      tidemark.Delivery
		ago    time.Duration
		ledger string
	}{
		{"read long before", true, tidemark.Delivery{ID: "mid.old", Status: "read"}, 90 * 24 * time.Hour, "unknown: ok 1"},
		{"read an hour before", true, tidemark.Delivery{ID: "mid.old", Status: "read"}, time.Hour, "unknown: ok 1"},
		{"failed long before", true, tidemark.Delivery{ID: "mid.old", Status: "failed", Error: refused}, 90 * 24 * time.Hour, "unknown: ok 1"},
		{"without an id", true, tidemark.Delivery{Status: "read"}, time.Hour, "unknown: ok 1"},
		{"clocks apart", true, tidemark.Delivery{ID: "mid.7", Status: "read"}, 5 * time.Minute, "sent read: ok 1"},
		{"no time", true, tidemark.Delivery{ID: "mid.7", Status: "read"}, -1, "sent read: ok 1"},
		{"now", true, tidemark.Delivery{ID: "mid.7", Status: "delivered"}, 0, "sent delivered: ok 1"},
		{"our clock was ahead, its id is known", false, tidemark.Delivery{ID: "mid.1", Status: "read"}, 24 * time.Hour, "sent read: ok 1"},
		{"our clock was ahead, and it was refused", false, tidemark.Delivery{ID: "mid.1", Status: "failed", Error: refused}, 24 * time.Hour, "failed: ok 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{}
			if row.fail {
				c.Fail = failing(tidemark.SendUnknown, 1)
			}
			h, clock := newPhone(t, c)
			h.post(wrote(ann, "in1", "hello"))
			h.idle()
			row.d.Ref = "agent:main:fake:dm:ann/1"
			if row.ago >= 0 {
				row.d.At = clock.Now().Add(-row.ago)
			}
			if err := h.Delivered(t.Context(), row.d); err != nil {
				t.Fatal(err)
			}
			h.idle()
			h.wantLedger(row.ledger)
		})
	}
}
