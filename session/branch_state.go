package session

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// kept is what a session keeps beside its log and changes: its card, and which messages are pinned or superseded. A
// snapshot has it as it was; what is derived from the messages is derived again.
type kept struct {
	Card    json.RawMessage `json:"card,omitempty"`
	Version int64           `json:"version,omitempty"`
	Marks   []keptMark      `json:"marks,omitempty"`
}

type keptMark struct {
	ID         string `json:"id"`
	Pinned     int64  `json:"pinned,omitempty"`
	Superseded string `json:"superseded,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// maxKeptMarks bounds the marks of a snapshot: the pinned ones first, then the newest.
const maxKeptMarks = 2000

// keptNow reads what is kept now of messages up to a place. Of one in the past that is what is pinned: the card, and what
// was superseded, are of what was said since.
func (s *Session) keptNow(ctx context.Context, at spot) (kept, error) {
	var k kept
	there, err := s.findTasks(ctx)
	if !there || err != nil {
		return k, err
	}
	rows, err := s.DB.Query(ctx, `SELECT version, card FROM tasks WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return k, fmt.Errorf("read the task: %w", err)
	}
	if len(rows) > 0 && !at.past {
		k.Version, k.Card = rows[0].Int(0), rows[0].Bytes(1)
	}
	least := 0
	if at.past {
		least = 1
	}
	rows, err = s.DB.Query(ctx, `SELECT m.id, m.pinned, m.superseded, m.reason FROM marks m JOIN entries e ON e.id = m.id WHERE m.key = ? AND e.seq <= ? AND m.pinned >= ? ORDER BY m.pinned DESC, m.id DESC LIMIT ?`,
		string(s.Key), at.seq, least, maxKeptMarks)
	if err != nil {
		return k, fmt.Errorf("read marks: %w", err)
	}
	for _, r := range rows {
		m := keptMark{r.Text(0), r.Int(1), r.Text(2), r.Text(3)}
		if at.past {
			m.Superseded, m.Reason = "", ""
		}
		k.Marks = append(k.Marks, m)
	}
	return k, nil
}

// pins are the entries that stay whole.
func (k kept) pins() map[tidemark.EntryID]bool {
	out := map[tidemark.EntryID]bool{}
	for _, m := range k.Marks {
		if m.Pinned > 0 {
			out[tidemark.EntryID(m.ID)] = true
		}
	}
	return out
}

// keptStmts give a new session what a snapshot of another kept.
func (s *Session) keptStmts(ctx context.Context, key tidemark.Key, of stored) ([]tidemark.Stmt, error) {
	there, err := s.findTasks(ctx)
	if err != nil {
		return nil, err
	}
	if !there && len(of.state.Card) == 0 && len(of.state.Marks) == 0 {
		return nil, nil
	}
	if err := s.openTasks(ctx); err != nil {
		return nil, err
	}
	stmts := []tidemark.Stmt{{SQL: `INSERT INTO premises(key, since, premise, task) SELECT ?, since, premise, task FROM premises WHERE key = ? AND since <= ? ON CONFLICT(key, since) DO NOTHING`,
		Args: []any{string(key), of.Session, of.seq}}}
	if len(of.state.Card) > 0 {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO tasks(key, version, card) VALUES(?, ?, ?) ON CONFLICT(key) DO NOTHING`,
			Args: []any{string(key), of.state.Version, string(of.state.Card)}})
	}
	if len(of.state.Marks) > 0 {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO marks(key, id, pinned, superseded, reason) SELECT ?, json_extract(value, '$.id'), coalesce(json_extract(value, '$.pinned'), 0),
			coalesce(json_extract(value, '$.superseded'), ''), coalesce(json_extract(value, '$.reason'), '') FROM json_each(?) WHERE true ON CONFLICT(key, id) DO NOTHING`,
			Args: []any{string(key), mustJSON(of.state.Marks)}})
	}
	return stmts, nil
}
