package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/reflection"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// TestReflection: misses are recorded and make more stay, with an event that says why; when recall finds
// again, the defaults are back. Without the setting nothing is there.
func TestReflection(t *testing.T) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			h := newAlone(t, session.Settings{Window: 6000, Reserve: 2000, Keep: 1000})
			h.reflection = on
			h.strategies = []compaction.Strategy{compaction.Pointer{}}
			h.stop()
			h.open()
			for range 10 {
				h.NoteRecall(t.Context(), session.ByModel, search.Recalled{Verdict: recall.Nothing})
			}
			h.beacons(25)
			tuned, err := h.tuned()
			if err != nil {
				t.Fatal(err)
			}
			tables, err := h.db.Query(t.Context(), `SELECT name FROM sqlite_master WHERE name IN ('recalls', 'tunings') LIMIT 2`)
			if err != nil {
				t.Fatal(err)
			}
			events := h.events("reflection")
			if !on {
				if len(tables) != 0 || len(events) != 0 || tuned != (reflection.Tuning{}) {
					t.Errorf("%d tables, events %q, tuned %+v", len(tables), events, tuned)
				}
				return
			}
			if len(events) != 1 || tuned.Tail != 20 || !strings.Contains(events[0], "missed 10 of 10") || !strings.Contains(events[0], "recall.reflection off") {
				t.Fatalf("events %q, tuned %+v", events, tuned)
			}
			h.stop()
			h.open()
			if again, err := h.tuned(); err != nil || again != tuned {
				t.Errorf("after a restart %+v, %v", again, err)
			}
			for range 40 {
				h.NoteRecall(t.Context(), session.ByModel, search.Recalled{Verdict: recall.Confident})
			}
			h.beacons(25)
			if events = h.events("reflection"); len(events) != 2 || !strings.Contains(events[1], "taken back") {
				t.Errorf("events %q", events)
			}
			rows, err := h.db.Query(t.Context(), `SELECT count(*) FROM recalls WHERE by = 'model' LIMIT 1`)
			if err != nil || rows[0].Int(0) != 50 {
				t.Errorf("%v recalls, %v", rows, err)
			}
		})
	}
}

// TestEvidenceIsOfWhoAsked: what is pushed, and what is asked of many conversations, tunes nothing; for these
// nobody looks up when what was found left the view.
func TestEvidenceIsOfWhoAsked(t *testing.T) {
	for by, counts := range map[string]bool{session.ByModel: true, session.ByPerson: true, session.ByPack: false, session.ByWide: false} {
		t.Run(by, func(t *testing.T) {
			h := newAlone(t, session.Settings{Window: 6000, Reserve: 2000, Keep: 1000})
			h.reflection = true
			h.strategies = []compaction.Strategy{compaction.Pointer{Tail: 3}}
			h.stop()
			h.open()
			h.beacons(25)
			found, err := h.Recall(t.Context(), search.Wanted{Query: "beacon0"})
			if err != nil || len(found.Results) == 0 || len(h.events("compaction")) == 0 {
				t.Fatal(found, err)
			}
			h.NoteRecall(t.Context(), by, found)
			if evicted := h.count(`SELECT max(evicted) FROM recalls WHERE by = ? LIMIT 1`, by) > 0; evicted != counts {
				t.Errorf("looked up when it left the view: %v, want %v", evicted, counts)
			}
			for range 30 {
				h.NoteRecall(t.Context(), by, search.Recalled{Verdict: recall.Nothing})
			}
			h.beacons(25)
			if tuned := len(h.events("reflection")) > 0; tuned != counts {
				t.Errorf("tuned: %v, want %v", tuned, counts)
			}
		})
	}
}

// tuned is what reflection set.
func (h *harness) tuned() (reflection.Tuning, error) {
	if r, ok := session.Room[*reflection.Room](h.Session); ok {
		return r.Tuned(h.t.Context())
	}
	return reflection.Tuning{}, nil
}
