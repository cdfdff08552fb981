package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// changes changes the task as the owner does.
func (h *harness) changes(ch session.TaskChange) session.TaskView {
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
	const rule = "c1 person Please never deploy on Fridays."
	add := func(kind session.ItemKind, text string) session.TaskChange {
		return session.TaskChange{Add: []session.AddedItem{{Kind: kind, Text: text}}}
	}
	nothing := []session.TaskChange{{Close: []string{"g99"}}, {Close: []string{"g1"}}, {Pin: []tidemark.EntryID{"xyz"}}, {Unpin: []tidemark.EntryID{"xyz"}}}
	for _, ch := range nothing {
		if v := h.changes(ch); v.Kept || items(v) != rule || len(v.Notes) != 1 {
			t.Errorf("%+v: kept %v, %s, notes %q", ch, v.Kept, items(v), v.Notes)
		}
	}
	h.model.keeps(`{"close":["g1"]}`)
	h.owner("Go on.")
	if a := h.answers(); !strings.Contains(a, "g1") || h.task().Kept || len(h.events("task")) > 0 {
		t.Errorf("of a model: kept %v, answered %q, events %q", h.task().Kept, a, h.events("task"))
	}
	kept := items(h.changes(add(session.Goal, "finish the table")))
	if got := strings.Join(h.events("task"), ""); !strings.Contains(got, "Task: took over 1, added 1.") {
		t.Errorf("events %q", got)
	}
	for _, ch := range append(nothing[:1], add(session.Goal, "Finish the table"), nothing[2], nothing[3]) {
		if v := h.changes(ch); items(v) != kept || len(v.Notes) != 1 || len(h.events("task")) != 1 {
			t.Errorf("%+v: %s, notes %q, events %q", ch, items(v), v.Notes, h.events("task"))
		}
	}
	if v := h.changes(session.TaskChange{Close: []string{"g99", "g2"}}); len(v.Notes) != 1 || len(v.Items) != 1 || !strings.Contains(strings.Join(h.events("task"), ""), "closed 1") && len(h.events("task")) != 2 {
		t.Errorf("one of two: %s, notes %q, events %q", items(v), v.Notes, h.events("task"))
	}
}

// TestTaskBegins: the rules that persons set stand on the card when it begins to be kept, with where they
// were said.
func TestTaskBegins(t *testing.T) {
	open := func() (*harness, tidemark.EntryID) {
		h := newHarness(t, small)
		h.pointing()
		h.owner("Please never deploy on Fridays. It is late.")
		entries, err := h.Entries(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		h.owner("You must always ask Ada.")
		return h, entries[len(entries)-1].ID
	}
	const rules = "c1 person Please never deploy on Fridays.; c2 person You must always ask Ada."
	goal := session.TaskChange{Add: []session.AddedItem{{Kind: session.Goal, Text: "finish the table"}}}
	for _, row := range []struct {
		name string
		ch   session.TaskChange
		want string
	}{
		{"a goal", goal, rules + "; g3 person finish the table"},
		{"another task", session.TaskChange{New: true}, rules},
		{"the rule in its words", session.TaskChange{Add: []session.AddedItem{{Kind: session.Constraint, Text: "never deploy on Fridays"}}}, "c1 person You must always ask Ada.; c2 person never deploy on Fridays"},
		{"half of a rule", session.TaskChange{Add: []session.AddedItem{{Kind: session.Constraint, Text: "deploy on Fridays"}}}, rules + "; c3 person deploy on Fridays"},
		{"a rule is dropped", session.TaskChange{Close: []string{"C1"}}, "c1 person You must always ask Ada."},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, id := open()
			if v := h.changes(row.ch); !v.Kept || items(v) != row.want || len(v.Notes) > 0 {
				t.Errorf("kept %v, %s, notes %q", v.Kept, items(v), v.Notes)
			} else if strings.HasPrefix(row.want, rules) && v.Items[0].Entry != id {
				t.Errorf("the source is %s, want %s", v.Items[0].Entry, id)
			}
		})
	}
	const noted = "; g3 model finish the table"
	for _, row := range []struct{ text, want, answer string }{
		{"deploy on Fridays", rules + noted, "no person said so"},
		{"never deploy", rules + noted, "no person said so"},
		{"It is late", rules + noted + "; c4 model It is late", ""},
		{"Never deploy on Fridays!", rules + noted, "c1 says that already"},
	} {
		h, _ := open()
		h.model.keeps(`{"add":[{"kind":"goal","text":"finish the table"},{"kind":"constraint","text":"` + row.text + `"}]}`)
		h.owner("Go on.")
		if a := h.answers(); items(h.task()) != row.want || !strings.Contains(a, row.answer) {
			t.Errorf("a model notes %q: %s, answered %q", row.text, items(h.task()), a)
		}
	}
	h, _ := open()
	h.model.keeps(`{"close":["c1"],"add":[{"kind":"goal","text":"finish the table"}]}`)
	h.owner("Go on.")
	if v := h.task(); items(v) != rules+"; g3 model finish the table" {
		t.Errorf("of a model: %s", items(v))
	}
}
