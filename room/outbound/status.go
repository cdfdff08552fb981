package outbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		o, err := s.find(ctx, d)
		if err != nil || o == nil {
			return err
		}
		set, args, event := s.afterStatus(*o, d)
		if set == "" {
			return nil
		}
		change := tidemark.Stmt{SQL: `UPDATE outbound SET ` + set + ` WHERE key = ? AND n = ? AND state = ? AND id = ? AND status = ? AND tries = ?`,
			Args: append(args, string(s.Key), o.n, o.State, o.ID, o.Status, o.Tries), Want: 1}
		if d.Error != nil && d.Error.Class == tidemark.SendClosed && !d.At.IsZero() {
			if change, err = s.unclosed(ctx, *o, later(o.At.Add(time.Millisecond), d.At.Add(-clockApart)), change); err != nil {
				return fmt.Errorf("status of %s: %w", o.Ref, err)
			}
		}
		err = s.settleWith(ctx, change, event)
		if errors.Is(err, tidemark.ErrConflict) {
			continue // it has changed meanwhile
		}
		if err != nil {
			return fmt.Errorf("status of %s: %w", o.Ref, err)
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
	o, err := s.scan(rows[0])
	return &o, err
}

// rank orders the statuses of a message that comes through.
var rank = []string{"", tidemark.StatusSent, tidemark.StatusDelivered, tidemark.StatusRead}

// afterStatus says what a row becomes by a status; nothing to set means that it tells nothing new.
func (s *Room) afterStatus(o Message, d tidemark.Delivery) (set string, args []any, event string) {
	other := d.ID != "" && (o.ID != "" && o.ID != d.ID || slices.Contains(strings.Fields(o.past), d.ID))
	if other || o.State == Pending { // of an earlier try, which is known to have come to nothing
		return "", nil, ""
	}
	if older(o, d) {
		s.Logger.Warn("a status is older than the message that it names", "session", s.Key, "ref", o.Ref, "status", d.Status)
		return "", nil, ""
	}
	was, is := slices.Index(rank, o.Status), slices.Index(rank, d.Status)
	if d.Status != tidemark.StatusFailed {
		// That it was sent may come behind that it failed; that it was delivered cannot.
		if is < 1 || o.State == Failed && is < 2 || o.State == Sent && is <= was {
			return "", nil, ""
		}
		set = `state = 'sent', open = 0, hold = '', next = 0, error = '', status = ?, id = CASE WHEN ? = '' THEN id ELSE ? END`
		if is >= 2 { // who quotes it needs no more of it
			set += `, text = substr(text, 1, ` + strconv.Itoa(maxQuoted*2) + `)`
		}
		return set, []any{d.Status, d.ID, d.ID}, ""
	}
	if o.State == Failed || was >= 2 {
		return "", nil, ""
	}
	e := d.Error
	if e == nil {
		e = &tidemark.SendError{Class: tidemark.SendFailed, Text: "the platform gave no reason"}
	}
	if e.Class == tidemark.SendUnknown { // it is known to have failed
		e = &tidemark.SendError{Class: tidemark.SendFailed, Code: e.Code, Text: e.Text}
	}
	set, args, event = s.afterFailure(o, e)
	return set + `, owner = '', status = '', id = '', past = trim(past || ' ' || ?)`, append(args, d.ID), event
}

// clockApart is how far our clock and a platform's may be apart.
const clockApart = 10 * time.Minute

// older reports whether a status is of a message from before the row, which has only the ref in common with
// it: rows count from 1 again where a backup was restored, or in a second installation on the account. A
// message whose id is known has no other.
func older(o Message, d tidemark.Delivery) bool {
	return !d.At.IsZero() && d.At.Before(o.At.Add(-clockApart)) && (o.ID == "" || o.ID != d.ID)
}

// maxUnclosed bounds the sends of one message whose window opens and closes: clocks differ.
const maxUnclosed = 3

// unclosed changes how a row becomes closed: it does not where the person has written since, for their window
// is open again and they need not write twice; and where they write while this is decided, it is a conflict.
// What the message answers does not count, though it may be of the same second: a platform tells no less.
func (s *Room) unclosed(ctx context.Context, o Message, since time.Time, change tidemark.Stmt) (tidemark.Stmt, error) {
	const recent = 50
	if o.Tries >= maxUnclosed {
		return change, nil
	}
	rows, err := s.DB.Query(ctx, `SELECT at, origin, n FROM inputs WHERE key = ? ORDER BY n DESC LIMIT ?`, string(s.Key), recent)
	if err != nil {
		return change, fmt.Errorf("find what they wrote: %w", err)
	}
	newest := int64(0)
	for _, r := range rows {
		newest = max(newest, r.Int(2))
		var from tidemark.Origin
		if r.Int(0) >= since.UnixMilli() && json.Unmarshal(r.Bytes(1), &from) == nil && from.To != nil && (from.Reader() == o.peer || from.To.Reader() == o.peer) {
			change.SQL = strings.Replace(change.SQL, `hold = 'closed'`, `hold = ''`, 1)
			return change, nil
		}
	}
	change.SQL += ` AND NOT EXISTS (SELECT 1 FROM inputs WHERE key = ? AND n > ?)`
	change.Args = append(change.Args, string(s.Key), newest)
	return change, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
