package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// What a recall does before it searches is bounded: to make the index of 100,000 messages that were logged before
// there was one takes 8 s, and a long text as much. An alarm goes on, and until then the answer says how many are
// missing.
const (
	catchUpTime = 2 * time.Second
	catchUpRest = 8 << 20 // bytes of long texts
)

// dueIndex is due while the index of what was logged before is in work.
const dueIndex = "index"

// ready brings the index as far as a request may wait for it, or all of it, and returns how many messages are not in it,
// or not with all of their text.
func (s *Session) ready(ctx context.Context, all bool) (missing int, err error) {
	if all {
		return 0, s.allReady(ctx)
	}
	if missing, err = s.catchUp(ctx); errors.Is(err, tidemark.ErrUnavailable) && ctx.Err() == nil {
		s.Logger.Warn("messages are indexed later", "session", s.Key, "err", err) // the disk is full: the rest is found
		var first int64
		if first, err = s.firstIndexed(ctx); err == nil {
			missing, err = s.before(ctx, first)
		}
	}
	if err != nil {
		return 0, err
	}
	most := catchUpRest
	if missing > 0 { // it waited long enough
		most = 0
	}
	if err := s.readRest(ctx, most); err != nil {
		if ctx.Err() != nil || errors.Is(err, tidemark.ErrDead) {
			return 0, err
		}
		s.Logger.Warn("long texts are read later", "session", s.Key, "err", err) // the bucket is down: the rest is found
	}
	rows, err := s.made.Query(ctx, pieceTables, `SELECT count(*) FROM unread WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	if len(rows) > 0 && rows[0].Int(0) > 0 {
		missing += int(rows[0].Int(0))
		s.setAlarm(ctx)
	}
	return missing, nil
}

// allReady is ready for one whose answer cannot say what is missing.
func (s *Session) allReady(ctx context.Context) error {
	for {
		if missing, err := s.catchUp(ctx); err != nil {
			return err
		} else if missing == 0 {
			return s.readRest(ctx, 1<<53)
		}
	}
}

// catchUp makes the index of a conversation that was logged before there was one, once, and for a while at most.
// It returns how many messages are left to an alarm.
func (s *Session) catchUp(ctx context.Context) (left int, err error) {
	if err := s.settleSkips(ctx); err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	if s.indexed.Load() {
		return 0, nil
	}
	first, err := s.firstIndexed(ctx)
	if err != nil {
		return 0, err
	}
	until, err := s.decided(ctx) // the turn in work comes into the index with its end
	if err != nil {
		return 0, err
	}
	first = min(first, until+1)
	if first <= 1 { // nothing is before it, and Walk takes 0 for the newest
		s.indexed.Store(true)
		return 0, nil
	}
	logs, err := s.indexable(ctx)
	if err != nil {
		return 0, err
	}
	begun := s.Runtime.Now()
	late := func() bool {
		took := s.Runtime.Now().Sub(begun)
		return took < 0 || took > catchUpTime // the clock may be set back
	}
	for _, log := range logs { // the newest first, so that what is left is behind all that is done
		if at, err := s.indexLog(ctx, log, first-1, late); err != nil {
			return 0, fmt.Errorf("index %s: %w", log, err)
		} else if at > 0 {
			return s.indexLater(ctx, at)
		}
	}
	s.indexed.Store(true)
	return 0, nil
}

// indexable are the logs whose messages the index has for this session, newest first: its own, and what an archive
// brought into it.
func (s *Session) indexable(ctx context.Context) ([]string, error) {
	logs, err := s.Logs(ctx)
	if err != nil {
		return nil, err
	}
	l, err := s.reach(ctx)
	if err != nil || l.Single {
		return logs, err
	}
	var more []string
	for log := range l.Own {
		if !slices.Contains(logs, log) {
			more = append(more, log)
		}
	}
	slices.Sort(more) // by time, as their ids begin
	slices.Reverse(more)
	return append(logs, more...), nil
}

// firstIndexed is the position of the oldest message that was read for the index: all behind it were. Those
// without words are not in it, so how far it came is written down, too.
func (s *Session) firstIndexed(ctx context.Context) (int64, error) {
	rows, err := s.DB.Query(ctx, `SELECT coalesce((SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid LIMIT 1), ?),
		coalesce((SELECT CAST(data AS INTEGER) FROM due WHERE key = ? AND kind = ?), ?) LIMIT 1`,
		`home : "`+s.home()+`"`, int64(1)<<53, string(s.Key), dueIndex, int64(1)<<53)
	if err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	return min(rows[0].Int(0), rows[0].Int(1)), nil
}

// indexLog puts the messages of a log up to a position into the index, from the newest to the oldest, until it is
// late; at least one, so that it comes to an end. at is the oldest one that was read when more are left, or 0.
func (s *Session) indexLog(ctx context.Context, log string, last int64, late func() bool) (at int64, err error) {
	err = s.index(ctx, func(yield func(tidemark.Entry, error) bool) {
		oldest := int64(0)
		for e, err := range s.log.Walk(ctx, log, last) {
			if err == nil && e.Log != log { // of the log that it is a branch of
				return
			}
			if oldest > 0 && late() {
				at = oldest
				return
			}
			if err == nil && e.Kind != tidemark.KindMessage {
				continue
			}
			if !yield(e, err) {
				return
			}
			oldest = e.Seq
		}
	})
	return at, err
}

// indexLater leaves the messages before a position to an alarm and returns how many there are.
func (s *Session) indexLater(ctx context.Context, first int64) (left int, err error) {
	if left, err = s.before(ctx, first); err != nil {
		return 0, err
	}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{s.dueStmt(dueIndex, s.Runtime.Now(), strconv.FormatInt(first, 10))}); err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	s.setAlarm(ctx)
	return left, nil
}

// before counts the messages before a position, at least one.
func (s *Session) before(ctx context.Context, seq int64) (int, error) {
	rows, err := s.DB.Query(ctx, `SELECT count(*) FROM entries WHERE kind = 'message' AND seq < ? AND log IN (SELECT id FROM logs WHERE key = ?) LIMIT 1`, seq, string(s.Key))
	if err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	return max(int(rows[0].Int(0)), 1), nil
}

// indexQuietly goes on with the index, for an alarm.
func (s *Session) indexQuietly(ctx context.Context) error {
	if s.activeRun() != "" {
		return s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE due SET at = ? WHERE key = ? AND kind = ?`,
			Args: []any{s.Runtime.Now().Add(wordsAfter).UnixMilli(), string(s.Key), dueIndex}}})
	}
	if left, err := s.catchUp(ctx); err != nil || left > 0 {
		return err
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{s.undueStmt(dueIndex)})
}
