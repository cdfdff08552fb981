package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
)

// taskTables hold what the task events of a conversation come to, so that no turn reads them all. They are
// made when the first is kept: a conversation without a task has none of them.
var taskTables = [][]string{{
	// The card now; version grows with each event, and is what a writer compares.
	`CREATE TABLE tasks(key TEXT PRIMARY KEY, version INTEGER NOT NULL, card TEXT NOT NULL) WITHOUT ROWID`,
	// From which entry on a premise held, and in which task.
	`CREATE TABLE premises(key TEXT NOT NULL, since INTEGER NOT NULL, premise TEXT NOT NULL, task TEXT NOT NULL, PRIMARY KEY(key, since)) WITHOUT ROWID`,
	// What was said of single entries.
	`CREATE TABLE marks(key TEXT NOT NULL, id TEXT NOT NULL, pinned INTEGER NOT NULL DEFAULT 0, superseded TEXT NOT NULL DEFAULT '',
		reason TEXT NOT NULL DEFAULT '', PRIMARY KEY(key, id)) WITHOUT ROWID`,
	`CREATE INDEX marks_pinned ON marks(key) WHERE pinned > 0`,
}}

// taskSpace is the name of the tables' version.
const taskSpace = "session_task"

// What is known of the task tables in this life.
const (
	tasksUnknown int32 = iota
	tasksAbsent
	tasksThere
)

// findTasks reports whether the task tables are there. Only this session writes its rows, so it is asked
// once.
func (s *Session) findTasks(ctx context.Context) (bool, error) {
	switch s.tasks.Load() {
	case tasksThere:
		return true, nil
	case tasksAbsent:
		return false, nil
	}
	there, err := s.has(ctx, taskSpace)
	if err != nil {
		return false, err
	}
	if !there {
		s.tasks.CompareAndSwap(tasksUnknown, tasksAbsent)
		return false, nil
	}
	return true, s.openTasks(ctx)
}

// openTasks makes the task tables, if they are not there.
func (s *Session) openTasks(ctx context.Context) error {
	if s.tasks.Load() == tasksThere {
		return nil
	}
	if err := host.Migrate(ctx, s.DB, taskSpace, taskTables); err != nil {
		return err
	}
	s.tasks.Store(tasksThere)
	return nil
}

// task returns what the conversation works on, as its agent or a person keeps it; the zero Task when
// neither does. What is derived from the messages is not among it: it may be wrong, and ranking by it
// would make recall depend on a guess.
func (s *Session) task(ctx context.Context) (recall.Task, error) {
	c, _, err := s.card(ctx)
	return c.Task(), err
}

// card returns the card that is kept and its version; the zero Card and 0 when there is none.
func (s *Session) card(ctx context.Context) (Card, int64, error) {
	there, err := s.findTasks(ctx)
	if !there || err != nil {
		return Card{}, 0, err
	}
	rows, err := s.DB.Query(ctx, `SELECT version, card FROM tasks WHERE key = ? LIMIT 1`, string(s.Key))
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

// Mark is what is known of an entry beside what it holds.
type Mark struct {
	Premise      string           // that held when it was logged; empty when none was known
	Task         string           // that was worked on then
	SupersededBy tidemark.EntryID // the entry that holds in its place
	Pinned       bool
	Importance   int // 1 to 10; 0 is that of its kind
}

// pinImportance is what an entry counts that somebody pinned.
const pinImportance = 10

// maxPremises bounds the changes of a premise that are looked at: what was logged before the oldest of
// these has no known premise.
const maxPremises = 1000

// marksOf returns what is known of some entries; those of which nothing is are absent.
func (s *Session) marksOf(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]Mark, error) {
	there, err := s.findTasks(ctx)
	if !there || err != nil || len(ids) == 0 {
		return nil, err
	}
	out := map[tidemark.EntryID]Mark{}
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
func (s *Session) premisesOf(ctx context.Context, ids []tidemark.EntryID, out map[tidemark.EntryID]Mark) error {
	rows, err := s.DB.Query(ctx, `SELECT since, premise, task FROM premises WHERE key = ? ORDER BY since DESC LIMIT ?`, string(s.Key), maxPremises)
	if err != nil {
		return fmt.Errorf("read premises: %w", err)
	}
	if len(rows) == 0 {
		return nil
	}
	seqs, err := s.log.Seqs(ctx, ids)
	if err != nil {
		return err
	}
	for id, seq := range seqs {
		i, _ := slices.BinarySearchFunc(rows, seq, func(r tidemark.Row, seq int64) int { return int(seq - r.Int(0)) })
		if i < len(rows) && (rows[i].Text(1) != "" || rows[i].Text(2) != "") {
			out[id] = Mark{Premise: rows[i].Text(1), Task: rows[i].Text(2)}
		}
	}
	return nil
}

// maxPins bounds the entries that are pinned at a time: as many as can be held.
const maxPins = compaction.MaxPinned

// pinned returns the entries of a log, and of what it continues, that stay in view.
func (s *Session) pinned(ctx context.Context, log string) (map[tidemark.EntryID]bool, error) {
	there, err := s.findTasks(ctx)
	if !there || err != nil {
		return nil, err
	}
	rows, err := s.DB.Query(ctx, `SELECT m.id, e.log FROM marks m JOIN entries e ON e.id = m.id WHERE m.key = ? AND m.pinned > 0 LIMIT ?`, string(s.Key), maxPins)
	if err != nil {
		return nil, fmt.Errorf("read pins: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	own, err := s.segments(ctx, log)
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
func (s *Session) loosePins(ctx context.Context, ch TaskChange) ([]string, error) {
	there, err := s.findTasks(ctx)
	if !there || err != nil || len(ch.Pin) == 0 {
		return nil, err
	}
	rows, err := s.DB.Query(ctx, `SELECT id FROM marks WHERE key = ? AND pinned > 0 ORDER BY pinned DESC, id DESC LIMIT ?`, string(s.Key), maxPins)
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

// segments returns a log and those that it continues as a branch.
func (s *Session) segments(ctx context.Context, log string) (map[string]bool, error) {
	out := map[string]bool{}
	for log != "" && !out[log] {
		out[log] = true
		i, err := s.log.Info(ctx, log)
		if errors.Is(err, tidemark.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		log = i.BaseLog
	}
	return out, nil
}
