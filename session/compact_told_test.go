package session_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestCompactionIsTold: what a compaction by hand writes down, all of it: the event, the overlay, the head of the conversation,
// its plan and what the agent is owed.
func TestCompactionIsTold(t *testing.T) {
	h, c := newTimed(t, session.Settings{Window: 100_000, Keep: 800}, noon)
	for i := range 12 {
		h.say(filler(i))
	}
	h.idle()
	before, err := h.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.exec(`UPDATE heads SET failures = 2, cooldown = 5 WHERE key = ?`, string(h.key))
	h.model.usage = tidemark.Usage{Input: 700, Output: 70}
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if asksSummary(req) {
			c.advance(1500 * time.Millisecond)
		}
		return tidemark.Message{}, nil
	})
	notices := h.collect(session.Input{ID: "in", Kind: session.InputCompact, Text: "the numbers"})
	after, err := h.View(t.Context())
	if err != nil || len(after.Shown) != 1 || len(h.model.summaries()) != 1 {
		t.Fatalf("%d overlays, %d calls, %v", len(after.Shown), len(h.model.summaries()), err)
	}
	var e struct {
		Text string
		Data session.Compacted
	}
	events := h.events("compaction")
	if len(events) != 1 || json.Unmarshal([]byte(events[0]), &e) != nil {
		t.Fatalf("events %q", events)
	}
	left := len(h.originals()) - (len(after.Items) - 1)
	want := session.Compacted{Reason: "manual", By: []string{"summary"}, Tier: "full", PutOff: 2, Messages: left, Before: before.Size, After: after.Size, Limit: 80_000, Memories: 1,
		Archive: e.Data.Archive, Usage: tidemark.Usage{Input: 700, Output: 70}, Millis: e.Data.Millis, Overlay: after.Shown[0].Overlay, Instructions: "the numbers"}
	if got, is := fmt.Sprintf("%+v", e.Data), fmt.Sprintf("%+v", want); got != is {
		t.Errorf("\n got %s\nwant %s", got, is)
	}
	if e.Data.Millis < 1500 || e.Data.Millis > 1510 || !slices.Contains(h.keys("agents/main/sessions/"), e.Data.Archive) || len(h.archived(e.Data.Archive)) != left {
		t.Errorf("%d ms, archive %s", e.Data.Millis, e.Data.Archive)
	}
	line := fmt.Sprintf("Compacted %d messages: context %d → %d tokens (limit 80000), made up for what was put off (failed tries: 2), 1 memory offered, %s", left, before.Size, after.Size, time.Duration(e.Data.Millis)*time.Millisecond)
	if e.Text != line {
		t.Errorf("people read %q, want %q", e.Text, line)
	}
	if want := []string{"start: ", fmt.Sprintf("compacting: %d of 100000 tokens, compacting", before.Size), "event: " + line, "done: "}; !slices.Equal(toldBy(notices), want) {
		t.Errorf("notices %q, want %q", toldBy(notices), want)
	}
	entry, err := h.Reader.Entry(t.Context(), after.Shown[0].Overlay)
	var o tidemark.Overlay
	if err != nil || json.Unmarshal(entry.Payload, &o) != nil {
		t.Fatal(err)
	}
	d, ok := compaction.PreviousDigest(o.Edits[0])
	if !slices.Equal(o.By, []string{"summary"}) || o.Reason != "manual" || o.Before != before.Size || o.After != after.Size || o.Own != after.Fixed+after.View.Tokens() || o.Model != "test" ||
		entry.Origin.From != tidemark.FromSystem || !ok || d.Messages != left || d.Tier != "full" || !strings.Contains(o.Edits[0].Messages[0].PlainText(), e.Data.Archive) {
		t.Errorf("the overlay is %+v of %+v", o, entry.Origin)
	}
	for sql, want := range map[string]int64{
		`SELECT compactions * 1000000 + cooldown * 1000 + failures FROM heads WHERE key = ? LIMIT 1`: 1_000_000,
		`SELECT context FROM heads WHERE key = ? LIMIT 1`:                                            int64(after.Size),
		`SELECT count(*) FROM plans WHERE key = ? AND state = 'done' LIMIT 1`:                        1,
		`SELECT count(*) FROM plans WHERE key = ? LIMIT 1`:                                           1,
		`SELECT count(*) FROM outbox WHERE key = ? LIMIT 1`:                                          0,
		`SELECT count(*) FROM due WHERE key = ? LIMIT 1`:                                             0,
		`SELECT max(spent) FROM runs WHERE key = ? LIMIT 1`:                                          770,
	} {
		if got := h.count(sql, string(h.key)); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
	if i := h.info(); i.Usage != (tidemark.Usage{Input: 700, Output: 70}) || len(h.agent.remembered()) != 1 || len(h.agent.archives) != 1 || h.agent.archives[0].Key != e.Data.Archive {
		t.Errorf("used %+v, facts %q, archives %+v", i.Usage, h.agent.remembered(), h.agent.archives)
	}
}

// TestToldBeforeTheAnswer: what a compaction within a turn found and stored, the agent has when the model is called.
func TestToldBeforeTheAnswer(t *testing.T) {
	h := newHarness(t, small)
	summarised, facts, archives := false, 0, 0
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if asksSummary(req) {
			summarised = true
		} else if summarised && facts == 0 {
			facts = len(h.agent.remembered())
			h.agent.mu.Lock()
			archives = len(h.agent.archives)
			h.agent.mu.Unlock()
		}
		return tidemark.Message{}, nil
	})
	h.fill(1)
	if facts == 0 || archives != 1 {
		t.Errorf("at the call behind it the agent had %d facts and %d archives", facts, archives)
	}
}

// TestMarkersAreTold: what a compaction that asks no model writes down: no time passed, nobody was asked, and what it took out is
// due to be read.
func TestMarkersAreTold(t *testing.T) {
	h, _ := pointing(t, small, compaction.Pointer{})
	for i := 0; len(h.events("compaction")) == 0 && i < 40; i++ {
		h.say(filler(i))
	}
	var e struct{ Data session.Compacted }
	events := h.events("compaction")
	if len(events) != 1 || json.Unmarshal([]byte(events[0]), &e) != nil {
		t.Fatalf("events %q", events)
	}
	left := len(h.archived(e.Data.Archive))
	want := session.Compacted{Reason: "threshold", By: []string{"pointer"}, Messages: left, Before: e.Data.Before, After: e.Data.After, Limit: 4500, Archive: e.Data.Archive, Overlay: h.overlays()[0]}
	if got, is := fmt.Sprintf("%+v", e.Data), fmt.Sprintf("%+v", want); got != is || left == 0 || e.Data.Before <= 4500 || e.Data.After > 4500 {
		t.Errorf("\n got %s\nwant %s", got, is)
	}
	if n := h.count(`SELECT cooldown FROM heads WHERE key = ? LIMIT 1`, string(h.key)); n != 0 {
		t.Errorf("nothing is short, and it rests until %d", n)
	}
	if n := h.count(`SELECT count(*) FROM due WHERE key = ? AND kind = ? LIMIT 1`, string(h.key), "evicted:"+string(e.Data.Overlay)); n != 1 {
		t.Errorf("what left is due %d times", n)
	}
}

// TestWhoAskedIsTold: who asks for a compaction over a channel reads what came of it, and nobody does of one that nobody asked for.
func TestWhoAskedIsTold(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	h.fill(1)
	if got := c.Texts(); len(got) != 0 {
		t.Errorf("people read %q", got)
	}
	for i := range 6 {
		h.say(filler(i))
	}
	h.finish(ordered(ann, "asked", "/compact"))
	h.idle()
	if got := c.Texts(); len(got) != 1 || !strings.HasPrefix(got[0], "Compacted ") || c.Arrived()[0].To != ann {
		t.Errorf("who asked reads %q", got)
	}
}

// toldBy are the types and texts of notices.
func toldBy(notices []session.Notice) (out []string) {
	for _, n := range notices {
		text := n.Text
		if n.Event != nil {
			text = n.Event.Text
		}
		out = append(out, n.Type+": "+text)
	}
	return out
}
