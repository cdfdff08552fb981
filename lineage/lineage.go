// Package lineage says what a conversation continues, as a branch, and of which histories one is made whose client keeps them
// itself. A branch has messages of its own, and before them those of what it continues, up to where it began. Whoever reads a
// log by its entries has both (package host); what is kept beside the entries, such as overlays and the index of words, is of
// the log or the key that wrote it, and read through the lineage here. Begin with [Lineage].
package lineage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Lineage is what one conversation continues. Logs never change where they begin, so it is read once.
type Lineage struct {
	Key tidemark.Key
	DB  tidemark.DB
	Log *host.Log

	bases atomic.Pointer[basesOf]
	reach atomic.Pointer[host.Lineage]
}

type basesOf struct {
	log  string
	list []host.Segment
}

// Bases returns what a log continues, newest first; none for most. A client that keeps its history itself has the
// overlays of each of its tracks for itself.
func (l *Lineage) Bases(ctx context.Context, log string) ([]host.Segment, error) {
	if Tracked(l.Key) {
		return nil, nil
	}
	if b := l.bases.Load(); b != nil && b.log == log {
		return b.list, nil
	}
	all, err := l.Log.Segments(ctx, log, 0)
	if err != nil {
		return nil, err
	}
	b := &basesOf{log, all[1:]}
	l.bases.Store(b)
	return b.list, nil
}

// Overlays returns the overlays of a history behind a position, in order: of a branch first those of what it continues, as
// they were where it began.
func (l *Lineage) Overlays(ctx context.Context, log string, after int64) ([]host.Mark, error) {
	bases, err := l.Bases(ctx, log)
	if err != nil {
		return nil, err
	}
	if len(bases) == 0 {
		return l.Log.MarksAfter(ctx, log, after)
	}
	return l.Log.MarksOf(ctx, append([]host.Segment{{Log: log, To: host.LogEnd}}, bases...), after)
}

// OfHistory reports whether an entry is of a history: of the log, or of what it continues, before it began.
func (l *Lineage) OfHistory(ctx context.Context, log string, e tidemark.Entry) (bool, error) {
	if e.Log == log {
		return true, nil
	}
	bases, err := l.Bases(ctx, log)
	return slices.ContainsFunc(bases, func(b host.Segment) bool { return b.Log == e.Log && e.Seq <= b.To }), err
}

// maxReach bounds the logs of a lineage.
const maxReach = 10_000

// Reach returns what the conversation may look into: its own logs, and what they continue.
func (l *Lineage) Reach(ctx context.Context) (*host.Lineage, error) {
	if r := l.reach.Load(); r != nil {
		return r, nil
	}
	if Tracked(l.Key) {
		return l.single(), nil
	}
	based, err := l.DB.Query(ctx, `SELECT 1 FROM logs WHERE key = ? AND base_log <> '' LIMIT 1`, string(l.Key))
	if err != nil {
		return nil, fmt.Errorf("read lineage of %s: %w", l.Key, err)
	}
	if len(based) == 0 { // nor will it be: only a new key begins at a base, see [Lineage.Forget]
		r := l.single()
		l.reach.Store(r)
		return r, nil
	}
	rows, err := l.DB.Query(ctx, `WITH RECURSIVE r(id, key, upto, base, base_seq, previous) AS (
			SELECT id, key, ?, base_log, base_seq, previous FROM logs WHERE key = ?
			UNION SELECT l.id, l.key, CASE l.id WHEN r.base THEN min(r.upto, r.base_seq) ELSE r.upto END, l.base_log, l.base_seq, l.previous
				FROM r JOIN logs l ON l.id IN (r.base, r.previous) LIMIT ?)
		SELECT id, max(upto), key FROM r GROUP BY id ORDER BY id LIMIT ?`, host.LogEnd, string(l.Key), maxReach, maxReach)
	if err != nil {
		return nil, fmt.Errorf("read lineage of %s: %w", l.Key, err)
	}
	out := &host.Lineage{Key: l.Key, Ends: Ends(l.Key), UpTo: map[string]int64{}, Own: map[string]bool{}, Keys: []string{string(l.Key)}}
	for _, r := range rows {
		out.UpTo[r.Text(0)] = r.Int(1)
		if r.Text(2) == string(l.Key) {
			out.Own[r.Text(0)] = true
		}
		if !slices.Contains(out.Keys, r.Text(2)) {
			out.Keys = append(out.Keys, r.Text(2))
		}
	}
	logs, err := json.Marshal(out.UpTo)
	if err != nil {
		return nil, fmt.Errorf("read lineage of %s: %w", l.Key, err)
	}
	out.Logs = string(logs)
	// A reset makes a log that is not among these: the next life, or the reset itself, reads them again.
	l.reach.Store(out)
	return out, nil
}

// For is Reach for a search, which may want what the conversation said itself alone.
func (l *Lineage) For(ctx context.Context, own bool) (*host.Lineage, error) {
	if own {
		return l.single(), nil
	}
	return l.Reach(ctx)
}

// single is the lineage of a session whose logs continue none.
func (l *Lineage) single() *host.Lineage {
	return &host.Lineage{Key: l.Key, Ends: Ends(l.Key), Keys: []string{string(l.Key)}, Single: true}
}

// Forget drops what is known of the descent, when the session has another log.
func (l *Lineage) Forget() {
	l.bases.Store(nil)
	l.reach.Store(nil)
}

// Reaches reports whether an entry is of what the conversation may look into: no branch reads what another said since.
func (l *Lineage) Reaches(ctx context.Context, e tidemark.Entry) (bool, error) {
	r, err := l.Reach(ctx)
	if err != nil {
		return false, err
	}
	if !r.Single {
		return e.Seq <= r.UpTo[e.Log], nil
	}
	i, err := l.Log.Info(ctx, e.Log)
	if err != nil {
		return false, err
	}
	if Tracked(l.Key) {
		return i.Key.Root() == l.Key.Root(), nil
	}
	return i.Key == l.Key, nil
}

// Segments returns a log and those that it continues as a branch.
func (l *Lineage) Segments(ctx context.Context, log string) (map[string]bool, error) {
	out := map[string]bool{}
	for log != "" && !out[log] {
		out[log] = true
		i, err := l.Log.Info(ctx, log)
		if errors.Is(err, tidemark.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		log = i.BaseLog
	}
	return out, nil
}
