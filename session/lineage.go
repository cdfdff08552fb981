package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/room"
)

// A branch has messages of its own, and before them those of what it continues, up to where it began. Whoever reads a
// log by its entries has both (package host); what is kept beside the entries, such as overlays and the index of words,
// is of the log or the key that wrote it, and read through the lineage here.

// descent is what a session knows of what it continues. Logs never change where they begin, so it is read once.
type descent struct {
	bases   atomic.Pointer[basesOf]
	lineage atomic.Pointer[room.Lineage]
}

type basesOf struct {
	log  string
	list []host.Segment
}

// bases returns what a log continues, newest first; none for most. A client that keeps its history itself has the
// overlays of each of its tracks for itself.
func (s *Session) bases(ctx context.Context, log string) ([]host.Segment, error) {
	if Tracked(s.Key) {
		return nil, nil
	}
	if b := s.descent.bases.Load(); b != nil && b.log == log {
		return b.list, nil
	}
	all, err := s.log.Segments(ctx, log, 0)
	if err != nil {
		return nil, err
	}
	b := &basesOf{log, all[1:]}
	s.descent.bases.Store(b)
	return b.list, nil
}

// overlays returns the overlays of a history behind a position, in order: of a branch first those of what it continues, as
// they were where it began.
func (s *Session) overlays(ctx context.Context, log string, after int64) ([]host.Mark, error) {
	bases, err := s.bases(ctx, log)
	if err != nil {
		return nil, err
	}
	if len(bases) == 0 {
		return s.log.MarksAfter(ctx, log, after)
	}
	return s.log.MarksOf(ctx, append([]host.Segment{{Log: log, To: room.LogEnd}}, bases...), after)
}

// ofHistory reports whether an entry is of a history: of the log, or of what it continues, before it began.
func (s *Session) ofHistory(ctx context.Context, log string, e tidemark.Entry) (bool, error) {
	if e.Log == log {
		return true, nil
	}
	bases, err := s.bases(ctx, log)
	return slices.ContainsFunc(bases, func(b host.Segment) bool { return b.Log == e.Log && e.Seq <= b.To }), err
}

// maxReach bounds the logs of a lineage.
const maxReach = 10_000

// reach returns what the session may look into: its own logs, and what they continue.
func (s *Session) reach(ctx context.Context) (*room.Lineage, error) {
	if l := s.descent.lineage.Load(); l != nil {
		return l, nil
	}
	if Tracked(s.Key) {
		return s.single(), nil
	}
	based, err := s.DB.Query(ctx, `SELECT 1 FROM logs WHERE key = ? AND base_log <> '' LIMIT 1`, string(s.Key))
	if err != nil {
		return nil, fmt.Errorf("read lineage of %s: %w", s.Key, err)
	}
	if len(based) == 0 { // nor will it be: only a new key begins at a base, see [Session.forget]
		l := s.single()
		s.descent.lineage.Store(l)
		return l, nil
	}
	rows, err := s.DB.Query(ctx, `WITH RECURSIVE r(id, key, upto, base, base_seq, previous) AS (
			SELECT id, key, ?, base_log, base_seq, previous FROM logs WHERE key = ?
			UNION SELECT l.id, l.key, CASE l.id WHEN r.base THEN min(r.upto, r.base_seq) ELSE r.upto END, l.base_log, l.base_seq, l.previous
				FROM r JOIN logs l ON l.id IN (r.base, r.previous) LIMIT ?)
		SELECT id, max(upto), key FROM r GROUP BY id ORDER BY id LIMIT ?`, room.LogEnd, string(s.Key), maxReach, maxReach)
	if err != nil {
		return nil, fmt.Errorf("read lineage of %s: %w", s.Key, err)
	}
	l := &room.Lineage{Key: s.Key, Ends: ends(s.Key), UpTo: map[string]int64{}, Own: map[string]bool{}, Keys: []string{string(s.Key)}}
	for _, r := range rows {
		l.UpTo[r.Text(0)] = r.Int(1)
		if r.Text(2) == string(s.Key) {
			l.Own[r.Text(0)] = true
		}
		if !slices.Contains(l.Keys, r.Text(2)) {
			l.Keys = append(l.Keys, r.Text(2))
		}
	}
	l.Logs = mustJSON(l.UpTo)
	// A reset makes a log that is not among these: the next life, or the reset itself, reads them again.
	s.descent.lineage.Store(l)
	return l, nil
}

// lineage is reach for a search, which may want what the session said itself alone.
func (s *Session) lineage(ctx context.Context, own bool) (*room.Lineage, error) {
	if own {
		return s.single(), nil
	}
	return s.reach(ctx)
}

// single is the lineage of a session whose logs continue none.
func (s *Session) single() *room.Lineage {
	return &room.Lineage{Key: s.Key, Ends: ends(s.Key), Keys: []string{string(s.Key)}, Single: true}
}

// forget drops what is known of the descent, when the session has another log.
func (s *Session) forget() {
	s.descent.bases.Store(nil)
	s.descent.lineage.Store(nil)
}

// reaches reports whether an entry is of what the session may look into: no branch reads what another said since.
func (s *Session) reaches(ctx context.Context, e tidemark.Entry) (bool, error) {
	l, err := s.reach(ctx)
	if err != nil {
		return false, err
	}
	if !l.Single {
		return e.Seq <= l.UpTo[e.Log], nil
	}
	i, err := s.log.Info(ctx, e.Log)
	if err != nil {
		return false, err
	}
	if Tracked(s.Key) {
		return i.Key.Root() == s.Key.Root(), nil
	}
	return i.Key == s.Key, nil
}

// segments returns a log and those that it continues as a branch.
func (s *Session) segments(ctx context.Context, log string) (map[string]bool, error) {
	out := map[string]bool{}
	for log != "" && !out[log] {
		out[log] = true
		i, err := s.log.Info(ctx, log)
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
