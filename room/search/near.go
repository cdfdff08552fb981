package search

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// nearest returns the messages that another room finds for a query by more than its words, by position; none when there is no
// such room, or it fails: the words find what they find. told says how it went.
func (s *Room) nearest(ctx context.Context, l *host.Lineage, w Wanted) (near map[int64]recall.Stand, told string) {
	near, told = s.Near(ctx, w.Query, l)
	near, err := s.wanted(ctx, l, near, w)
	if err != nil {
		s.Warn("recall without vectors", err)
		return nil, "unreachable"
	}
	return near, told
}

// wanted keeps of what stands out what was said in time, and leaves out skipped turns unless all is wanted.
func (s *Room) wanted(ctx context.Context, l *host.Lineage, near map[int64]recall.Stand, w Wanted) (map[int64]recall.Stand, error) {
	if len(near) == 0 {
		return nil, nil
	}
	since, until := w.span()
	_, skipped := room.Homes(l)
	if w.All {
		skipped = []string{"none"}
	}
	rows, err := s.DB.Query(ctx, `SELECT e.seq FROM json_each(?) j CROSS JOIN entries e ON e.seq = j.value
		WHERE e.at BETWEEN ? AND ? AND NOT EXISTS (SELECT 1 FROM words WHERE words MATCH ? AND rowid = e.seq) LIMIT ?`,
		room.JSON(nearestSeqs(near)), since, until, recall.MatchHome(skipped), room.MaxNear)
	if err != nil {
		return nil, fmt.Errorf("read what stands out: %w", err)
	}
	out := map[int64]recall.Stand{}
	for _, r := range rows {
		out[r.Int(0)] = near[r.Int(0)]
	}
	return out, nil
}

// lookNear ranks again, with what stands out by its vector among the candidates.
func (f *finding) lookNear(ctx context.Context, q recall.Query) error {
	for _, seq := range nearestSeqs(f.near) {
		if !slices.Contains(f.seqs, seq) {
			f.seqs = append(f.seqs, seq)
		}
	}
	if err := f.load(ctx, f.seqs, f.seqs[:min(len(f.seqs), besideOf)]); err != nil {
		return err
	}
	f.hits = f.fused(f.index.Search(q, f.stats))
	return nil
}

// fused puts what stands out by its vector among the hits of words.
func (f *finding) fused(hits []recall.Hit) []recall.Hit {
	if len(f.near) == 0 {
		return hits
	}
	near := map[string]recall.Stand{}
	for id, seq := range f.docs {
		if st, ok := f.near[seq]; ok {
			near[id] = st
		}
	}
	return f.index.Fuse(hits, near)
}

// likely reports whether a vector stands out so far that it is worth a look, though no word says so.
func (f *finding) likely() bool {
	for _, st := range f.near {
		if st.Weight() >= 0.5 {
			return true
		}
	}
	return false
}

// nearestSeqs are the positions of those that stand out, in order.
func nearestSeqs(near map[int64]recall.Stand) []int64 {
	out := make([]int64, 0, len(near))
	for seq := range near {
		out = append(out, seq)
	}
	slices.Sort(out)
	return out
}
