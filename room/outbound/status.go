package outbound

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxRaces bounds the tries to write what became of a message: the sender has two writes a message, and the
// person may write meanwhile.
const maxRaces = 5

// Delivered takes what a platform says became of a message. Statuses may come in any order, twice, and
// for what is not known here, which is no error.
func (s *Room) Delivered(ctx context.Context, d tidemark.Delivery) error {
	if s.courier == nil {
		return nil
	}
	if err := s.Made.Open(ctx, tables); err != nil {
		return fmt.Errorf("status of %s: %w", d.ID, err)
	}
	for range maxRaces {
		m, err := s.find(ctx, d)
		if err != nil || m == nil {
			return err
		}
		if m.State != Pending && !ofEarlierTry(*m, d) && older(*m, d) {
			s.Logger.Warn("a status is older than the message that it names", "session", s.Key, "ref", m.Ref, "status", d.Status)
		}
		c := afterStatus(*m, d, s.Runtime.Now())
		if c.set == "" {
			return nil
		}
		stmt := tidemark.Stmt{SQL: `UPDATE outbound SET ` + c.set + ` WHERE key = ? AND n = ? AND state = ? AND id = ? AND status = ? AND tries = ?`,
			Args: append(c.args, string(s.Key), m.n, m.State, m.ID, m.Status, m.Tries), Want: 1}
		if d.Error != nil && d.Error.Class == tidemark.SendClosed && !d.At.IsZero() {
			if stmt, err = s.unclosed(ctx, *m, later(m.At.Add(time.Millisecond), d.At.Add(-clockApart)), stmt); err != nil {
				return fmt.Errorf("status of %s: %w", m.Ref, err)
			}
		}
		err = s.settleWith(ctx, stmt, c.event)
		if errors.Is(err, tidemark.ErrConflict) {
			continue // it has changed meanwhile
		}
		if err != nil {
			return fmt.Errorf("status of %s: %w", m.Ref, err)
		}
		s.Dispatch() // what waited for it
		return nil
	}
	return fmt.Errorf("status of %s: %w", d.Ref, tidemark.ErrBusy)
}

// find returns the row that a status is of, nil for none.
func (s *Room) find(ctx context.Context, d tidemark.Delivery) (*Message, error) {
	where, arg := `key = ? AND id = ? AND id <> ''`, any(d.ID)
	if rest, ok := strings.CutPrefix(d.Ref, string(s.Key)+"/"); ok {
		if n, err := strconv.ParseInt(rest, 10, 53); err == nil {
			where, arg = `key = ? AND n = ?`, n
		}
	}
	rows, err := s.DB.Query(ctx, `SELECT `+columns+` FROM outbound WHERE `+where+` LIMIT 1`, string(s.Key), arg)
	if err != nil {
		return nil, fmt.Errorf("find outbound: %w", err)
	}
	if len(rows) == 0 {
		s.Logger.Debug("status of an unknown message", "session", s.Key, "status", d.Status)
		return nil, nil
	}
	m, err := s.scan(rows[0])
	return &m, err
}

// maxUnclosed bounds the sends of one message whose window opens and closes: clocks differ.
const maxUnclosed = 3

// unclosed changes how a row becomes closed: it does not where the person has written since, for their window
// is open again and they need not write twice; and where they write while this is decided, it is a conflict.
// What the message answers does not count, though it may be of the same second: a platform tells no less.
func (s *Room) unclosed(ctx context.Context, m Message, since time.Time, stmt tidemark.Stmt) (tidemark.Stmt, error) {
	const recent = 50
	if m.Tries >= maxUnclosed {
		return stmt, nil
	}
	rows, err := s.DB.Query(ctx, `SELECT at, origin, n FROM inputs WHERE key = ? ORDER BY n DESC LIMIT ?`, string(s.Key), recent)
	if err != nil {
		return stmt, fmt.Errorf("find what they wrote: %w", err)
	}
	newest := int64(0)
	for _, r := range rows {
		newest = max(newest, r.Int(2))
		var from tidemark.Origin
		if r.Int(0) >= since.UnixMilli() && json.Unmarshal(r.Bytes(1), &from) == nil && from.To != nil && (from.Reader() == m.peer || from.To.Reader() == m.peer) {
			stmt.SQL = strings.Replace(stmt.SQL, `hold = 'closed'`, `hold = ''`, 1)
			return stmt, nil
		}
	}
	stmt.SQL += ` AND NOT EXISTS (SELECT 1 FROM inputs WHERE key = ? AND n > ?)`
	stmt.Args = append(stmt.Args, string(s.Key), newest)
	return stmt, nil
}
