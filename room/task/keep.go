package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// View is the task of a conversation as a person reads it.
type View struct {
	Kept       bool               `json:"kept"` // by the agent or a person; else derived from the messages
	ID         string             `json:"id,omitempty"`
	Phase      recall.Phase       `json:"phase"`
	Items      []Item             `json:"items"`
	Pinned     []tidemark.EntryID `json:"pinned"`
	Superseded []Supersession     `json:"superseded"`
	Text       string             `json:"text"`            // as the model is shown it
	Cut        []string           `json:"cut,omitempty"`   // items that have no room there
	Notes      []string           `json:"notes,omitempty"` // what of a change could not be done
}

// View returns what the conversation works on: what is kept, else what was said last and which calls are open.
func (s *Room) View(ctx context.Context) (View, error) {
	c, version, err := s.card(ctx)
	if err != nil {
		return View{}, err
	}
	v := View{Kept: version > 0}
	if !v.Kept {
		h, err := s.Current(ctx)
		if err != nil {
			return v, err
		}
		if c, err = s.derived(ctx, h); err != nil {
			return v, err
		}
	}
	v.ID, v.Items = c.ID, append([]Item{}, c.Items...)
	if v.Phase = c.Phase; v.Phase == "" {
		v.Phase = recall.Idle
	}
	v.Text, v.Cut = c.text(s.noteRoom())
	v.Pinned, v.Superseded, err = s.marked(ctx)
	return v, err
}

// marked lists the pins and what was superseded, newest pins first.
func (s *Room) marked(ctx context.Context) ([]tidemark.EntryID, []Supersession, error) {
	pins, superseded := []tidemark.EntryID{}, []Supersession{}
	rows, err := s.Made.Query(ctx, tables, `SELECT id, pinned, superseded, reason FROM marks WHERE key = ? ORDER BY pinned DESC, id DESC LIMIT 1000`, string(s.Key))
	if err != nil {
		return nil, nil, fmt.Errorf("read marks: %w", err)
	}
	for _, r := range rows {
		if r.Int(1) > 0 {
			pins = append(pins, tidemark.EntryID(r.Text(0)))
		}
		if r.Text(2) != "" {
			superseded = append(superseded, Supersession{tidemark.EntryID(r.Text(0)), tidemark.EntryID(r.Text(2)), r.Text(3)})
		}
	}
	return pins, superseded, nil
}

// Change changes the task on behalf of a person. Only who may change the conversation may.
func (s *Room) Change(ctx context.Context, ch Change, o tidemark.Origin) (View, error) {
	if !s.MayChange(o) {
		return View{}, fmt.Errorf("task of %s: only the owner changes it: %w", s.Key, tidemark.ErrForbidden)
	}
	h, err := s.Current(ctx)
	if err != nil {
		return View{}, err
	}
	ch.By, ch.Call = tidemark.FromPerson, ""
	_, notes, err := s.keep(ctx, h, ch)
	if err != nil {
		return View{}, err
	}
	v, err := s.View(ctx)
	v.Notes = notes
	return v, err
}

// keep logs a change of the task and brings the card up to it, in one transaction: the log is the truth,
// and the tables are what its task events come to. guard is what else must hold. It returns the card and
// what of the change could not be done.
func (s *Room) keep(ctx context.Context, log string, ch Change, guard ...tidemark.Stmt) (Card, []string, error) {
	if err := ch.Validate(); err != nil {
		return Card{}, nil, err
	}
	ch, notes, err := s.permitted(ctx, ch)
	if err != nil {
		return Card{}, nil, err
	}
	const tries = 4
	for n := 1; ; n++ { // of calls side by side each is done upon the other
		c, version, err := s.card(ctx)
		if err != nil || ch.empty() || ch.Call != "" && slices.Contains(c.Calls, ch.Call) {
			return c, notes, err
		}
		left, more, err := s.unpinned(ctx, ch)
		if err != nil {
			return c, notes, err
		}
		left, idle := c.effective(left)
		more = append(more, idle...)
		if left.empty() { // a change that does nothing must not begin a card
			return c, append(notes, more...), nil
		}
		loose, err := s.loosePins(ctx, left)
		if err != nil {
			return c, nil, err
		}
		next, err := s.keepOnce(ctx, log, c, version, left, guard)
		if errors.Is(err, tidemark.ErrConflict) && n < tries {
			continue
		}
		if err != nil {
			return c, notes, fmt.Errorf("keep the task: %w", err)
		}
		return next, slices.Concat(notes, more, loose), nil
	}
}

// keepOnce writes a change upon a version of the card; if it has another by now, that is ErrConflict.
func (s *Room) keepOnce(ctx context.Context, log string, c Card, version int64, ch Change, guard []tidemark.Stmt) (Card, error) {
	if err := s.Made.Open(ctx, tables); err != nil {
		return c, err
	}
	now := s.Runtime.Now()
	e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindEvent, At: now, Origin: tidemark.Origin{From: ch.By},
		Payload: []byte(room.JSON(tidemark.Event{Type: taskEvent, Text: ch.line(), Data: []byte(room.JSON(ch))}))}
	next, _ := c.apply(ch, e.ID, now)
	event, err := s.Log.AppendStmts(log, e)
	if err != nil {
		return c, err
	}
	stmts := append(slices.Clone(guard), event...)
	if version == 0 {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO tasks(key, version, card) VALUES(?, 1, ?) ON CONFLICT(key) DO NOTHING`,
			Args: []any{string(s.Key), room.JSON(next)}, Want: 1})
	} else {
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE tasks SET version = version + 1, card = ? WHERE key = ? AND version = ?`,
			Args: []any{room.JSON(next), string(s.Key), version}, Want: 1})
	}
	if premise := next.Task().Premise(); version == 0 || premise != c.Task().Premise() || next.ID != c.ID {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO premises(key, since, premise, task) SELECT ?, seq, ?, ? FROM entries WHERE id = ?`,
			Args: []any{string(s.Key), premise, next.ID, string(e.ID)}, Want: 1})
	}
	if err := s.DB.Tx(ctx, append(stmts, s.markStmts(ch, version+1)...)); err != nil {
		return c, err
	}
	return next, nil
}

// taskEvent is the type of the events whose fold is the task.
const taskEvent = "task"

// markStmts write what a change says of single entries. Beyond maxPins the oldest pins lose their hold.
func (s *Room) markStmts(ch Change, version int64) []tidemark.Stmt {
	var stmts []tidemark.Stmt
	for _, id := range ch.Unpin {
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE marks SET pinned = 0 WHERE key = ? AND id = ?`, Args: []any{string(s.Key), string(id)}})
	}
	for _, id := range ch.Pin {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO marks(key, id, pinned) VALUES(?, ?, ?) ON CONFLICT(key, id) DO UPDATE SET pinned = excluded.pinned`,
			Args: []any{string(s.Key), string(id), version}})
	}
	if len(ch.Pin) > 0 {
		stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE marks SET pinned = 0 WHERE key = ? AND pinned > 0 AND id NOT IN
			(SELECT id FROM marks WHERE key = ? AND pinned > 0 ORDER BY pinned DESC, id DESC LIMIT ?)`, Args: []any{string(s.Key), string(s.Key), maxPins}})
	}
	for _, x := range ch.Superseded {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO marks(key, id, superseded, reason) VALUES(?, ?, ?, ?)
			ON CONFLICT(key, id) DO UPDATE SET superseded = excluded.superseded, reason = excluded.reason`,
			Args: []any{string(s.Key), string(x.Entry), string(x.By), clip.Line(x.Reason, maxItemText)}})
	}
	return stmts
}

// permitted leaves out of a change what may not be, and says why: entries of other conversations, a result
// of a tool that would stand in for what a person said, and constraints of the model that no person named.
// What a tool returns must not become a rule by way of the model that read it.
func (s *Room) permitted(ctx context.Context, ch Change) (Change, []string, error) {
	var notes []string
	refuse := func(id tidemark.EntryID, why string) { notes = append(notes, fmt.Sprintf("%.40s %s", id, why)) }
	known := map[tidemark.EntryID]tidemark.Entry{}
	find := func(id tidemark.EntryID) (bool, error) {
		if _, ok := known[id]; ok {
			return true, nil
		}
		e, err := s.own(ctx, id)
		if errors.Is(err, tidemark.ErrNotFound) {
			refuse(id, "is no message of this conversation")
			return false, nil
		}
		known[id] = e
		return err == nil, err
	}
	out := ch
	out.Pin, out.Superseded, out.Add = nil, nil, nil
	for _, id := range ch.Pin {
		if ok, err := find(id); err != nil {
			return ch, nil, err
		} else if ok {
			out.Pin = append(out.Pin, id)
		}
	}
	for _, x := range ch.Superseded {
		ok, err := find(x.Entry)
		if err == nil && ok {
			ok, err = find(x.By)
		}
		if err != nil {
			return ch, nil, err
		}
		switch old, by := known[x.Entry], known[x.By]; {
		case !ok:
		case by.Seq < old.Seq:
			refuse(x.By, "is older than what it would supersede")
		case old.Origin.From == tidemark.FromPerson && by.Origin.From != tidemark.FromPerson && ch.By != tidemark.FromPerson:
			refuse(x.Entry, "was said by a person, so only what a person said later supersedes it")
		default:
			out.Superseded = append(out.Superseded, x)
		}
	}
	added, more, err := s.sourced(ctx, ch)
	out.Add = added
	return out, append(notes, more...), err
}

// sourced returns the items of a change with the message that a constraint was said in. One of the model's
// that no person said is left out.
func (s *Room) sourced(ctx context.Context, ch Change) (out []Added, notes []string, err error) {
	var heard []said
	for _, a := range ch.Add {
		a.Entry = ""
		if a.Kind == Constraint && ch.By != tidemark.FromPerson {
			if heard == nil {
				h, err := s.Current(ctx)
				if err != nil {
					return nil, nil, err
				}
				if heard, err = s.said(ctx, h); err != nil {
					return nil, nil, err
				}
			}
			if a.Entry = saidIn(heard, a.Text); a.Entry == "" {
				notes = append(notes, fmt.Sprintf("not added, no person said so in a sentence of just these words; a goal or an event can hold it: %s", clip.Line(a.Text, 60)))
				continue
			}
		}
		out = append(out, a)
	}
	return out, notes, nil
}

// own returns a message of this conversation, as stored.
func (s *Room) own(ctx context.Context, id tidemark.EntryID) (tidemark.Entry, error) {
	e, err := s.Log.Entry(ctx, id)
	if err != nil {
		return e, err
	}
	ours, err := s.Reaches(ctx, e)
	if err == nil && (!ours || e.Kind != tidemark.KindMessage) {
		err = fmt.Errorf("entry %s: %w", id, tidemark.ErrNotFound)
	}
	return e, err
}

// taskSays is what the model reads of a card.
func taskSays(c Card, notes []string, rest, all tidemark.Tokens) string {
	text, _ := c.text(1<<20, 1<<20)
	if text == "" {
		text = "The card is empty."
	}
	if _, cut := c.text(rest, all); len(cut) > 0 {
		text += fmt.Sprintf("\nWithout room on the card that you are shown (%d tokens beside constraints): %s. Close what is done.", rest, strings.Join(cut, ", "))
	}
	if len(notes) > 0 {
		text += "\nNot done: " + strings.Join(notes, "; ") + "."
	}
	return text
}

// effective leaves out of a change what changes nothing about a card, with the reasons: what remains is
// empty when nothing of it does.
func (c Card) effective(ch Change) (Change, []string) {
	var notes []string
	out := ch
	out.Close, out.Add = nil, nil
	now, _ := c.apply(Change{By: ch.By, New: ch.New}, "", time.Time{})
	for _, name := range ch.Close {
		next, why := now.apply(Change{By: ch.By, Close: []string{name}}, "", time.Time{})
		notes = append(notes, why...)
		if len(next.Items) < len(now.Items) {
			out.Close = append(out.Close, name)
		}
		now = next
	}
	for _, a := range ch.Add {
		next, why := now.apply(Change{By: ch.By, Add: []Added{a}}, "", time.Time{})
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
func (s *Room) unpinned(ctx context.Context, ch Change) (Change, []string, error) {
	marks, err := s.Marks(ctx, ch.Unpin)
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
