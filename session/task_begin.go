package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// begun adds to the first change of a card the rules that persons set before anybody kept one: from now on
// the card is what is kept, and a rule must not be lost because something else was noted. Left out is one
// that a person says again in the same words, and one that a person closes by the name it was shown under: what
// the model notes stands beside it, and its repetition of a rule is left out, since it may close what it keeps.
func (s *Session) begun(ctx context.Context, log string, ch TaskChange) (TaskChange, []string, error) {
	heard, rules, err := s.heard(ctx, log)
	if err != nil {
		return ch, nil, err
	}
	told := derive(heard, rules, nil)
	var carried []AddedItem
	var closed, notes []string
	for _, i := range told.Items {
		if i.Kind != Constraint {
			continue
		}
		if ch.By == tidemark.FromPerson && slices.ContainsFunc(ch.Close, func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), i.Name) }) {
			closed = append(closed, i.Name)
			continue
		}
		again := func(a AddedItem) bool { return a.Kind == Constraint && sameWords(a.Text, i.Text) }
		if slices.ContainsFunc(ch.Add, again) {
			if ch.By == tidemark.FromPerson {
				continue
			}
			ch.Add = slices.DeleteFunc(slices.Clone(ch.Add), again)
			notes = append(notes, i.Name+" says that already")
		}
		carried = append(carried, AddedItem{Kind: Constraint, Text: i.Text, Entry: i.Entry, Heard: true})
	}
	for _, name := range ch.Close {
		if !slices.Contains(closed, strings.ToLower(strings.TrimSpace(name))) {
			notes = append(notes, fmt.Sprintf("%.20q is no item that is kept: so far the card is what the messages tell", name))
		}
	}
	ch.Close = nil
	if len(closed) > 0 || !ch.empty() {
		ch.Add = append(carried, ch.Add...) // first: with no room for all, what is left out is told
	}
	ch, more := Card{}.effective(ch)
	ch.Close = closed // there is nothing yet that this would close again
	return ch, append(notes, more...), nil
}

// sameWords reports texts of the same words in the same order: half a rule may say the opposite.
func sameWords(a, b string) bool { return ownForm(a) == ownForm(b) }

// effective leaves out of a change what changes nothing about a card, with the reasons: what remains is
// empty when nothing of it does.
func (c Card) effective(ch TaskChange) (TaskChange, []string) {
	var notes []string
	out := ch
	out.Close, out.Add = nil, nil
	now, _ := c.apply(TaskChange{By: ch.By, New: ch.New}, "", time.Time{})
	for _, name := range ch.Close {
		next, why := now.apply(TaskChange{By: ch.By, Close: []string{name}}, "", time.Time{})
		notes = append(notes, why...)
		if len(next.Items) < len(now.Items) {
			out.Close = append(out.Close, name)
		}
		now = next
	}
	for _, a := range ch.Add {
		next, why := now.apply(TaskChange{By: ch.By, Add: []AddedItem{a}}, "", time.Time{})
		notes = append(notes, why...)
		if next.Last > now.Last {
			out.Add = append(out.Add, a)
		}
		now = next
	}
	if ch.Phase == now.Phase {
		out.Phase = ""
	}
	return out, notes
}

// unpinned leaves out of a change the entries to let go that nothing holds, and says so.
func (s *Session) unpinned(ctx context.Context, ch TaskChange) (TaskChange, []string, error) {
	marks, err := s.marksOf(ctx, ch.Unpin)
	if err != nil {
		return ch, nil, err
	}
	var notes []string
	var held []tidemark.EntryID
	for _, id := range ch.Unpin {
		if marks[id].Pinned {
			held = append(held, id)
		} else {
			notes = append(notes, fmt.Sprintf("%.40s is not pinned", id))
		}
	}
	ch.Unpin = held
	return ch, notes, nil
}
