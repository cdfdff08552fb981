package task

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestRulesOfTheModel: a constraint of the model stands at the message in which a person said it, and one that nobody said is left
// out; what is no constraint, or a person's, needs no such message.
func TestRulesOfTheModel(t *testing.T) {
	s := ordered(t)
	said := s.logged(t, tidemark.FromPerson, "Ask me first. Never on Fridays.")
	c, notes, err := s.keep(t.Context(), testLog, Change{By: tidemark.FromModel, Add: []Added{{Kind: Constraint, Text: "never on Fridays", Entry: "made up"}, {Kind: Constraint, Text: strings.Repeat("pay the guest ", 9), Entry: said}, {Kind: Constraint, Text: "ask me first"}, {Kind: Goal, Text: "pay the guest", Entry: said}}})
	const left = "not added, no person said so in a sentence of just these words; a goal or an event can hold it: pay the guest pay the guest pay the guest pay the guest pay…"
	if err != nil || !slices.Equal(notes, []string{left}) || names(c) != "c1 c2 g3" || c.Items[0].Entry != said || c.Items[1].Entry != said || c.Items[2].Entry == said || c.Items[2].Entry == "" {
		t.Errorf("%+v, notes %q, %v", c.Items, notes, err)
	}
	c, notes, err = s.keep(t.Context(), testLog, Change{By: tidemark.FromPerson, Add: []Added{{Kind: Constraint, Text: "pay the guest", Entry: said}}})
	if err != nil || len(notes) > 0 || names(c) != "c1 c2 g3 c4" || c.Items[3].Entry == said {
		t.Errorf("of a person: %+v, notes %q, %v", c.Items, notes, err)
	}
	s.DB = &crowd{DB: s.DB, down: true}
	_, _, err = s.keep(t.Context(), testLog, Change{By: tidemark.FromModel, Add: []Added{{Kind: Constraint, Text: "x"}}})
	if err == nil || !strings.Contains(err.Error(), "read what was said") {
		t.Errorf("a store that is down: %v", err)
	}
}
