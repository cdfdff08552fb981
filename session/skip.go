package session

import (
	"context"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

// holdStmts let the words of a turn wait for its end, when nobody asked for anything and a room may leave it out.
func (s *Session) holdStmts(ctx context.Context, r *run, q []queued) ([]tidemark.Stmt, error) {
	if r.Round > 0 || len(r.took) > 0 || slices.ContainsFunc(q, func(in queued) bool { return !small(in) }) {
		return nil, nil
	}
	return s.rooms.Skipper().HoldStmts(ctx, r.ID, r.Log)
}

// small reports an input that can be read, which others see to, and asks for nothing.
func small(in queued) bool {
	var m tidemark.Message
	return json.Unmarshal(in.Payload, &m) == nil && !memory.Wants(in.Origin, m)
}

// unskipped leaves out the items of skipped turns: no fact is drawn from them. When that cannot be read, all stay.
func (s *Session) unskipped(ctx context.Context, items []compaction.Item) []compaction.Item {
	const page = 500
	var out []compaction.Item
	for len(items) > 0 {
		some := items[:min(len(items), page)]
		items = items[len(some):]
		skipped, err := s.rooms.Leaver().Skipped(ctx, some[0].Seq, some[len(some)-1].Last)
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
