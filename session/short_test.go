package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// TestShortSaysSo: a turn that alone is over the limit makes no compaction and no loop: one notice says
// what is missing, and the turn goes on. Summaries alone do as they always did.
func TestShortSaysSo(t *testing.T) {
	large := strings.Repeat("one long paste ", 1000) // between the limit and the window
	for name, tt := range map[string]struct {
		strategies []compaction.Strategy
		notices    int
	}{
		"pointer": {[]compaction.Strategy{compaction.Pointer{}}, 1},
		"summary": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, session.Settings{Window: 6000, Reserve: 1500, Keep: 1200})
			h.strategies = tt.strategies
			h.stop()
			h.open()
			if got := h.say(large); strings.HasPrefix(got, "error") {
				t.Fatal(got)
			}
			if v, err := h.View(t.Context()); err != nil || !h.Budget().Over(v.View) {
				t.Fatalf("the view has %d of %d, %v", v.Size, h.Budget().Limit(), err)
			}
			notices := 0
			for _, e := range h.events("notice") {
				if strings.Contains(e, "shortTokens") {
					notices++
				}
			}
			if tt.notices == 0 && notices > 0 || tt.notices > 0 && notices != tt.notices {
				t.Errorf("%d notices, want %d", notices, tt.notices)
			}
		})
	}
}

// TestShortRests: an act that leaves the view over its limit says so, and the next turns do not act again
// at once.
func TestShortRests(t *testing.T) {
	h := newHarness(t, session.Settings{Window: 8000, Reserve: 3500, Keep: 1200})
	h.strategies = []compaction.Strategy{compaction.Pointer{}}
	h.stop()
	h.open()
	for range 4 {
		h.say(strings.Repeat("some words ", 120))
	}
	h.say(strings.Repeat("one long paste ", 1000))
	for range 3 {
		if got := h.say("and?"); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
	}
	events := h.events("compaction")
	if len(events) != 1 || !strings.Contains(events[0], "shortTokens") || !strings.Contains(events[0], "over what was asked remain") {
		t.Errorf("events %q", events)
	}
}

// TestInstructedSummary: a person who says what to keep in mind wants words, with the strategy pointer, too.
func TestInstructedSummary(t *testing.T) {
	for instructions, want := range map[string]string{"": `["pointer"]`, "the tides": `["summary"]`} {
		h := newHarness(t, session.Settings{Window: 40_000, Reserve: 1500, Keep: 1200})
		h.strategies = []compaction.Strategy{compaction.Pointer{Tail: 2}, compaction.Summary{}}
		h.stop()
		h.open()
		for i := range 12 {
			h.say(filler(i))
		}
		h.post(session.Input{Kind: session.InputCompact, Text: instructions})
		events := h.events("compaction")
		if len(events) != 1 || !strings.Contains(events[0], `"strategies":`+want) {
			t.Errorf("/compact %s: %q", instructions, events)
		}
	}
}

// TestInstructed: what a person said is to be kept asks for a summary though shortening a large block would do, and
// where the strategy writes none, or there is too little for one, the answer says that it had no effect.
func TestInstructed(t *testing.T) {
	planks := "planks of walnut for the boathouse "
	large := strings.Repeat(planks, 1000)
	for name, tt := range map[string]struct {
		strategies []compaction.Strategy
		say        []string
		want, not  string
	}{
		"both":    {[]compaction.Strategy{compaction.Pointer{}, compaction.Summary{}}, []string{large, filler(1), filler(2), filler(3), filler(4)}, `"tier":"full"`, "no effect"},
		"summary": {nil, []string{large, filler(1), filler(2), filler(3), filler(4)}, `"tier":"full"`, "no effect"},
		"little":  {nil, []string{strings.Repeat(planks, 75), "and?"}, "there was too little for a summary, so what you asked to keep had no effect", `"tier"`},
		"pointer": {[]compaction.Strategy{compaction.Pointer{Tail: 1}}, []string{filler(0), large, filler(1), filler(2), filler(3), filler(4)}, "the strategy pointer writes no summary, so what you asked to keep had no effect", `"tier"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, session.Settings{Window: 40_000, Reserve: 1500, Keep: 1200})
			h.strategies = tt.strategies
			h.stop()
			h.open()
			for _, s := range tt.say {
				h.say(s)
			}
			h.post(session.Input{Kind: session.InputCompact, Text: "the tides"})
			if events := h.events("compaction"); len(events) != 1 || !strings.Contains(events[0], tt.want) || strings.Contains(events[0], tt.not) {
				t.Errorf("events %q, notices %q", events, h.events("notice"))
			}
		})
	}
}

// TestPinnedStays: what is pinned stays in the view through compactions, word for word.
func TestPinnedStays(t *testing.T) {
	for name, strategies := range map[string][]compaction.Strategy{"pointer": {compaction.Pointer{Tail: 2}}, "summary": nil} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, small)
			h.strategies = strategies
			h.stop()
			h.open()
			h.say("the tide table is on the pier wall")
			v, err := h.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pin := v.Items[0].ID
			if _, err := h.ChangeTask(t.Context(), task.Change{Pin: []tidemark.EntryID{pin}}, tidemark.Origin{From: tidemark.FromPerson, Owner: true}); err != nil {
				t.Fatal(err)
			}
			h.fill(4)
			if sent, err := json.Marshal(h.sent()); err != nil || !strings.Contains(string(sent), "the tide table is on the pier wall") {
				t.Errorf("it left the view, %v", err)
			}
		})
	}
}
