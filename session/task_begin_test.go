package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/task"
)

// changes changes the task as the owner does.
func (h *harness) changes(ch task.Change) task.View {
	h.t.Helper()
	v, err := h.ChangeTask(h.t.Context(), ch, tidemark.Origin{From: tidemark.FromPerson, Owner: true})
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

// TestTaskNothingDone: a change that does nothing writes nothing, whether a card is kept or not.
func TestTaskNothingDone(t *testing.T) {
	h := newHarness(t, small)
	h.pointing()
	h.owner("Please never deploy on Fridays.")
	const ask = "g1 person Please never deploy on Fridays."
	add := func(kind task.ItemKind, text string) task.Change {
		return task.Change{Add: []task.Added{{Kind: kind, Text: text}}}
	}
	nothing := []task.Change{{Close: []string{"g99"}}, {Pin: []tidemark.EntryID{"xyz"}}, {Unpin: []tidemark.EntryID{"xyz"}}}
	for _, ch := range nothing {
		if v := h.changes(ch); v.Kept || items(v) != ask || len(v.Notes) != 1 {
			t.Errorf("%+v: kept %v, %s, notes %q", ch, v.Kept, items(v), v.Notes)
		}
	}
	h.model.keeps(`{"close":["g1"]}`)
	h.owner("Go on.")
	if a := h.answers(); !strings.Contains(a, "g1") || h.task().Kept || len(h.events("task")) > 0 {
		t.Errorf("of a model: kept %v, answered %q, events %q", h.task().Kept, a, h.events("task"))
	}
	kept := items(h.changes(add(task.Goal, "finish the table")))
	if got := strings.Join(h.events("task"), ""); !strings.Contains(got, "Task: added 1.") {
		t.Errorf("events %q", got)
	}
	for _, ch := range append(nothing[:1], add(task.Goal, "Finish the table"), nothing[1], nothing[2]) {
		if v := h.changes(ch); items(v) != kept || len(v.Notes) != 1 || len(h.events("task")) != 1 {
			t.Errorf("%+v: %s, notes %q, events %q", ch, items(v), v.Notes, h.events("task"))
		}
	}
	if v := h.changes(task.Change{Close: []string{"g99", "g1"}}); len(v.Notes) != 1 || len(v.Items) != 0 || !strings.Contains(strings.Join(h.events("task"), ""), "closed 1") && len(h.events("task")) != 2 {
		t.Errorf("one of two: %s, notes %q, events %q", items(v), v.Notes, h.events("task"))
	}
}
