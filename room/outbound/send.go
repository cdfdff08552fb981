package outbound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// Bounds of sending, beside the pauses between tries.
const (
	sendTimeout = time.Minute      // of one try; a courier has shorter ones of its own
	napMost     = 20 * time.Second // a shorter pause is slept, a longer one is for the alarm
	retryAfter  = time.Minute      // when the database failed
	outPage     = 500              // open rows that one look takes in
)

// Dispatch implements room.Teller: it sends what is pending, if nobody in this life does.
func (s *Room) Dispatch() {
	if s.courier == nil || !s.Made.Here(tables) || s.Life.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sending {
		s.sendMore = true
		return
	}
	s.sending, s.sendMore = true, false
	s.Runtime.Go(s.sendAll)
}

// sendAll sends until nothing may be sent now: one message after the other, so that each person
// reads them in order. The rest is due later.
func (s *Room) sendAll() {
	ended := false
	defer func() { // also when a courier panics
		if !ended {
			s.endSending(true)
		}
	}()
	ctx := s.Life
	for !ended && ctx.Err() == nil {
		row, next, err := s.next(ctx)
		if err == nil && row != nil {
			err = s.sendRow(ctx, *row)
			if errors.Is(err, tidemark.ErrConflict) { // a status, or a later life, was there before us
				if s.DB.Tx(ctx, []tidemark.Stmt{s.Held()}) == nil { // it was a status
					continue
				}
				next = time.Time{}
			} else if err == nil {
				continue
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, tidemark.ErrConflict) {
			s.Logger.Error("send", "session", s.Key, "err", err)
			next = s.Runtime.Now().Add(retryAfter)
		}
		s.sendLater(ctx, next)
		ended = s.endSending(err != nil)
	}
}

// endSending lets go of the sender's part, unless there is more and it did not fail.
func (s *Room) endSending(failed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sendMore && !failed {
		s.sendMore = false
		return false
	}
	s.sending, s.sendMore = false, false
	return true
}

// Working implements room.Worker.
func (s *Room) Working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sending
}

// sendLater makes the sender due again at a time; the zero time is never.
func (s *Room) sendLater(ctx context.Context, next time.Time) {
	if next.IsZero() || ctx.Err() != nil {
		return
	}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{s.Due(room.DueOutbound, next, "")}); err != nil {
		s.Warn("put off sending", err)
	}
	s.Alarm(ctx)
	pause := next.Sub(s.Runtime.Now())
	if pause > napMost || s.napping.Swap(true) {
		return
	}
	s.Runtime.Go(func() {
		err := s.Runtime.Sleep(ctx, max(pause, 0))
		s.napping.Store(false)
		if err == nil {
			s.Dispatch()
		}
	})
}

// Wakes implements room.Waker.
func (s *Room) Wakes() string { return room.DueOutbound }

// Wake is what an alarm does: it puts itself off, and sends.
func (s *Room) Wake(ctx context.Context) error {
	if s.courier == nil || !s.Made.Here(tables) {
		return s.sendUnset(ctx)
	}
	later := s.Due(room.DueOutbound, s.Runtime.Now().Add(retryAfter), "")
	if err := s.DB.Tx(ctx, []tidemark.Stmt{later, s.restStmt()}); err != nil {
		return err
	}
	s.Dispatch()
	return nil
}

// sendUnset keeps the alarm in a life that cannot send. A channel may be back the next minute, or never, so
// what has waited for long is looked at less often.
func (s *Room) sendUnset(ctx context.Context) error {
	rows, err := s.DB.Query(ctx, `SELECT min(at) FROM outbound WHERE key = ? AND open = 1 AND hold <> 'closed' LIMIT 1`, string(s.Key))
	if err != nil {
		return fmt.Errorf("read outbound: %w", err)
	}
	now, waited := s.Runtime.Now(), time.Duration(0)
	if !rows[0].Null(0) {
		waited = now.Sub(time.UnixMilli(rows[0].Int(0)))
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{s.Due(room.DueOutbound, now.Add(min(max(waited, haltPause), mostPause)), room.DueUnset), s.restStmt()})
}

// restStmt ends the alarm when it has nothing to wait for. A row that is closed waits for the person.
func (s *Room) restStmt() tidemark.Stmt {
	return tidemark.Stmt{SQL: `DELETE FROM due WHERE key = ? AND kind = ? AND NOT EXISTS (SELECT 1 FROM outbound WHERE key = ? AND open = 1 AND hold <> 'closed')`,
		Args: []any{string(s.Key), room.DueOutbound, string(s.Key)}}
}

// next returns the message that something is to be done with now, or when to look again; the zero time is never.
func (s *Room) next(ctx context.Context) (m *Message, again time.Time, err error) {
	rows, err := s.DB.Query(ctx, `SELECT n, state, hold, peer, next, owner, address FROM outbound WHERE key = ? AND open = 1 ORDER BY n LIMIT ?`, string(s.Key), outPage)
	if err != nil {
		return nil, again, fmt.Errorf("read outbound: %w", err)
	}
	list := make([]open, len(rows))
	for i, r := range rows {
		list[i] = open{n: r.Int(0), state: r.Text(1), hold: r.Text(2), peer: r.Text(3), next: time.UnixMilli(r.Int(4)), owner: r.Text(5), address: r.Text(6)}
	}
	n, again := first(list, s.Runtime.Now(), s.Bound())
	if n == 0 {
		return nil, again, nil
	}
	full, err := s.DB.Query(ctx, `SELECT `+columns+` FROM outbound WHERE key = ? AND n = ? LIMIT 1`, string(s.Key), n)
	if err != nil || len(full) == 0 {
		return nil, again, fmt.Errorf("read outbound %d: %w", n, errors.Join(err, tidemark.ErrUnavailable))
	}
	found, err := s.scan(full[0])
	return &found, again, err
}

// sendRow does what is to be done with a row.
func (s *Room) sendRow(ctx context.Context, m Message) error {
	switch m.State {
	case Sending: // nobody in this life is: it was cut off, or its end could not be written
		cut := tidemark.Stmt{SQL: `UPDATE outbound SET state = 'unknown', next = ?, error = ? WHERE key = ? AND n = ? AND state = 'sending' AND owner < ?`,
			Args: []any{s.Runtime.Now().Add(unknownWait).UnixMilli(), "cut off while it was being sent", string(s.Key), m.n, s.Bound()}, Want: 1}
		return s.DB.Tx(ctx, []tidemark.Stmt{cut, s.Held()})
	case Unknown:
		return s.settleWith(ctx, tidemark.Stmt{SQL: `UPDATE outbound SET open = 0 WHERE key = ? AND n = ? AND state = 'unknown' AND open = 1`, Args: []any{string(s.Key), m.n}, Want: 1},
			fmt.Sprintf("A message to %s may or may not have been sent (%s). It is not sent again.", place(m.To), m.Error))
	}
	owner := s.Owner()
	now := s.Runtime.Now()
	begin := tidemark.Stmt{SQL: `UPDATE outbound SET state = 'sending', owner = ?, tries = tries + 1 WHERE key = ? AND n = ? AND state = 'pending' AND (next <= ? OR next > ?) AND hold <> 'closed' AND address = ?`,
		Args: []any{owner, string(s.Key), m.n, now.UnixMilli(), now.Add(room.FarPause).UnixMilli(), m.address}, Want: 1}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{begin, s.Held()}); err != nil {
		return err
	}
	m.Tries++
	limited, stop := s.Runtime.WithTimeout(ctx, sendTimeout)
	id, err := s.courier.Send(limited, tidemark.Outgoing{To: m.To, Ref: m.Ref, Text: m.Text, Quote: m.Quote})
	stop()
	// What became of it is written also when the host is about to drop the object.
	return s.settle(context.WithoutCancel(ctx), m, owner, now, id, err)
}

// settle writes what became of a try. owner is of this try alone, so it is right also when a later life
// has called the row unknown meanwhile.
func (s *Room) settle(ctx context.Context, m Message, owner string, begun time.Time, id string, err error) error {
	mine := func(set string, args ...any) tidemark.Stmt {
		return tidemark.Stmt{SQL: `UPDATE outbound SET ` + set + ` WHERE key = ? AND n = ? AND owner = ? AND state IN ('sending', 'unknown')`,
			Args: append(args, string(s.Key), m.n, owner), Want: 1}
	}
	if err == nil {
		return s.settleWith(ctx, mine(`state = 'sent', open = 0, hold = '', next = 0, error = '', id = ?`, id), "")
	}
	var se *tidemark.SendError
	if !errors.As(err, &se) {
		se = &tidemark.SendError{Class: tidemark.SendUnknown, Text: err.Error()}
	}
	c := afterFailure(m, se, s.Runtime.Now())
	stmt := mine(c.set, c.args...)
	if se.Class != tidemark.SendClosed {
		return s.settleWith(ctx, stmt, c.event)
	}
	for range maxRaces {
		atomic, err := s.unclosed(ctx, m, later(m.At.Add(time.Millisecond), begun), stmt)
		if err != nil {
			return err
		}
		if err = s.settleWith(ctx, atomic, c.event); !errors.Is(err, tidemark.ErrConflict) {
			return err
		}
	}
	return tidemark.ErrConflict
}

// settleWith writes what became of a row, with an event if there is something to read, and ends the
// alarm if nothing is left.
func (s *Room) settleWith(ctx context.Context, stmt tidemark.Stmt, text string) error {
	stmts := []tidemark.Stmt{stmt, s.restStmt()}
	event := tidemark.Event{Type: "delivery", Text: text}
	if text != "" {
		log, err := s.current(ctx)
		if err != nil {
			return err
		}
		stmts = append(stmts, s.Event(log, event))
	}
	if err := s.DB.Tx(ctx, stmts); err != nil {
		return err
	}
	if text != "" {
		s.Happened(s.active(), event)
	}
	return nil
}
