package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// A snapshot ends where a conversation can go on: never between a call and its result.

// cutBack is how many messages are looked at for such a place: the calls of one reply and their results.
const cutBack = 400

// spot is where a snapshot ends.
type spot struct {
	seq    int64
	newest bool // nothing was said behind it
	past   bool // it was asked for: what is kept now may be of later
}

// placeOf finds where a snapshot of a log ends: at a message, or at the newest place that there is.
func (s *Session) placeOf(ctx context.Context, log string, at tidemark.EntryID) (spot, error) {
	if at != "" {
		return s.placeAt(ctx, log, at)
	}
	tail, err := s.log.Tail(ctx, log, 0, cutBack)
	if err != nil {
		return spot{}, err
	}
	if len(tail) == 0 {
		return spot{}, fmt.Errorf("nothing was said yet: %w", tidemark.ErrInvalid)
	}
	n := len(tail)
	busy, err := s.Busy(ctx)
	if err != nil {
		return spot{}, err
	}
	end, more, err := s.endBehind(ctx, log, tail[n-1].Seq)
	if err != nil {
		return spot{}, err
	}
	// Calls without a result are over only if no turn is in work and none wrote behind them: in this order, or a turn that
	// ends between the last two looks would hide its results.
	legal := cuts(tail, busy != "" || more)
	for n > 0 && !legal[n] {
		n--
	}
	switch {
	case n == 0:
		return spot{}, fmt.Errorf("the turn in work has no message before its calls: take the snapshot when it has ended: %w", tidemark.ErrBusy)
	case n == len(tail): // with what was done to it since
		return spot{seq: end, newest: !more}, nil
	}
	return spot{seq: tail[n].Seq - 1}, nil
}

// endBehind is how far a log goes behind a message before the next one, and whether there is one.
func (s *Session) endBehind(ctx context.Context, log string, seq int64) (end int64, more bool, err error) {
	rows, err := s.DB.Query(ctx, `WITH next(seq) AS (SELECT min(seq) FROM entries WHERE log = ? AND kind = 'message' AND seq > ?)
		SELECT coalesce((SELECT max(e.seq) FROM entries e WHERE e.log = ? AND e.seq > ? AND e.seq < coalesce(next.Seq, ?)), 0), next.Seq IS NOT NULL FROM next LIMIT 1`,
		log, seq, log, seq, room.LogEnd)
	if err != nil {
		return 0, false, fmt.Errorf("read end of %s: %w", log, err)
	}
	return max(rows[0].Int(0), seq), rows[0].Int(1) != 0, nil
}

// placeAt is the place behind a message, which must be one.
func (s *Session) placeAt(ctx context.Context, log string, at tidemark.EntryID) (spot, error) {
	e, err := s.log.Entry(ctx, at)
	if err != nil && !errors.Is(err, tidemark.ErrNotFound) {
		return spot{}, err
	}
	ours := false
	if err == nil {
		if ours, err = s.ofHistory(ctx, log, e); err != nil {
			return spot{}, err
		}
	}
	if !ours || e.Kind != tidemark.KindMessage {
		return spot{}, fmt.Errorf("at %.80q: no message of this session: %w", at, tidemark.ErrNotFound)
	}
	tail, err := s.log.Tail(ctx, log, e.Seq, cutBack)
	if err != nil {
		return spot{}, err
	}
	n := len(tail)
	const ahead = 50 // that may have results of what stands before
	behind, err := s.log.Next(ctx, log, e.Seq, 0, ahead)
	if err != nil {
		return spot{}, err
	}
	if len(behind) == 0 {
		return s.placeOf(ctx, log, "")
	}
	all := append(tail, behind...)
	legal := cuts(all, false)
	if legal[n] {
		return spot{seq: e.Seq, past: true}, nil
	}
	for n > 0 && !legal[n] {
		n--
	}
	nearest := "there is none before it"
	if n > 0 {
		nearest = "the nearest before it is " + string(all[n-1].ID)
	}
	return spot{}, fmt.Errorf("at %s: it stands between a call and its result, where no conversation can go on; %s: %w", at, nearest, tidemark.ErrInvalid)
}

// cuts reports for each place between some messages whether a history may end there. With open the last calls wait for
// their results; else what has none by the end never will.
func cuts(list []tidemark.Skeleton, open bool) []bool {
	answered := map[string]bool{}
	for _, k := range list {
		for _, id := range k.Results {
			answered[id] = true
		}
	}
	legal, waiting := make([]bool, len(list)+1), map[string]bool{}
	for i, k := range list {
		for _, id := range k.Results {
			delete(waiting, id)
		}
		for _, id := range k.Calls {
			if answered[id] || open {
				waiting[id] = true
			}
		}
		legal[i+1] = len(waiting) == 0
	}
	return legal
}

// lastSeq is the position of the newest entry of a log, whatever it is; 0 for an empty one.
func (s *Session) lastSeq(ctx context.Context, log string) (int64, error) {
	rows, err := s.DB.Query(ctx, `SELECT coalesce(max(seq), 0) FROM entries WHERE log = ? LIMIT 1`, log)
	if err != nil {
		return 0, fmt.Errorf("read end of %s: %w", log, err)
	}
	return rows[0].Int(0), nil
}

// viewAt computes the view of a history as it was when its newest entry had a position, as it would be sent now.
func (s *Session) viewAt(ctx context.Context, log string, until int64, admit func(int64) error) (View, error) {
	marks, err := s.overlays(ctx, log, 0)
	if err != nil {
		return View{}, err
	}
	then, err := s.editsOf(ctx, slices.DeleteFunc(marks, func(m host.Mark) bool { return m.Seq > until }))
	if err != nil {
		return View{}, err
	}
	then.until = until
	return s.viewOf(ctx, log, then, admit)
}

// weighAt is how many tokens a model would read at a place. What does not fit into memory is taken by its estimates.
func (s *Session) weighAt(ctx context.Context, h head, p spot) (tidemark.Tokens, error) {
	if p.newest && h.Context > 0 {
		return h.Context, nil
	}
	return s.lookAt(ctx, h.Log, p.seq, nil)
}

// lookMost is how large a view is that is read to weigh it: what no model takes is estimated.
const lookMost tidemark.Tokens = 2_000_000

// lookAt computes the view at a place, which look may read until it returns, or, where it would be too large to read, only
// what it weighs.
func (s *Session) lookAt(ctx context.Context, log string, seq int64, look func(View) error) (size tidemark.Tokens, err error) {
	marks, err := s.overlays(ctx, log, 0)
	if err != nil {
		return 0, err
	}
	placed, err := s.place(ctx, slices.DeleteFunc(marks, func(m host.Mark) bool { return m.Seq > seq }))
	if err != nil {
		return 0, err
	}
	for _, gap := range compaction.Lay(placed).Gaps(1, seq) {
		_, n, err := s.log.Count(ctx, log, host.Range{From: gap.From, To: gap.To}, 1<<40)
		if size += n; err != nil {
			return 0, err
		}
	}
	if size > lookMost {
		return size, nil
	}
	var give func()
	v, err := s.viewAt(ctx, log, seq, func(bytes int64) (err error) {
		give, err = s.room(ctx, bytes)
		return err
	})
	if give != nil {
		defer give()
	}
	switch {
	case errors.Is(err, errHeavy):
		return size, nil
	case err == nil && look != nil:
		err = look(v)
	}
	return v.Size, err
}

// hideBehind has a layout show nothing behind a position.
func hideBehind(l *compaction.Layout, until int64) {
	if until > 0 {
		l.Hidden = append(l.Hidden, compaction.Span{From: until + 1, To: room.LogEnd})
	}
}
