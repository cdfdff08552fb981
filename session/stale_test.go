package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// TestPutOffPlanIsMadeAnew: what a summariser that was down could not do is planned for the conversation as it is when it
// is back, not as it was.
func TestPutOffPlanIsMadeAnew(t *testing.T) {
	h, c := newTimed(t, session.Settings{Window: 12_000, Reserve: 6000, Keep: 800}, noon)
	down := true
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if down && asksSummary(req) {
			return tidemark.Message{}, failure(tidemark.ClassNetwork)
		}
		return tidemark.Message{}, nil
	})
	open := func() int64 {
		return h.count(`SELECT count(*) FROM plans WHERE state = 'open' AND key = ? LIMIT 1`, string(h.key))
	}
	said := 0
	say := func() {
		t.Helper()
		if got := h.say(filler(said)); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
		said++
	}
	for open() == 0 && said < 30 {
		say()
	}
	before := said
	for range 6 { // within the rest of the summariser, so the plan of before stays
		say()
	}
	down = false
	c.advance(2 * time.Minute)
	say()
	events := h.events("compaction")
	if len(events) != 1 {
		t.Fatalf("events %q", events)
	}
	var e struct{ Data session.Compacted }
	if err := json.Unmarshal([]byte(events[0]), &e); err != nil {
		t.Fatal(err)
	}
	if e.Data.Messages < 2*before+6 || e.Data.After > h.Budget().Limit() {
		t.Errorf("%d messages left of %d, %d tokens of %d", e.Data.Messages, 2*said, e.Data.After, h.Budget().Limit())
	}
	if head := h.sent()[0].PlainText(); !strings.HasPrefix(head, compaction.SummaryMarker) || open() != 0 {
		t.Errorf("the view begins with %.60q, %d plans are open", head, open())
	}
}

// TestPutOffPlanIsPaid: what a summariser answered before it went down was paid, and is counted though it was of no use.
func TestPutOffPlanIsPaid(t *testing.T) {
	h, _ := newTimed(t, session.Settings{Window: 12_000, Reserve: 6000, Keep: 800}, noon)
	asked := 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		h.model.usage = tidemark.Usage{}
		if !asksSummary(req) {
			return tidemark.Message{}, nil
		}
		if asked++; asked > 1 {
			return tidemark.Message{}, failure(tidemark.ClassNetwork)
		}
		h.model.usage = tidemark.Usage{Input: 70, Output: 7}
		return tidemark.NewText(tidemark.Assistant, "..."), nil
	})
	for said := 0; asked < 2 && said < 30; said++ {
		if got := h.say(filler(said)); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
	}
	rows, err := h.db.Query(t.Context(), `SELECT usage FROM plans WHERE key = ? AND state = 'open' LIMIT 1`, string(h.key))
	if err != nil || len(rows) != 1 || !strings.Contains(rows[0].Text(0), `70`) {
		t.Errorf("the plan says %v, %v", rows, err)
	}
}

// TestPartOfADroppedPlan: a part that was put in the bucket when nobody learned of it is recorded, whatever comes next.
// Otherwise the bucket has an archive that no session knows, with messages that another one holds, too.
func TestPartOfADroppedPlan(t *testing.T) {
	for _, next := range []string{"another plan", "reset"} {
		t.Run(next, func(t *testing.T) {
			h, c := newTimed(t, session.Settings{Window: 12_000, Reserve: 6000, Keep: 800}, noon)
			lost := 0
			h.blobs.FailAfter = func(op, key string) error {
				if lost == 0 && op == "put" && strings.Contains(key, "-part") {
					lost++
					return fmt.Errorf("the answer is lost: %w", tidemark.ErrUnavailable)
				}
				return nil
			}
			for i := 0; len(h.events("compaction")) == 0 && (lost == 0 || next != "reset"); i++ {
				if i == 60 {
					t.Fatalf("no compaction in %d turns, %d answers were lost", i, lost)
				}
				if got := h.say(filler(i)); strings.HasPrefix(got, "error") {
					t.Fatal(got)
				}
				c.advance(2 * time.Minute)
			}
			log := h.info().ID
			if next == "reset" {
				h.resetNow()
			}
			h.idle()
			var recorded []string
			rows, err := h.db.Query(t.Context(), `SELECT key FROM parts WHERE log = ? ORDER BY key LIMIT 100`, log)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				recorded = append(recorded, r.Text(0))
			}
			stored := h.keys("agents/main/sessions/" + log + "-part")
			if lost != 1 || len(stored) == 0 || !slices.Equal(stored, recorded) {
				t.Errorf("the bucket has the parts %q, the session knows %q; %d answers were lost", stored, recorded, lost)
			}
		})
	}
}
