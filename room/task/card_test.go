package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
)

// one is a card of an item of each kind, of which a person keeps the constraint c1.
func one() Card {
	at := time.Unix(100, 0)
	return Card{ID: "e0", Phase: recall.Planning, Last: 5, Items: []Item{
		{Name: "c1", Kind: Constraint, Text: "ask me first", By: tidemark.FromPerson, Entry: "e1", At: at},
		{Name: "g2", Kind: Goal, Text: "mend the gauge", By: tidemark.FromModel, Entry: "e1", At: at},
		{Name: "l3", Kind: Loop, Text: "order a float", By: tidemark.FromModel, Entry: "e1", At: at},
		{Name: "e4", Kind: KeyEvent, Text: "the chain broke", By: tidemark.FromModel, Entry: "e1", At: at},
		{Name: "c5", Kind: Constraint, Text: "use the new one", By: tidemark.FromModel, Entry: "e2", At: at},
	}}
}

// names of the items of a card.
func names(c Card) string {
	var out []string
	for _, i := range c.Items {
		out = append(out, i.Name)
	}
	return strings.Join(out, " ")
}

// TestCardTask: recall reads the items of a card by their kind.
func TestCardTask(t *testing.T) {
	got := one().Task()
	want := recall.Task{ID: "e0", Phase: recall.Planning, Goals: []string{"mend the gauge"}, Loops: []string{"order a float"}, Constraints: []string{"ask me first", "use the new one"}, Events: []string{"the chain broke"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestChangeValidate: a change that cannot be names its field, and is held to its bounds.
func TestChangeValidate(t *testing.T) {
	ids := func(n int) []tidemark.EntryID { return make([]tidemark.EntryID, n) }
	x := func(n int) string { return strings.Repeat("ö", n) }
	for _, tc := range []struct {
		name string
		ch   Change
		says string // "": it can be
	}{
		{"nothing", Change{}, ""},
		{"each kind", Change{Add: []Added{{Kind: Goal, Text: "a"}, {Kind: Loop, Text: "a"}, {Kind: Constraint, Text: "a"}, {Kind: KeyEvent, Text: "a"}}}, ""},
		{"another kind", Change{Add: []Added{{Kind: Goal, Text: "a"}, {Kind: "wish", Text: "a"}}}, `add[1].kind "wish"`},
		{"no text", Change{Add: []Added{{Kind: Goal, Text: " \n"}}}, "add[0].text is empty"},
		{"a constraint as long as may be", Change{Add: []Added{{Kind: Constraint, Text: x(400)}}}, ""},
		{"a longer one", Change{Add: []Added{{Kind: Constraint, Text: x(401)}}}, "add[0].text has 401 letters: a constraint has at most 400"},
		{"a long goal", Change{Add: []Added{{Kind: Goal, Text: x(5000)}}}, ""},
		{"each phase", Change{Phase: recall.Reviewing}, ""},
		{"another phase", Change{Phase: "sleeping"}, `phase "sleeping"`},
		{"a supersession", Change{Superseded: []Supersession{{Entry: "a", By: "b", Reason: "c"}}}, ""},
		{"of nothing", Change{Superseded: []Supersession{{By: "b", Reason: "c"}}}, "superseded[0]"},
		{"by nothing", Change{Superseded: []Supersession{{Entry: "a", Reason: "c"}}}, "superseded[0]"},
		{"by itself", Change{Superseded: []Supersession{{Entry: "a", By: "b", Reason: "c"}, {Entry: "a", By: "a", Reason: "c"}}}, "superseded[1]"},
		{"for no reason", Change{Superseded: []Supersession{{Entry: "a", By: "b", Reason: " "}}}, "superseded[0]"},
		{"as many as may be", Change{Close: make([]string, 16), Pin: ids(16), Unpin: ids(16)}, ""},
		{"one more to be closed", Change{Close: make([]string, 17)}, "17 changes of a kind, at most 16"},
		{"one more pin", Change{Pin: ids(17)}, "17 changes of a kind"},
		{"one less pin", Change{Unpin: ids(17)}, "17 changes of a kind"},
		{"one more added", Change{Add: slices.Repeat([]Added{{Kind: Goal, Text: "a"}}, 17)}, "17 changes of a kind"},
		{"one more superseded", Change{Superseded: slices.Repeat([]Supersession{{Entry: "a", By: "b", Reason: "c"}}, 17)}, "17 changes of a kind"},
	} {
		if err := tc.ch.Validate(); (err == nil) != (tc.says == "") || err != nil && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestChangeLine: what people read of a change, and which changes nothing.
func TestChangeLine(t *testing.T) {
	a, id := []Added{{}}, []tidemark.EntryID{"a"}
	for _, tc := range []struct {
		ch    Change
		want  string
		empty bool
	}{
		{Change{By: "model", Call: "r/1/0"}, "Task: .", true},
		{Change{New: true}, "Task: a new task.", false}, {Change{Phase: recall.Planning}, "Task: planning.", false}, {Change{Add: a}, "Task: added 1.", false}, {Change{Close: []string{"g1", "g2"}}, "Task: closed 2.", false},
		{Change{Pin: id}, "Task: pinned 1.", false}, {Change{Unpin: id}, "Task: unpinned 1.", false}, {Change{Superseded: []Supersession{{}}}, "Task: superseded 1.", false},
		{Change{Add: a, Close: []string{"g1"}}, "Task: added 1, closed 1.", false}, {Change{Add: a, Pin: id}, "Task: added 1, pinned 1.", false}, {Change{Add: a, Unpin: id}, "Task: added 1, unpinned 1.", false}, {Change{Add: a, Superseded: []Supersession{{}}}, "Task: added 1, superseded 1.", false},
		{Change{New: true, Phase: recall.Planning, Add: a, Close: []string{"g1"}, Pin: id, Unpin: id, Superseded: []Supersession{{}}}, "Task: a new task, added 1, closed 1, planning, pinned 1, unpinned 1, superseded 1.", false},
	} {
		if got := tc.ch.line(); got != tc.want || tc.ch.empty() != tc.empty {
			t.Errorf("%+v: %q, empty %v", tc.ch, got, tc.ch.empty())
		}
	}
}

// TestApply: what a card is after a change, what of it could not be done, and that the card before stays as it was.
func TestApply(t *testing.T) {
	at := time.Unix(200, 0)
	for _, tc := range []struct {
		name  string
		ch    Change
		want  string // names
		id    string
		phase recall.Phase
		notes []string
	}{
		{"nothing", Change{}, "c1 g2 l3 e4 c5", "e0", recall.Planning, nil},
		{"a new task", Change{New: true}, "c1 c5", "e9", "", nil},
		{"a new task in a phase", Change{New: true, Phase: recall.Executing}, "c1 c5", "e9", recall.Executing, nil},
		{"closed, in any case", Change{By: tidemark.FromModel, Close: []string{" G2 ", "c5"}}, "c1 l3 e4", "e0", recall.Planning, nil},
		{"closed twice", Change{Close: []string{"g2", "g2"}}, "c1 l3 e4 c5", "e0", recall.Planning, []string{`"g2" is no item of the card`}},
		{"a person's constraint, by the model", Change{By: tidemark.FromModel, Close: []string{"c1"}}, "c1 g2 l3 e4 c5", "e0", recall.Planning, []string{"c1 stays: a person set it, and only a person drops it"}},
		{"a person's constraint, by a person", Change{By: tidemark.FromPerson, Close: []string{"c1"}}, "g2 l3 e4 c5", "e0", recall.Planning, nil},
		{"added", Change{By: tidemark.FromModel, Add: []Added{{Kind: Goal, Text: " one\n more "}, {Kind: KeyEvent, Text: "x", Entry: "e7"}}}, "c1 g2 l3 e4 c5 g6 e7", "e0", recall.Planning, nil},
		{"added, of which one is there", Change{Add: []Added{{Kind: Goal, Text: "Mend THE gauge"}, {Kind: Loop, Text: "mend the gauge"}}}, "c1 g2 l3 e4 c5 l6", "e0", recall.Planning, []string{"g2 says that already"}},
		{"added nothing", Change{Add: []Added{{Kind: Goal, Text: " "}}}, "c1 g2 l3 e4 c5", "e0", recall.Planning, nil},
	} {
		c := one()
		got, notes := c.apply(tc.ch, "e9", at)
		if names(got) != tc.want || got.ID != tc.id || got.Phase != tc.phase || !slices.Equal(notes, tc.notes) {
			t.Errorf("%s: %s of %s, %s, notes %q", tc.name, names(got), got.ID, got.Phase, notes)
		}
		if fmt.Sprint(c) != fmt.Sprint(one()) {
			t.Errorf("%s: it changed the card before", tc.name)
		}
	}
	got, _ := one().apply(Change{By: "who", Add: []Added{{Kind: Goal, Text: " one\n more "}, {Kind: KeyEvent, Text: "x", Entry: "e7"}}}, "e9", at)
	if want := []Item{{"g6", Goal, "one more", "who", "e9", at}, {"e7", KeyEvent, "x", "who", "e7", at}}; fmt.Sprint(got.Items[5:]) != fmt.Sprint(want) || got.Last != 7 {
		t.Errorf("added %+v, want %+v", got.Items[5:], want)
	}
	if got, _ := (Card{}).apply(Change{}, "e9", at); got.ID != "e9" {
		t.Errorf("the first card is of task %q", got.ID)
	}
	var c Card
	for i := range maxLastCall + 2 {
		c, _ = c.apply(Change{Call: fmt.Sprint("r/", i)}, "e9", at)
	}
	if len(c.Calls) != maxLastCall || c.Calls[0] != "r/2" || c.Calls[maxLastCall-1] != "r/17" {
		t.Errorf("calls %q", c.Calls)
	}
}

// TestCardIsBounded: of each kind there are eight; of events the oldest gives way, of the rest none does.
func TestCardIsBounded(t *testing.T) {
	for _, tc := range []struct {
		kind ItemKind
		want string
		note string
	}{
		{Goal, "e1 g2 g3 g4 g5 g6 g7 g8 g9", "not added, close one of the 8 of its kind first: " + strings.Repeat("w", 40) + "…"},
		{KeyEvent, "e2 e3 e4 e5 e6 e7 e8 e9", ""},
	} {
		c := Card{}.derivedItem(KeyEvent, "first", "x", "e", time.Time{})
		for i := range maxItems {
			if tc.kind == Goal || i < maxItems-1 {
				c = c.derivedItem(tc.kind, fmt.Sprint("item ", i), "x", "e", time.Time{})
			}
		}
		before := names(c)
		got, note := c.add(Added{Kind: tc.kind, Text: strings.Repeat("w", 50)}, "x", "e", time.Time{})
		if names(got) != tc.want || note != tc.note || names(c) != before {
			t.Errorf("%s: %s, %q, want %s", tc.kind, names(got), note, tc.want)
		}
	}
	for kind, want := range map[ItemKind]int{Goal: 200, Loop: 200, KeyEvent: 200, Constraint: 400} {
		c, _ := Card{}.add(Added{Kind: kind, Text: strings.Repeat("ö", 401)}, "x", "e", time.Time{})
		if got := strings.TrimSuffix(c.Items[0].Text, "…"); got != strings.Repeat("ö", want) {
			t.Errorf("a %s has %d letters, want %d", kind, len(got)/2, want)
		}
	}
}

// TestCardText: what a model reads of a card: what is to be heeded first, in each kind the newest first, and what has no room.
func TestCardText(t *testing.T) {
	const rules = "Constraints:\n- c5 (noted by the assistant): use the new one\n- c1: ask me first\n"
	const rest = "Goals:\n- g2: mend the gauge\nOpen:\n- l3: order a float\nHappened:\n- e4: the chain broke\n"
	tokens := func(s string) tidemark.Tokens { return tidemark.EstimateText(s) }
	const phase = "Phase: planning\n"
	for _, tc := range []struct {
		name      string
		rest, all tidemark.Tokens
		want      string
		cut       []string
	}{
		{"whole", 1000, 1000, phase + rules + rest, nil},
		{"with room for just that", tokens(phase+rules+rest) - tokens(phase+rules), tokens(phase + rules + rest), phase + rules + rest, nil},
		{"with one less of all", 1000, tokens(phase+rules+rest) - 1, phase + rules + strings.TrimSuffix(rest, "Happened:\n- e4: the chain broke\n"), []string{"e4"}},
		{"with one less of the rest", tokens(phase+rules+rest) - tokens(phase+rules) - 1, 1000, phase + rules + strings.TrimSuffix(rest, "Happened:\n- e4: the chain broke\n"), []string{"e4"}},
		{"the rules alone", 0, 1000, phase + rules, []string{"g2", "l3", "e4"}},
		{"not all of them", 1000, tokens(phase+rules) - 1, phase + strings.TrimSuffix(rules, "- c1: ask me first\n"), []string{"c1", "g2", "l3", "e4"}},
		{"nothing", 0, 0, "", []string{"c5", "c1", "g2", "l3", "e4"}},
	} {
		if got, cut := one().text(tc.rest, tc.all); got != strings.TrimRight(tc.want, "\n") || !slices.Equal(cut, tc.cut) {
			t.Errorf("%s: cut %v\n%s\nwant %v\n%s", tc.name, cut, got, tc.cut, tc.want)
		}
	}
	for phase, want := range map[recall.Phase]string{"": "", recall.Idle: "", recall.Debugging: "Phase: debugging"} {
		if got, _ := (Card{Phase: phase}).text(100, 100); got != want {
			t.Errorf("phase %q: %q", phase, got)
		}
	}
	two := Card{Items: []Item{{Name: "g1", Kind: Goal, Text: "old"}, {Name: "g2", Kind: Goal, Text: "new <system-reminder>"}}}
	long := Card{Items: []Item{{Name: "g1", Kind: Goal, Text: "old"}, {Name: "g2", Kind: Goal, Text: strings.Repeat("new ", 50)}}}
	if got, cut := long.text(10, 10); got != "Goals:\n- g1: old" || !slices.Equal(cut, []string{"g2"}) {
		t.Errorf("behind one that has no room: %q, cut %v", got, cut)
	}
	if got, _ := two.text(100, 100); !strings.HasPrefix(got, "Goals:\n- g2: new ") || !strings.HasSuffix(got, "\n- g1: old") || strings.Contains(got, "<system-reminder>") {
		t.Errorf("two of a kind: %q", got)
	}
}

// TestTaskSays: the answer to a call has the whole card, what of it has no room where it is pushed, and what was not done.
func TestTaskSays(t *testing.T) {
	whole, _ := one().text(1000, 1000)
	for _, tc := range []struct {
		name      string
		c         Card
		notes     []string
		rest, all tidemark.Tokens
		want      string
	}{
		{"a card", one(), nil, 1000, 1000, whole},
		{"none", Card{}, nil, 1000, 1000, "The card is empty."},
		{"without room", one(), nil, 0, 1000, whole + "\nWithout room on the card that you are shown (0 tokens beside constraints): g2, l3, e4. Close what is done."},
		{"without room for one", one(), nil, tidemark.EstimateText("Goals:\n- g2: mend the gauge\nOpen:\n- l3: order a float\n"), 1000, whole + "\nWithout room on the card that you are shown (17 tokens beside constraints): e4. Close what is done."},
		{"one not done", one(), []string{"this"}, 1000, 1000, whole + "\nNot done: this."},
		{"not done", one(), []string{"this", "that"}, 1000, 1000, whole + "\nNot done: this; that."},
	} {
		if got := taskSays(tc.c, tc.notes, tc.rest, tc.all); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestEffective: of a change remains what changes the card, and why the rest does not.
func TestEffective(t *testing.T) {
	goal := func(text string) Added { return Added{Kind: Goal, Text: text} }
	for _, tc := range []struct {
		name  string
		ch    Change
		want  Change
		notes []string
	}{
		{"all of it", Change{By: tidemark.FromModel, Close: []string{"g2"}, Add: []Added{goal("x")}, Phase: recall.Executing}, Change{Close: []string{"g2"}, Add: []Added{goal("x")}, Phase: recall.Executing}, nil},
		{"the phase that it has", Change{Phase: recall.Planning}, Change{}, nil},
		{"the phase that it had before a new task", Change{New: true, Phase: recall.Planning}, Change{New: true, Phase: recall.Planning}, nil},
		{"closed twice", Change{Close: []string{"g2", "g2", "e4"}}, Change{Close: []string{"g2", "e4"}}, []string{`"g2" is no item of the card`}},
		{"closed by a new task", Change{New: true, Close: []string{"g2"}}, Change{New: true}, []string{`"g2" is no item of the card`}},
		{"added twice", Change{Add: []Added{goal("x"), goal("X"), goal("y")}}, Change{Add: []Added{goal("x"), goal("y")}}, []string{"g6 says that already"}},
		{"closed, and added again", Change{Close: []string{"g2"}, Add: []Added{goal("mend the gauge")}}, Change{Close: []string{"g2"}, Add: []Added{goal("mend the gauge")}}, nil},
		{"what stays", Change{By: tidemark.FromModel, Close: []string{"c1"}}, Change{}, []string{"c1 stays: a person set it, and only a person drops it"}},
		{"pins are not of the card", Change{Pin: []tidemark.EntryID{"a"}}, Change{Pin: []tidemark.EntryID{"a"}}, nil},
	} {
		got, notes := one().effective(tc.ch)
		tc.want.By = tc.ch.By
		if fmt.Sprint(got) != fmt.Sprint(tc.want) || !slices.Equal(notes, tc.notes) {
			t.Errorf("%s: %+v, notes %q, want %+v", tc.name, got, notes, tc.want)
		}
	}
}
