package session

import (
	"context"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/room"
)

// holdStmts let the words of a turn wait for its end, when nobody asked for anything and a room may leave it out.
func (s *Session) holdStmts(ctx context.Context, r *run, q []queued) ([]tidemark.Stmt, error) {
	if r.Round > 0 || len(r.took) > 0 || slices.ContainsFunc(q, func(in queued) bool { return !small(in) }) {
		return nil, nil
	}
	return skipper(s).HoldStmts(ctx, r.ID, r.Log)
}

// small reports an input that can be read, which others see to, and asks for nothing.
func small(in queued) bool {
	var m tidemark.Message
	return json.Unmarshal(in.Payload, &m) == nil && !memory.Wants(in.Origin, m)
}

// skipper is the room that may leave turns out of what is found, and leaver that which does.
func skipper(s *Session) room.Skipper {
	if k, ok := Room[room.Skipper](s); ok {
		return k
	}
	return keepsAll{}
}

func leaver(s *Session) room.Leaver {
	if l, ok := Room[room.Leaver](s); ok {
		return l
	}
	return keepsAll{}
}

// keepsAll leaves nothing out.
type keepsAll struct{}

func (keepsAll) HoldStmts(context.Context, string, string) ([]tidemark.Stmt, error) { return nil, nil }
func (keepsAll) Again(context.Context, string) error                                { return nil }
func (keepsAll) DecideStmts(context.Context, string, string, tidemark.Entry) ([]tidemark.Stmt, error) {
	return nil, nil
}
func (keepsAll) EndWait(string)                {}
func (keepsAll) Ended(context.Context, string) {}
func (keepsAll) Skipped(context.Context, int64, int64) (map[int64]bool, error) {
	return nil, nil
}
func (keepsAll) Count(context.Context) (int, error)     { return 0, nil }
func (keepsAll) Settled(context.Context) (int64, error) { return host.LogEnd, nil }

// findable gives those of some messages to use that recall finds, each with its text or the beginning of a long one.
func (s *Session) findable(ctx context.Context, seqs []int64, use func(e tidemark.Entry, text string)) error {
	if r, ok := Room[room.Indexer](s); ok {
		return r.Texts(ctx, seqs, use)
	}
	return nil
}

// unskipped leaves out the items of skipped turns: no fact is drawn from them. When that cannot be read, all stay.
func (s *Session) unskipped(ctx context.Context, items []compaction.Item) []compaction.Item {
	const page = 500
	var out []compaction.Item
	for len(items) > 0 {
		some := items[:min(len(items), page)]
		items = items[len(some):]
		skipped, err := leaver(s).Skipped(ctx, some[0].Seq, some[len(some)-1].Last)
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
