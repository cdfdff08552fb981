package session_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/session"
)

func TestReflect(t *testing.T) {
	const limit = 100_000
	for _, tc := range []struct {
		name string
		e    session.Evidence
		want session.Tuning
	}{
		{"nothing", session.Evidence{}, session.Tuning{}},
		{"too few recalls", session.Evidence{Recalls: 4, Misses: 4}, session.Tuning{}},
		{"as it should be", session.Evidence{Recalls: 10, Misses: 3}, session.Tuning{}},
		{"many misses", session.Evidence{Recalls: 10, Misses: 4}, session.Tuning{Tail: 15, Large: 640, Headroom: 15_000, Severity: "moderate"}},
		{"most missed", session.Evidence{Recalls: 10, Misses: 7}, session.Tuning{Tail: 20, Large: 1280, Headroom: 10_000, Severity: "high"}},
		{"evicted too early", session.Evidence{Recalls: 10, Misses: 1, Early: 4}, session.Tuning{Tail: 15, Severity: "moderate"}},
		{"found each time", session.Evidence{Recalls: 20}, session.Tuning{Tail: 7, Large: 240, Headroom: 25_000}},
		{"too much at once", session.Evidence{Tokens: 40_001}, session.Tuning{Headroom: 15_000, Severity: "moderate"}},
		{"too many at once", session.Evidence{Events: 101}, session.Tuning{Headroom: 15_000, Severity: "moderate"}},
		{"found, but too much at once", session.Evidence{Recalls: 30, Events: 500}, session.Tuning{Tail: 7, Large: 240, Headroom: 15_000, Severity: "moderate"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := session.Tune(tc.e, limit)
			if (got.Why == "") != (tc.want == session.Tuning{}) {
				t.Errorf("why %q", got.Why)
			}
			if got.Why = ""; got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestReflectBounds: whatever the evidence, what is set is within its bounds, and the same again.
func TestReflectBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for range 20_000 {
		limit := tidemark.Tokens(rng.IntN(1_000_000) + 100)
		e := session.Evidence{Recalls: rng.IntN(60), Events: rng.IntN(300), Tokens: tidemark.Tokens(rng.IntN(100_000))}
		e.Misses = rng.IntN(e.Recalls + 1)
		e.Early = rng.IntN(e.Recalls - e.Misses + 1)
		got := session.Tune(e, limit)
		if got != session.Tune(e, limit) {
			t.Fatalf("%+v: not the same again", e)
		}
		if got.Tail != 0 && (got.Tail < 5 || got.Tail > 20) || got.Large != 0 && (got.Large < 240 || got.Large > 1280) ||
			got.Headroom != 0 && (got.Headroom < limit/10 || got.Headroom > limit/3) {
			t.Fatalf("%+v at limit %d: %+v", e, limit, got)
		}
	}
}

// TestReflection: misses are recorded and make more stay, with an event that says why; when recall finds
// again, the defaults are back. Without the setting nothing is there.
func TestReflection(t *testing.T) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			h := newAlone(t, session.Settings{Window: 6000, Reserve: 2000, Keep: 1000, Reflection: on})
			h.strategies = []compaction.Strategy{compaction.Pointer{}}
			h.stop()
			h.open()
			for range 10 {
				h.NoteRecall(t.Context(), session.ByModel, session.Recalled{Verdict: recall.Nothing})
			}
			h.beacons(25)
			tuned, err := h.Tuned(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tables, err := h.db.Query(t.Context(), `SELECT name FROM sqlite_master WHERE name IN ('recalls', 'tunings') LIMIT 2`)
			if err != nil {
				t.Fatal(err)
			}
			events := h.events("reflection")
			if !on {
				if len(tables) != 0 || len(events) != 0 || tuned != (session.Tuning{}) {
					t.Errorf("%d tables, events %q, tuned %+v", len(tables), events, tuned)
				}
				return
			}
			if len(events) != 1 || tuned.Tail != 20 || !strings.Contains(events[0], "missed 10 of 10") || !strings.Contains(events[0], "recall.reflection off") {
				t.Fatalf("events %q, tuned %+v", events, tuned)
			}
			h.stop()
			h.open()
			if again, err := h.Tuned(t.Context()); err != nil || again != tuned {
				t.Errorf("after a restart %+v, %v", again, err)
			}
			for range 40 {
				h.NoteRecall(t.Context(), session.ByModel, session.Recalled{Verdict: recall.Confident})
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
			h := newAlone(t, session.Settings{Window: 6000, Reserve: 2000, Keep: 1000, Reflection: true})
			h.strategies = []compaction.Strategy{compaction.Pointer{Tail: 3}}
			h.stop()
			h.open()
			h.beacons(25)
			found, err := h.Recall(t.Context(), session.Wanted{Query: "beacon0"})
			if err != nil || len(found.Results) == 0 || len(h.events("compaction")) == 0 {
				t.Fatal(found, err)
			}
			h.NoteRecall(t.Context(), by, found)
			if evicted := h.count(`SELECT max(evicted) FROM recalls WHERE by = ? LIMIT 1`, by) > 0; evicted != counts {
				t.Errorf("looked up when it left the view: %v, want %v", evicted, counts)
			}
			for range 30 {
				h.NoteRecall(t.Context(), by, session.Recalled{Verdict: recall.Nothing})
			}
			h.beacons(25)
			if tuned := len(h.events("reflection")) > 0; tuned != counts {
				t.Errorf("tuned: %v, want %v", tuned, counts)
			}
		})
	}
}
