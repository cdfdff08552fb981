package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// change changes the task as a person does.
func (h *harness) change(ch task.Change) {
	h.t.Helper()
	if _, err := h.ChangeTask(h.t.Context(), ch, tidemark.Origin{From: tidemark.FromPerson, Owner: true}); err != nil {
		h.t.Fatal(err)
	}
}

// ranked returns the texts that a query finds, best first, with their scores.
func (h *harness) ranked(query string) (order []string, score map[string]float64, ids map[string]tidemark.EntryID) {
	h.t.Helper()
	got, err := h.Recall(h.t.Context(), search.Wanted{Query: query, K: 20})
	if err != nil {
		h.t.Fatal(err)
	}
	score, ids = map[string]float64{}, map[string]tidemark.EntryID{}
	for _, r := range got.Results {
		order = append(order, r.Text)
		score[r.Text], ids[r.Text] = r.Normalized, r.ID
	}
	return order, score, ids
}

// TestRecallBySuperseded: what was superseded is found, behind what holds in its place.
func TestRecallBySuperseded(t *testing.T) {
	const old, fresh = "The lantern port is 4180 now.", "The lantern port is 4190 now."
	h := newHarness(t, session.Settings{})
	h.owner(old)
	h.owner("Something else entirely, about tides.")
	h.owner(fresh)
	h.change(task.Change{Add: []task.Added{{Kind: "goal", Text: "run the lantern"}}})
	_, before, ids := h.ranked("lantern port")
	if before[old] == 0 || before[fresh] == 0 {
		t.Fatalf("found %v", before)
	}
	h.change(task.Change{Superseded: []task.Supersession{{Entry: ids[old], By: ids[fresh], Reason: "it moved"}}})
	order, after, _ := h.ranked("lantern port")
	if order[0] != fresh || after[fresh] != before[fresh] || after[old] == 0 || after[old] > 0.11*before[old] {
		t.Errorf("before %v, after %v: %q", before, after, order)
	}
}

// TestRecallByPhase: who debugs sees what a tool returned first, who plans what was said.
func TestRecallByPhase(t *testing.T) {
	h := newHarness(t, session.Settings{})
	log := []tidemark.Message{tidemark.NewText(tidemark.User, "The lantern gauge reads seven bar, I think."), tidemark.NewText(tidemark.Assistant, "Fine."), tidemark.NewText(tidemark.User, "look")}
	log = append(log, exchangeOf("c1", "The lantern gauge reads seven bar, measured.")...)
	h.told(append(log, tidemark.NewText(tidemark.Assistant, "Done."))...)
	h.change(task.Change{Add: []task.Added{{Kind: "goal", Text: "mend the boiler"}}})
	for phase, want := range map[recall.Phase]string{recall.Planning: "I think", recall.Debugging: "measured"} {
		h.change(task.Change{Phase: phase})
		if order, score, _ := h.ranked("lantern gauge reads"); len(order) < 2 || !strings.Contains(order[0], want) {
			t.Errorf("%s: %q %v", phase, order, score)
		}
	}
}

// TestRecallByTask: what was said for the task at hand, under its goals, comes before the same said for another.
func TestRecallByTask(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.change(task.Change{Phase: recall.Planning, Add: []task.Added{{Kind: "goal", Text: "paint the hull"}}})
	h.owner("The lantern key is with Ann, for the hull.")
	h.owner("Something else entirely, about tides.")
	h.change(task.Change{New: true, Phase: recall.Planning, Add: []task.Added{{Kind: "goal", Text: "mend the boiler"}}})
	h.owner("The lantern key is with Bob, for the boiler.")
	order, score, _ := h.ranked("who has the lantern key")
	if len(order) < 2 || !strings.Contains(order[0], "Bob") || score[order[0]] == 0 {
		t.Fatalf("%q %v", order, score)
	}
	for text, v := range score {
		if strings.Contains(text, "Ann") && v > 0.3*score[order[0]] {
			t.Errorf("of another task and premise %v, of this %v", v, score[order[0]])
		}
	}
	h.change(task.Change{Add: []task.Added{{Kind: "constraint", Text: "never on a Sunday"}}}) // the premise is another
	if _, again, _ := h.ranked("who has the lantern key"); again[order[0]] >= score[order[0]] || again[order[0]] == 0 {
		t.Errorf("under another premise %v, before %v", again[order[0]], score[order[0]])
	}
}

// TestRecallBound: a turn searches eight times; a ninth is answered with what to do, reading an entry is none, and
// the next turn has its own.
func TestRecallBound(t *testing.T) {
	h := newHarness(t, session.Settings{})
	h.say("The lighthouse keeper is called Oswald.")
	_, _, ids := h.ranked("Oswald")
	entry := ids["The lighthouse keeper is called Oswald."]
	var refused, given int
	turn := func() {
		n := 0
		refused, given = 0, 0
		h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
			if last := req.Messages[len(req.Messages)-1]; len(last.Results()) > 0 {
				switch b := last.Content[0]; {
				case b.IsError && strings.Contains(b.Content[0].Text, "called 8 times"):
					refused++
				case !b.IsError:
					given++
				}
			}
			if n++; n > 11 {
				return tidemark.NewText(tidemark.Assistant, "done"), nil
			}
			input := `{"query":"Oswald"}`
			if n > 9 {
				input = fmt.Sprintf(`{"entry":%q}`, entry)
			}
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(fmt.Sprint("c", len(req.Messages)), "recall", []byte(input))}}, nil
		})
		h.say("Who?")
	}
	for range 2 {
		if turn(); refused != 1 || given != 10 {
			t.Errorf("%d searches refused, %d calls answered, want 1 and 10", refused, given)
		}
	}
}

// TestRecallAll: what a turn that was skipped said is found when all is asked for, also in a life that knows of
// the skips from the database alone.
func TestRecallAll(t *testing.T) {
	h := newHarness(t, overBudget)
	h.model.set(chores)
	h.agent.call = long("zebra", false)
	h.say("what is a tide?")
	h.say("what is an ebb?")
	h.say("ok, go on")
	for range 2 {
		for _, all := range []bool{false, true} {
			got, err := h.Recall(t.Context(), search.Wanted{Query: "zebra chore", All: all})
			if err != nil || (len(got.Results) > 0) != all {
				t.Errorf("all %v: %d results, %v: %.300v", all, len(got.Results), err, got.Results)
			}
			asked, err := h.Answer(t.Context(), recall.Ask{Query: "zebra chore", All: all}) // as its agent does
			if err != nil || (len(asked.Results) > 0) != all {
				t.Errorf("asked by its agent, all %v: %d results, %v", all, len(asked.Results), err)
			}
			skipped := 0
			for _, f := range got.Filtered {
				if f.Reason == "skipped" {
					skipped += f.Count
				}
			}
			if (skipped > 0) == all {
				t.Errorf("all %v: %d are told as skipped", all, skipped)
			}
		}
		h.stop()
		h.open()
	}
}

// TestRecallReadsOn: what stands deep in a large result is found with its offset, from which the tool reads on.
func TestRecallReadsOn(t *testing.T) {
	h := newHarness(t, session.Settings{})
	result := lines(200_000, func(i int) string { return fmt.Sprintf("line %d of the file", i) }) + "here is NEEDLE_4711 at last\nand behind it the answer\n"
	h.told(append(append([]tidemark.Message{tidemark.NewText(tidemark.User, "read it")}, exchangeOf("c1", result)...), tidemark.NewText(tidemark.Assistant, "Done."))...)
	got, err := h.Recall(t.Context(), search.Wanted{Query: "NEEDLE_4711"})
	if err != nil || len(got.Results) == 0 || got.Results[0].Offset < 199_000 {
		t.Fatalf("%+v, %v", got.Results, err)
	}
	r := got.Results[0]
	h.model.set(func(_ int, req tidemark.Request) (tidemark.Message, error) {
		if last := req.Messages[len(req.Messages)-1]; len(last.Results()) > 0 {
			return tidemark.NewText(tidemark.Assistant, last.Content[0].Content[0].Text), nil
		}
		input := fmt.Sprintf(`{"entry":%q,"offset":%d}`, r.ID, r.Offset)
		return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c9", "recall", []byte(input))}}, nil
	})
	if text := h.say("Go on there."); !strings.Contains(text, "NEEDLE_4711 at last\nand behind it the answer") || len(text) > 2000 {
		t.Errorf("read %d bytes: %.300q", len(text), text)
	}
}
