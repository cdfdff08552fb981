package session

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// settleSkips puts the words of turns that are decided on where they belong. It is behind the end of each turn
// that waited, and before each recall: what a kill left is done then, from the row that says what is open. A run
// that ended without a decision was kept.
func (s *Session) settleSkips(ctx context.Context) error {
	rows, err := s.made.Query(ctx, skipTables, `SELECT run, log, state, ids, first FROM skips k WHERE key = ? AND indexed = 0
		AND (state <> ? OR NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = k.run AND r.state IN ('calling', 'tools'))) ORDER BY at LIMIT 100`, string(s.Key), skipOpen)
	if err != nil {
		return fmt.Errorf("look for turns to settle: %w", err)
	}
	for _, r := range rows {
		var ids []tidemark.EntryID
		if err := json.Unmarshal(r.Bytes(3), &ids); err != nil {
			return fmt.Errorf("settle turn %s: %w", r.Text(0), err)
		}
		end := tidemark.Stmt{SQL: `DELETE FROM skips WHERE key = ? AND run = ?`, Args: []any{string(s.Key), r.Text(0)}}
		if r.Text(2) == skipSkipped {
			end.SQL = `UPDATE skips SET indexed = 1 WHERE key = ? AND run = ?`
		}
		if len(ids) == 0 {
			if ids, err = s.undecided(ctx, r.Text(1), r.Int(4)); err != nil {
				return fmt.Errorf("settle turn %s: %w", r.Text(0), err)
			}
		}
		if err := s.index(ctx, s.byID(ctx, ids)); err != nil {
			return fmt.Errorf("settle turn %s: %w", r.Text(0), err)
		}
		if err := s.DB.Tx(ctx, []tidemark.Stmt{end}); err != nil {
			return fmt.Errorf("settle turn %s: %w", r.Text(0), err)
		}
	}
	return nil
}

// undecided returns the messages behind a position of a log, up to the next turn that waits.
func (s *Session) undecided(ctx context.Context, log string, first int64) ([]tidemark.EntryID, error) {
	rows, err := s.DB.Query(ctx, `SELECT id FROM entries WHERE log = ? AND kind = 'message' AND seq > ? AND seq <= coalesce((SELECT min(first) FROM skips WHERE key = ? AND first > ?), ?) ORDER BY seq LIMIT ?`,
		log, first, string(s.Key), first, int64(1)<<53, maxSkipped)
	out := make([]tidemark.EntryID, len(rows))
	for i, r := range rows {
		out[i] = tidemark.EntryID(r.Text(0))
	}
	return out, err
}

// byID yields entries that are there, in the order of their ids.
func (s *Session) byID(ctx context.Context, ids []tidemark.EntryID) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		for _, id := range ids {
			e, err := s.log.Entry(ctx, id)
			if !errors.Is(err, tidemark.ErrNotFound) && !yield(e, err) {
				return
			}
		}
	}
}

// settled ends the waiting of a run that has ended. What cannot be written now is done before the next recall.
func (s *Session) settled(ctx context.Context, run string) {
	s.letGo(run)
	if !s.made.Here(skipTables) {
		return
	}
	if err := s.settleSkips(ctx); err != nil && ctx.Err() == nil {
		s.Logger.Warn("settle what recall finds", "session", s.Key, "err", err)
	}
}

// unskipped leaves out the items of skipped turns: no fact is drawn from them. When that cannot be read, all stay.
func (s *Session) unskipped(ctx context.Context, items []compaction.Item) []compaction.Item {
	const page = 500
	var out []compaction.Item
	for len(items) > 0 {
		some := items[:min(len(items), page)]
		items = items[len(some):]
		skipped, err := s.skippedIn(ctx, some[0].Seq, some[len(some)-1].Last)
		if err != nil {
			s.Logger.Warn("read skipped turns", "session", s.Key, "err", err)
		}
		for _, it := range some {
			if it.Span() || !skipped[it.Seq] {
				out = append(out, it)
			}
		}
	}
	return out
}

// skippedIn returns which messages between two positions recall leaves out. The decisions say it, not the index:
// one that is made anew has not all of them.
func (s *Session) skippedIn(ctx context.Context, first, last int64) (map[int64]bool, error) {
	// The turn that the first message may be of began before it, and those that began behind it.
	rows, err := s.made.Query(ctx, skipTables, `SELECT e.seq FROM skips k CROSS JOIN json_each(k.ids) j CROSS JOIN entries e ON e.id = j.value
		WHERE k.key = ? AND k.first < ? AND k.first >= coalesce((SELECT max(first) FROM skips WHERE key = ? AND first < ? AND state = ?), 0)
			AND k.state = ? AND e.seq BETWEEN ? AND ? LIMIT ?`,
		string(s.Key), last, string(s.Key), first, skipSkipped, skipSkipped, first, last, last-first+1)
	if err != nil {
		return nil, fmt.Errorf("look for skipped messages: %w", err)
	}
	out := map[int64]bool{}
	for _, r := range rows {
		out[r.Int(0)] = true
	}
	return out, nil
}

// homeOf is the word in the index that a message stands under.
func (s *Session) homeOf(ctx context.Context, seq int64) (string, error) {
	skipped, err := s.skippedIn(ctx, seq, seq)
	if skipped[seq] {
		return s.skippedHome(), err
	}
	return s.home(), err
}
