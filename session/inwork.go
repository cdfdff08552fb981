package session

import (
	"context"
	"fmt"
)

// InWork returns the oldest message that has no answer yet: of the run in work, or the first that waits.
// A client that comes back follows it. ok is false when there is none.
func (s *Session) InWork(ctx context.Context) (r Receipt, ok bool, err error) {
	rows, err := s.DB.Query(ctx, `SELECT id, state FROM inputs WHERE key = ? AND kind = ? AND state IN ('taken', 'new') ORDER BY n LIMIT 1`, string(s.Key), InputMessage)
	if err != nil {
		return r, false, fmt.Errorf("find input in work: %w", err)
	}
	if len(rows) == 0 {
		return r, false, nil
	}
	r = Receipt{ID: rows[0].Text(0), State: rows[0].Text(1), Duplicate: true}
	r.Session, err = s.log.Ref(ctx, headRef(s.Key))
	return r, true, err
}

// Newest returns the id of the message that was said last, empty for none.
func (s *Session) Newest(ctx context.Context) (string, error) {
	rows, err := s.DB.Query(ctx, `SELECT id FROM inputs WHERE key = ? AND kind = ? ORDER BY n DESC LIMIT 1`, string(s.Key), InputMessage)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].Text(0), nil
}
