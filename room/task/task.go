// Package task is the room of what a conversation works on: a card of goals, open loops, constraints and key events that
// the model keeps with its tool and a person changes, and which messages are pinned or superseded. It reads no meaning
// out of what is said. Begin with Room and Card.
package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Room is what one conversation works on.
type Room struct {
	room.Self
	room.History
	noteRoom func() (rest, all tidemark.Tokens)
	offered  State
}

// Make returns what makes the room; offered is when the model has its tool.
func Make(offered State) room.Maker {
	return func(p room.Ports) any { return &Room{p.Self, p.History, p.NoteRoom, offered} }
}

var (
	_ room.Tabler = (*Room)(nil)
	_ room.Tools  = (*Room)(nil)
	_ room.Pusher = (*Room)(nil)
	_ room.Holder = (*Room)(nil)
	_ room.Marker = (*Room)(nil)
	_ room.Keeper = (*Room)(nil)
)

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }

// tables hold what the task events of a conversation come to, so that no turn reads them all. They are
// made when the first is kept: a conversation without a task has none of them.
var tables = room.Tables{Space: "session_task", Own: true, Steps: []string{
	// The card now; version grows with each event, and is what a writer compares.
	`CREATE TABLE tasks(key TEXT PRIMARY KEY, version INTEGER NOT NULL, card TEXT NOT NULL) WITHOUT ROWID`,
	// From which entry on a premise held, and in which task.
	`CREATE TABLE premises(key TEXT NOT NULL, since INTEGER NOT NULL, premise TEXT NOT NULL, task TEXT NOT NULL, PRIMARY KEY(key, since)) WITHOUT ROWID`,
	// What was said of single entries.
	`CREATE TABLE marks(key TEXT NOT NULL, id TEXT NOT NULL, pinned INTEGER NOT NULL DEFAULT 0, superseded TEXT NOT NULL DEFAULT '',
		reason TEXT NOT NULL DEFAULT '', PRIMARY KEY(key, id)) WITHOUT ROWID`,
	`CREATE INDEX marks_pinned ON marks(key) WHERE pinned > 0`,
}}

// Working returns what the conversation works on, as its agent or a person keeps it; the zero Task when
// neither does. What is derived from the messages is not among it: it may be wrong, and ranking by it
// would make recall depend on a guess.
func (s *Room) Working(ctx context.Context) (recall.Task, error) {
	c, _, err := s.card(ctx)
	return c.Task(), err
}

// card returns the card that is kept and its version; the zero Card and 0 when there is none.
func (s *Room) card(ctx context.Context) (Card, int64, error) {
	rows, err := s.Made.Query(ctx, tables, `SELECT version, card FROM tasks WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return Card{}, 0, fmt.Errorf("read the task: %w", err)
	}
	if len(rows) == 0 {
		return Card{}, 0, nil
	}
	var c Card
	if err := json.Unmarshal(rows[0].Bytes(1), &c); err != nil {
		return Card{}, 0, fmt.Errorf("read the task: %w", err)
	}
	return c, rows[0].Int(0), nil
}

// pinImportance is what an entry counts that somebody pinned.
const pinImportance = 10

// maxPremises bounds the changes of a premise that are looked at: what was logged before the oldest of
// these has no known premise.
const maxPremises = 1000

// Marks returns what is known of some entries; those of which nothing is are absent.
func (s *Room) Marks(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]room.Mark, error) {
	there, err := s.Made.Has(ctx, tables)
	if !there || err != nil || len(ids) == 0 {
		return nil, err
	}
	out := map[tidemark.EntryID]room.Mark{}
	if err := s.premisesOf(ctx, ids, out); err != nil {
		return nil, err
	}
	for rest := ids; len(rest) > 0; {
		n := min(len(rest), tidemark.MaxParams-1)
		args := []any{string(s.Key)}
		for _, id := range rest[:n] {
			args = append(args, string(id))
		}
		rows, err := s.DB.Query(ctx, `SELECT id, pinned, superseded FROM marks WHERE key = ? AND id IN (?`+strings.Repeat(",?", n-1)+`) LIMIT 100`, args...)
		if err != nil {
			return nil, fmt.Errorf("read marks: %w", err)
		}
		for _, r := range rows {
			m := out[tidemark.EntryID(r.Text(0))]
			m.Pinned, m.SupersededBy = r.Int(1) > 0, tidemark.EntryID(r.Text(2))
			if m.Pinned {
				m.Importance = pinImportance
			}
			out[tidemark.EntryID(r.Text(0))] = m
		}
		rest = rest[n:]
	}
	return out, nil
}

// premisesOf fills in which premise held when entries were logged. Premises are stored by the range of
// entries that they held for, so an entry needs no row of its own.
func (s *Room) premisesOf(ctx context.Context, ids []tidemark.EntryID, out map[tidemark.EntryID]room.Mark) error {
	rows, err := s.DB.Query(ctx, `SELECT since, premise, task FROM premises WHERE key = ? ORDER BY since DESC LIMIT ?`, string(s.Key), maxPremises)
	if err != nil {
		return fmt.Errorf("read premises: %w", err)
	}
	if len(rows) == 0 {
		return nil
	}
	seqs, err := s.Log.Seqs(ctx, ids)
	if err != nil {
		return err
	}
	for id, seq := range seqs {
		i, _ := slices.BinarySearchFunc(rows, seq, func(r tidemark.Row, seq int64) int { return int(seq - r.Int(0)) })
		if i < len(rows) {
			out[id] = room.Mark{Premise: rows[i].Text(1), Task: rows[i].Text(2)}
		}
	}
	return nil
}

// maxPins bounds the entries that are pinned at a time: as many as can be held.
const maxPins = compaction.MaxPinned

// Pinned returns the entries of a log, and of what it continues, that stay in view.
func (s *Room) Pinned(ctx context.Context, log string) (map[tidemark.EntryID]bool, error) {
	rows, err := s.Made.Query(ctx, tables, `SELECT m.id, e.log FROM marks m JOIN entries e ON e.id = m.id WHERE m.key = ? AND m.pinned > 0 LIMIT ?`, string(s.Key), maxPins)
	if err != nil {
		return nil, fmt.Errorf("read pins: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	own, err := s.Segments(ctx, log)
	if err != nil {
		return nil, err
	}
	out := map[tidemark.EntryID]bool{}
	for _, r := range rows {
		if own[r.Text(1)] {
			out[tidemark.EntryID(r.Text(0))] = true
		}
	}
	return out, nil
}

// loosePins returns a note for each entry that loses its hold by a change, since it pins more than there may be.
func (s *Room) loosePins(ctx context.Context, ch Change) ([]string, error) {
	if len(ch.Pin) == 0 {
		return nil, nil
	}
	rows, err := s.Made.Query(ctx, tables, `SELECT id FROM marks WHERE key = ? AND pinned > 0 ORDER BY pinned DESC, id DESC LIMIT ?`, string(s.Key), maxPins)
	if err != nil {
		return nil, fmt.Errorf("read pins: %w", err)
	}
	stay := maxPins
	fresh := map[tidemark.EntryID]bool{}
	for _, id := range ch.Pin {
		if !fresh[id] {
			fresh[id] = true
			stay--
		}
	}
	var notes []string
	for _, r := range rows { // the newest first, as markStmts keeps them
		id := tidemark.EntryID(r.Text(0))
		if fresh[id] || slices.Contains(ch.Unpin, id) {
			continue
		}
		if stay--; stay < 0 {
			notes = append(notes, fmt.Sprintf("%.40s is not pinned any more: at most %d messages are at a time, and it was pinned first", id, maxPins))
		}
	}
	return notes, nil
}

// PinStmts returns what pins entries on behalf of the model, as its tool does.
func (s *Room) PinStmts(ctx context.Context, log string, ids []tidemark.EntryID) ([]tidemark.Stmt, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if err := s.Made.Open(ctx, tables); err != nil {
		return nil, err
	}
	_, version, err := s.card(ctx)
	if err != nil {
		return nil, err
	}
	ch := Change{Pin: ids, By: tidemark.FromModel}
	e := tidemark.Event{Type: taskEvent, Text: ch.line(), Data: []byte(room.JSON(ch))}
	now := s.Runtime.Now()
	stmts, err := s.Log.AppendStmts(log, tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindEvent, At: now,
		Origin: tidemark.Origin{From: tidemark.FromSystem}, Payload: []byte(room.JSON(e))})
	return append(stmts, s.markStmts(ch, version+1)...), err
}

// Push returns the card that is kept.
func (s *Room) Push(ctx context.Context, rest, all tidemark.Tokens) (string, error) {
	c, version, err := s.card(ctx)
	if err != nil || version == 0 {
		return "", err
	}
	const title = "[The task card, as task_state keeps it.]\n"
	heading := tidemark.EstimateText(title)
	text, _ := c.text(rest-heading, all-heading)
	if text == "" {
		return "", nil
	}
	return title + text, nil
}
