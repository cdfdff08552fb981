package task

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// ItemKind is what a line of a card is.
type ItemKind string

// The kinds of lines.
const (
	Goal       ItemKind = "goal"
	Loop       ItemKind = "loop" // begun and not ended
	Constraint ItemKind = "constraint"
	KeyEvent   ItemKind = "event"
)

// itemKinds in the order in which a card shows them: what rules the rest first, what is merely good to
// know last, since a card that is too long is cut at its end.
var itemKinds = [...]titled{{Constraint, "Constraints"}, {Goal, "Goals"}, {Loop, "Open"}, {KeyEvent, "Happened"}}

type titled struct {
	kind  ItemKind
	title string
}

// phases that a card may have.
var phases = [...]recall.Phase{recall.Idle, recall.Planning, recall.Executing, recall.Debugging, recall.Reviewing}

// Bounds of a card.
const (
	maxItems    = 8   // of a kind
	maxItemText = 200 // letters; what is longer is cut
	maxRuleText = 400 // of a constraint, which is whole or refused: half of one may say the opposite
	maxTaskCall = 16  // items, names or entries in one change
	maxLastCall = 16  // calls that are remembered
)

// Card is the task state of a conversation: the fold of its task events, or what is derived without them.
type Card struct {
	ID    string       `json:"id,omitempty"` // of the task: the event that began it
	Phase recall.Phase `json:"phase,omitempty"`
	Items []Item       `json:"items,omitempty"` // in the order in which they came
	Last  int          `json:"last,omitempty"`  // number of the last item
	Calls []string     `json:"calls,omitempty"` // the last that changed it: none is carried out twice
}

// Item is a line of a card and where it comes from.
type Item struct {
	Name  string           `json:"name"` // that it is closed by: g1, l2, c3, e4
	Kind  ItemKind         `json:"kind"`
	Text  string           `json:"text"`
	By    string           `json:"by"`              // who keeps it: person or model
	Entry tidemark.EntryID `json:"entry,omitempty"` // where it was said, or the event that keeps it
	At    time.Time        `json:"at,omitzero"`
}

// Task returns the card as recall reads it.
func (c Card) Task() recall.Task {
	t := recall.Task{ID: c.ID, Phase: c.Phase}
	for _, i := range c.Items {
		switch i.Kind {
		case Goal:
			t.Goals = append(t.Goals, i.Text)
		case Loop:
			t.Loops = append(t.Loops, i.Text)
		case Constraint:
			t.Constraints = append(t.Constraints, i.Text)
		case KeyEvent:
			t.Events = append(t.Events, i.Text)
		}
	}
	return t
}

// Change is what one task event changes. The card of a conversation is the fold of these.
type Change struct {
	By         string             `json:"by,omitempty"`   // person or model; the session says which
	Call       string             `json:"call,omitempty"` // of the model that asked for it
	New        bool               `json:"new,omitempty"`  // another task begins: only constraints stay
	Add        []Added            `json:"add,omitempty"`
	Close      []string           `json:"close,omitempty"` // names of items that are done or dropped
	Phase      recall.Phase       `json:"phase,omitempty"`
	Pin        []tidemark.EntryID `json:"pin,omitempty"`   // entries that stay in view
	Unpin      []tidemark.EntryID `json:"unpin,omitempty"` //
	Superseded []Supersession     `json:"superseded,omitempty"`
}

// Added is a line to be added to a card.
type Added struct {
	Kind  ItemKind         `json:"kind"`
	Text  string           `json:"text"`
	Entry tidemark.EntryID `json:"entry,omitempty"` // where a person said it; the session finds it
}

// Supersession says that an entry no longer holds, since a later one does.
type Supersession struct {
	Entry  tidemark.EntryID `json:"entry"`
	By     tidemark.EntryID `json:"by"`
	Reason string           `json:"reason"`
}

// Validate names the field that cannot be.
func (ch Change) Validate() error {
	for i, a := range ch.Add {
		if !slices.ContainsFunc(itemKinds[:], func(k titled) bool { return k.kind == a.Kind }) {
			return fmt.Errorf("add[%d].kind %.20q: want goal, loop, constraint or event: %w", i, a.Kind, tidemark.ErrInvalid)
		}
		if strings.TrimSpace(a.Text) == "" {
			return fmt.Errorf("add[%d].text is empty: %w", i, tidemark.ErrInvalid)
		}
		if n := utf8.RuneCountInString(a.Text); a.Kind == Constraint && n > maxRuleText {
			return fmt.Errorf("add[%d].text has %d letters: a constraint has at most %d: %w", i, n, maxRuleText, tidemark.ErrInvalid)
		}
	}
	if ch.Phase != "" && !slices.Contains(phases[:], ch.Phase) {
		return fmt.Errorf("phase %.20q: want idle, planning, executing, debugging or reviewing: %w", ch.Phase, tidemark.ErrInvalid)
	}
	for i, s := range ch.Superseded {
		if s.Entry == "" || s.By == "" || s.Entry == s.By || strings.TrimSpace(s.Reason) == "" {
			return fmt.Errorf("superseded[%d]: want entry, by, another entry, and reason: %w", i, tidemark.ErrInvalid)
		}
	}
	if n := max(len(ch.Add), len(ch.Close), len(ch.Pin), len(ch.Unpin), len(ch.Superseded)); n > maxTaskCall {
		return fmt.Errorf("%d changes of a kind, at most %d at once: %w", n, maxTaskCall, tidemark.ErrInvalid)
	}
	return nil
}

// empty reports a change that changes nothing.
func (ch Change) empty() bool {
	return !ch.New && ch.Phase == "" && len(ch.Add)+len(ch.Close)+len(ch.Pin)+len(ch.Unpin)+len(ch.Superseded) == 0
}

// line is what people read of a change.
func (ch Change) line() string {
	var parts []string
	say := func(n int, one string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", one, n))
		}
	}
	if ch.New {
		parts = append(parts, "a new task")
	}
	say(len(ch.Add), "added")
	say(len(ch.Close), "closed")
	if ch.Phase != "" {
		parts = append(parts, string(ch.Phase))
	}
	say(len(ch.Pin), "pinned")
	say(len(ch.Unpin), "unpinned")
	say(len(ch.Superseded), "superseded")
	return "Task: " + strings.Join(parts, ", ") + "."
}

// apply returns the card after a change, and what of it could not be done. It is pure and takes every
// change, so the fold of a log never fails. entry is the event that holds the change.
func (c Card) apply(ch Change, entry tidemark.EntryID, at time.Time) (Card, []string) {
	var notes []string
	out := c
	out.Items = slices.Clone(c.Items)
	if ch.New || c.ID == "" {
		out.ID = string(entry)
	}
	if ch.New {
		out.Phase = ""
		out.Items = slices.DeleteFunc(out.Items, func(i Item) bool { return i.Kind != Constraint })
	}
	for _, name := range ch.Close {
		i := slices.IndexFunc(out.Items, func(i Item) bool { return strings.EqualFold(i.Name, strings.TrimSpace(name)) })
		switch {
		case i < 0:
			notes = append(notes, fmt.Sprintf("%.20q is no item of the card", name))
		case out.Items[i].Kind == Constraint && out.Items[i].By == tidemark.FromPerson && ch.By != tidemark.FromPerson:
			notes = append(notes, out.Items[i].Name+" stays: a person set it, and only a person drops it")
		default:
			out.Items = slices.Delete(out.Items, i, i+1)
		}
	}
	for _, a := range ch.Add {
		var note string
		if out, note = out.add(a, ch.By, entry, at); note != "" {
			notes = append(notes, note)
		}
	}
	out.Phase = cmp.Or(ch.Phase, out.Phase)
	if ch.Call != "" {
		out.Calls = append(slices.Clone(out.Calls), ch.Call)
		out.Calls = out.Calls[max(0, len(out.Calls)-maxLastCall):]
	}
	return out, notes
}

// add appends an item: the same words of a kind are one. Of key events the oldest gives way; of what is to
// be heeded or done none does, since it would be lost unseen.
func (c Card) add(a Added, by string, entry tidemark.EntryID, at time.Time) (Card, string) {
	most := maxItemText
	if a.Kind == Constraint {
		most = maxRuleText
	}
	text := clip.Line(a.Text, most)
	if text == "" {
		return c, ""
	}
	n, first := 0, -1
	for i, it := range c.Items {
		if it.Kind != a.Kind {
			continue
		}
		if n++; first < 0 {
			first = i
		}
		if strings.EqualFold(it.Text, text) {
			return c, fmt.Sprintf("%s says that already", it.Name)
		}
	}
	if n >= maxItems {
		if a.Kind != KeyEvent {
			return c, fmt.Sprintf("not added, close one of the %d of its kind first: %s", maxItems, clip.Line(text, 40))
		}
		c.Items = slices.Delete(slices.Clone(c.Items), first, first+1)
	}
	c.Last++
	c.Items = append(c.Items, Item{Name: fmt.Sprintf("%c%d", a.Kind[0], c.Last), Kind: a.Kind, Text: text, By: by, Entry: cmp.Or(a.Entry, entry), At: at})
	return c, ""
}

// text is the card as a model reads it, within some tokens, and the names of the items that had no room. What
// must be heeded has room of its own up to all of it, the rest as much as it may take behind that. A line that
// does not fit is left out whole: half a constraint may say the opposite.
func (c Card) text(rest, all tidemark.Tokens) (string, []string) {
	var b strings.Builder
	var left []string
	most := all
	write := func(s string) bool {
		if tidemark.EstimateText(b.String()+s) > most {
			return false
		}
		b.WriteString(s)
		return true
	}
	if c.Phase != "" && c.Phase != recall.Idle {
		write("Phase: " + string(c.Phase) + "\n")
	}
	for _, k := range itemKinds {
		title := k.title + ":\n"
		for _, i := range slices.Backward(c.Items) { // the newest first: they are the last to be cut
			if i.Kind != k.kind {
				continue
			}
			line := "- " + i.Name + ": " + room.Harmless(i.Text) + "\n"
			if i.Kind == Constraint && i.By != tidemark.FromPerson {
				line = "- " + i.Name + " (noted by the assistant): " + room.Harmless(i.Text) + "\n"
			}
			if !write(title + line) {
				left = append(left, i.Name)
				continue
			}
			title = ""
		}
		if k.kind == Constraint {
			most = min(all, tidemark.EstimateText(b.String())+rest)
		}
	}
	return strings.TrimRight(b.String(), "\n"), left
}
