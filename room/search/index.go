package search

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Index is the part of the room that has the words of messages.
type Index struct {
	ports
	pieces  *Pieces
	skips   *Skips
	indexed atomic.Bool // all messages are in it
}

var (
	_ room.Indexer = (*Index)(nil)
	_ room.Waker   = (*Index)(nil)
)

// Wakes implements room.Waker.
func (s *Index) Wakes() string { return room.DueIndex }

// What a recall does before it searches is bounded: to make the index of 100,000 messages that were logged before
// there was one takes 8 s, and a long text as much. An alarm goes on, and until then the answer says how many are
// missing.
const (
	catchUpTime = 2 * time.Second
	catchUpRest = 8 << 20 // bytes of long texts
)

// ready brings the index as far as a request may wait for it, or all of it, and returns how many messages are not in it,
// or not with all of their text.
func (s *Index) ready(ctx context.Context, all bool) (missing int, err error) {
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
	if err := s.pieces.readRest(ctx, most); err != nil {
		if ctx.Err() != nil || errors.Is(err, tidemark.ErrDead) {
			return 0, err
		}
		s.Logger.Warn("long texts are read later", "session", s.Key, "err", err) // the bucket is down: the rest is found
	}
	rows, err := s.Made.Query(ctx, pieceTables, `SELECT count(*) FROM unread WHERE key = ? LIMIT 1`, string(s.Key))
	if err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	if len(rows) > 0 && rows[0].Int(0) > 0 {
		missing += int(rows[0].Int(0))
		s.Alarm(ctx)
	}
	return missing, nil
}

// allReady is ready for one whose answer cannot say what is missing.
func (s *Index) allReady(ctx context.Context) error {
	for {
		if missing, err := s.catchUp(ctx); err != nil {
			return err
		} else if missing == 0 {
			return s.pieces.readRest(ctx, 1<<53)
		}
	}
}

// catchUp makes the index of a conversation that was logged before there was one, once, and for a while at most.
// It returns how many messages are left to an alarm.
func (s *Index) catchUp(ctx context.Context) (left int, err error) {
	if err := s.skips.settle(ctx); err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	if s.indexed.Load() {
		return 0, nil
	}
	first, err := s.firstIndexed(ctx)
	if err != nil {
		return 0, err
	}
	until, err := s.skips.Settled(ctx) // the turn in work comes into the index with its end
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
func (s *Index) indexable(ctx context.Context) ([]string, error) {
	logs, err := s.Logs(ctx)
	if err != nil {
		return nil, err
	}
	l, err := s.Lineage(ctx, false)
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
func (s *Index) firstIndexed(ctx context.Context) (int64, error) {
	rows, err := s.DB.Query(ctx, `SELECT coalesce((SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid LIMIT 1), ?),
		coalesce((SELECT CAST(data AS INTEGER) FROM due WHERE key = ? AND kind = ?), ?) LIMIT 1`,
		`home : "`+recall.Home(s.Key)+`"`, int64(1)<<53, string(s.Key), room.DueIndex, int64(1)<<53)
	if err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	return min(rows[0].Int(0), rows[0].Int(1)), nil
}

// indexLog puts the messages of a log up to a position into the index, from the newest to the oldest, until it is
// late; at least one, so that it comes to an end. at is the oldest one that was read when more are left, or 0.
func (s *Index) indexLog(ctx context.Context, log string, last int64, late func() bool) (at int64, err error) {
	err = s.put(ctx, func(yield func(tidemark.Entry, error) bool) {
		oldest := int64(0)
		for e, err := range s.Log.Walk(ctx, log, last) {
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
func (s *Index) indexLater(ctx context.Context, first int64) (left int, err error) {
	if left, err = s.before(ctx, first); err != nil {
		return 0, err
	}
	if err := s.DB.Tx(ctx, []tidemark.Stmt{s.Due(room.DueIndex, s.Runtime.Now(), strconv.FormatInt(first, 10))}); err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	s.Alarm(ctx)
	return left, nil
}

// before counts the messages before a position, at least one.
func (s *Index) before(ctx context.Context, seq int64) (int, error) {
	rows, err := s.DB.Query(ctx, `SELECT count(*) FROM entries WHERE kind = 'message' AND seq < ? AND log IN (SELECT id FROM logs WHERE key = ?) LIMIT 1`, seq, string(s.Key))
	if err != nil {
		return 0, fmt.Errorf("recall: %w", err)
	}
	return max(int(rows[0].Int(0)), 1), nil
}

// Wake implements room.Waker.
func (s *Index) Wake(ctx context.Context) error {
	if s.Active() != "" {
		return s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE due SET at = ? WHERE key = ? AND kind = ?`,
			Args: []any{s.Runtime.Now().Add(wordsAfter).UnixMilli(), string(s.Key), room.DueIndex}}})
	}
	if left, err := s.catchUp(ctx); err != nil || left > 0 {
		return err
	}
	return s.DB.Tx(ctx, []tidemark.Stmt{s.Undue(room.DueIndex)})
}

// put puts messages into the index under their word of home, some at a time, each once. Within a transaction they
// are in order, whichever way they come, since FTS5 writes out what it holds when a row comes out of order.
func (s *Index) put(ctx context.Context, entries iter.Seq2[tidemark.Entry, error]) error {
	const most, mostBytes = 100, 256 << 10
	var stmts []tidemark.Stmt
	var yields host.Yielder
	size, before, falling := 0, int64(0), false
	flush := func() error {
		if len(stmts) == 0 {
			return nil
		}
		if falling {
			slices.Reverse(stmts)
		}
		err := s.DB.Tx(ctx, stmts)
		stmts, size = nil, 0
		return err
	}
	for e, err := range entries {
		if err != nil {
			return err
		}
		falling, before = e.Seq < before, e.Seq
		more, err := s.putStmts(ctx, e)
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
		if stmts, size = append(stmts, more...), size+len(e.Payload); len(stmts) >= most || size > mostBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		if err := yields.Did(ctx, s.Runtime, len(e.Payload)); err != nil {
			return err
		}
	}
	return flush()
}

// putStmts put one message into the index: its words, and its rest as due to be read. Large blocks are read
// when there is room for them, and those without words not at all.
func (s *Index) putStmts(ctx context.Context, e tidemark.Entry) ([]tidemark.Stmt, error) {
	home, err := s.skips.homeOf(ctx, e.Seq)
	if err != nil {
		return nil, err
	}
	m, done, err := s.Words(ctx, e)
	if err != nil {
		return nil, err
	}
	defer done()
	var stmts []tidemark.Stmt
	if stmt, ok := s.wordsStmt(e, m); ok {
		stmt.Args[0] = home
		stmts = append(stmts, stmt)
	}
	rest, err := s.pieces.restStmts(ctx, e, m)
	return append(stmts, rest...), err
}

// wordsStmt puts an entry into the index, once, though two catch up side by side or a message is logged
// meanwhile; ok is false for one that is not to be found.
func (s *Index) wordsStmt(e tidemark.Entry, full tidemark.Message) (stmt tidemark.Stmt, ok bool) {
	terms := room.Words(s.Stemmer, full)
	return tidemark.Stmt{SQL: `INSERT INTO words(rowid, home, terms) SELECT seq, ?, ? FROM entries e WHERE id = ? AND NOT EXISTS (SELECT 1 FROM words WHERE rowid = e.seq)`,
		Args: []any{recall.Home(s.Key), terms, string(e.ID)}}, terms != "" && e.Origin.Findable()
}

// IndexStmts implements room.Indexer. The words of a turn that may be skipped follow when it has ended, see Skips.
func (s *Index) IndexStmts(ctx context.Context, e tidemark.Entry, m tidemark.Message) ([]tidemark.Stmt, error) {
	if s.skips.holding() {
		return nil, nil
	}
	var stmts []tidemark.Stmt
	if stmt, ok := s.wordsStmt(e, m); ok {
		stmts = append(stmts, stmt)
	}
	rest, err := s.pieces.restStmts(ctx, e, m)
	return append(stmts, rest...), err
}

// Came implements room.Indexer.
func (s *Index) Came() { s.indexed.Store(false) }

// Texts implements room.Indexer.
func (s *Index) Texts(ctx context.Context, seqs []int64, use func(e tidemark.Entry, text string)) error {
	skipped, err := s.skips.Skipped(ctx, seqs[0], seqs[len(seqs)-1])
	if err != nil {
		return err
	}
	entries, err := s.Log.Payloads(ctx, seqs)
	if err != nil {
		return err
	}
	return s.pieces.texts(ctx, entries, nil, func(e tidemark.Entry, _ tidemark.Role, p piece) {
		if e.Origin.Findable() && !skipped[e.Seq] {
			use(e, p.text)
		}
	})
}
