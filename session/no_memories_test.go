package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/session"
)

// TestNoMemories: without extractMemories no summariser is asked for memories nor told of any, by whatever strategy, at resets and for
// what is owed neither; and what it gives unasked is not kept.
func TestNoMemories(t *testing.T) {
	for name, list := range map[string][]compaction.Strategy{
		"summary": nil, "pointer and summary": {compaction.Pointer{}, compaction.Summary{}},
	} {
		t.Run(name, func(t *testing.T) {
			set := small
			set.NoMemories = true
			h, c := pointing(t, set, list...)
			h.fill(2)
			h.post(session.Input{Kind: session.InputCompact})
			h.resetNow()
			for range 5 {
				c.advance(15 * time.Minute)
				h.wake()
			}
			asked := h.model.summaries()
			for _, req := range asked {
				if text := req.Messages[0].PlainText(); strings.Contains(text, "memories") || !strings.Contains(text, "Write one section and nothing else.\n\n<summary>") {
					t.Errorf("asked\n%s", text)
				}
			}
			if got := h.agent.remembered(); len(got) > 0 || list == nil && len(asked) == 0 {
				t.Errorf("%d summaries, remembered %q", len(asked), got)
			}
			if events := strings.Join(h.events("compaction"), ""); strings.Contains(events, `"memories":`) && !strings.Contains(events, `"memories":0`) {
				t.Errorf("events %s", events)
			}
		})
	}
}

// TestNoMemoriesOwed: what a reset owes is dropped once nothing is to be extracted.
func TestNoMemoriesOwed(t *testing.T) {
	h, c := newTimed(t, small, noon)
	down := fails(tidemark.ClassAuth)
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if !asksSummary(req) {
			return tidemark.Message{}, nil
		}
		_, err := down(req)
		return tidemark.Message{}, err
	})
	h.say("I live in Rome.")
	h.resetNow()
	h.idle()
	if got := h.events("reset"); len(got) != 1 || !strings.Contains(got[0], `"memoriesOwed":true`) {
		t.Fatalf("events %q", got)
	}
	h.stop()
	h.set.NoMemories = true
	h.open()
	h.model.set(nil)
	asked := len(h.model.summaries())
	for range 5 {
		c.advance(15 * time.Minute)
		h.wake()
	}
	if n := len(h.model.summaries()); n != asked || len(h.agent.remembered()) > 0 || !h.due().IsZero() {
		t.Errorf("%d calls more, remembered %q, due %s", n-asked, h.agent.remembered(), h.due())
	}
}
