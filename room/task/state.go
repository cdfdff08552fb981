package task

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// maxKeptMarks bounds the marks of a snapshot: the pinned ones first, then the newest.
const maxKeptMarks = 2000

// State reads what is kept now of messages up to a place. Of one in the past that is what is pinned: the card, and what
// was superseded, are of what was said since.
func (s *Room) State(ctx context.Context, upTo int64, past bool) (room.State, error) {
	var k room.State
	rows, err := s.Made.Query(ctx, tables, `SELECT version, card FROM tasks WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return k, fmt.Errorf("read the task: %w", err)
	}
	if len(rows) > 0 && !past {
		k.Version, k.Card = rows[0].Int(0), rows[0].Bytes(1)
	}
	least := 0
	if past {
		least = 1
	}
	rows, err = s.Made.Query(ctx, tables, `SELECT m.id, m.pinned, m.superseded, m.reason FROM marks m JOIN entries e ON e.id = m.id WHERE m.key = ? AND e.seq <= ? AND m.pinned >= ? ORDER BY m.pinned DESC, m.id DESC LIMIT ?`,
		string(s.Key), upTo, least, maxKeptMarks)
	if err != nil {
		return k, fmt.Errorf("read marks: %w", err)
	}
	for _, r := range rows {
		m := room.StateMark{ID: r.Text(0), Pinned: r.Int(1), Superseded: r.Text(2), Reason: r.Text(3)}
		if past {
			m.Superseded, m.Reason = "", ""
		}
		k.Marks = append(k.Marks, m)
	}
	return k, nil
}

// Restore returns what gives a new session what a snapshot of another kept.
func (s *Room) Restore(ctx context.Context, to tidemark.Key, from string, upTo int64, of room.State) ([]tidemark.Stmt, error) {
	there, err := s.Made.Has(ctx, tables)
	if err != nil {
		return nil, err
	}
	if !there && len(of.Card) == 0 && len(of.Marks) == 0 {
		return nil, nil
	}
	if err := s.Made.Open(ctx, tables); err != nil {
		return nil, err
	}
	stmts := []tidemark.Stmt{{SQL: `INSERT INTO premises(key, since, premise, task) SELECT ?, since, premise, task FROM premises WHERE key = ? AND since <= ? ON CONFLICT(key, since) DO NOTHING`,
		Args: []any{string(to), from, upTo}}}
	if len(of.Card) > 0 {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO tasks(key, version, card) VALUES(?, ?, ?) ON CONFLICT(key) DO NOTHING`,
			Args: []any{string(to), of.Version, string(of.Card)}})
	}
	if len(of.Marks) > 0 {
		stmts = append(stmts, tidemark.Stmt{SQL: `INSERT INTO marks(key, id, pinned, superseded, reason) SELECT ?, json_extract(value, '$.id'), coalesce(json_extract(value, '$.pinned'), 0),
			coalesce(json_extract(value, '$.superseded'), ''), coalesce(json_extract(value, '$.reason'), '') FROM json_each(?) WHERE true ON CONFLICT(key, id) DO NOTHING`,
			Args: []any{string(to), room.JSON(of.Marks)}})
	}
	return stmts, nil
}
