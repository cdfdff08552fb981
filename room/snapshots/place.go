package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
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
func (s *Room) placeOf(ctx context.Context, log string, at tidemark.EntryID) (spot, error) {
	if at != "" {
		return s.placeAt(ctx, log, at)
	}
	tail, err := s.Log.Tail(ctx, log, 0, cutBack)
	if err != nil {
		return spot{}, err
	}
	if len(tail) == 0 {
		return spot{}, fmt.Errorf("nothing was said yet: %w", tidemark.ErrInvalid)
	}
	n := len(tail)
	busy, err := s.busy(ctx)
	if err != nil {
		return spot{}, err
	}
	end, more, err := s.endBehind(ctx, log, tail[n-1].Seq)
	if err != nil {
		return spot{}, err
	}
	// Calls without a result are over only if no turn is in work and none wrote behind them: in this order, or a turn that
	// ends between the last two looks would hide its results.
	legal := cuts(tail, busy || more)
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

// busy reports whether a turn is in work.
func (s *Room) busy(ctx context.Context) (bool, error) {
	rows, err := s.DB.Query(ctx, `SELECT id FROM runs WHERE key = ? AND state IN ('calling', 'tools') LIMIT 1`, string(s.Key))
	return len(rows) > 0, err
}

// continues reports whether an entry is of a history: of the log, or of what it goes on from, before it began.
func (s *Room) continues(ctx context.Context, log string, e tidemark.Entry) (bool, error) {
	segments, err := s.Log.Segments(ctx, log, 0)
	return slices.ContainsFunc(segments, func(g host.Segment) bool { return g.Log == e.Log && e.Seq <= g.To }), err
}

// endBehind is how far a log goes behind a message before the next one, and whether there is one.
func (s *Room) endBehind(ctx context.Context, log string, seq int64) (end int64, more bool, err error) {
	rows, err := s.DB.Query(ctx, `WITH next(seq) AS (SELECT min(seq) FROM entries WHERE log = ? AND kind = 'message' AND seq > ?)
		SELECT coalesce((SELECT max(e.seq) FROM entries e WHERE e.log = ? AND e.seq > ? AND e.seq < coalesce(next.Seq, ?)), 0), next.Seq IS NOT NULL FROM next LIMIT 1`,
		log, seq, log, seq, host.LogEnd)
	if err != nil {
		return 0, false, fmt.Errorf("read end of %s: %w", log, err)
	}
	return max(rows[0].Int(0), seq), rows[0].Int(1) != 0, nil
}

// placeAt is the place behind a message, which must be one.
func (s *Room) placeAt(ctx context.Context, log string, at tidemark.EntryID) (spot, error) {
	e, err := s.Log.Entry(ctx, at)
	if err != nil && !errors.Is(err, tidemark.ErrNotFound) {
		return spot{}, err
	}
	ours := false
	if err == nil {
		if ours, err = s.continues(ctx, log, e); err != nil {
			return spot{}, err
		}
	}
	if !ours || e.Kind != tidemark.KindMessage {
		return spot{}, fmt.Errorf("at %.80q: no message of this session: %w", at, tidemark.ErrNotFound)
	}
	tail, err := s.Log.Tail(ctx, log, e.Seq, cutBack)
	if err != nil {
		return spot{}, err
	}
	n := len(tail)
	const ahead = 50 // that may have results of what stands before
	behind, err := s.Log.Next(ctx, log, e.Seq, 0, ahead)
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
