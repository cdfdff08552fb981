package session

import (
	"context"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
)

// records is what a room may know of calls of the model.
func (s *Session) records() room.Records {
	return room.Records{Base: func() string { return s.settings().System }, Keep: keepText, Kept: s.prompt, AsOf: s.Reader.AsOf,
		Paged: func(v compaction.View, again bool, since int64, before *paging.Account) *paging.Account {
			if p, ok := room.Find[room.Pager](s.rooms); ok {
				return p.Paged(v, again, since, before)
			}
			return nil
		}, Divided: func(ctx context.Context, v room.Seen) *room.Divided {
			if t, ok := room.Find[room.EpisodeReader](s.rooms); ok {
				return t.Divided(ctx, v)
			}
			return nil
		}}
}

// recordCall has a room record a call, one that failed too. A failure to record is logged; the answer is worth more.
func (s *Session) recordCall(r *run, v View, req tidemark.Request, c tidemark.Call, failed error) {
	rec, ok := room.Find[room.Recorder](s.rooms)
	if !ok {
		return
	}
	ctx := s.life // that of the turn may have ended the call
	h, err := s.head(ctx)
	if err == nil {
		sent := room.Sent{Seen: v.Seen, Run: r.ID, Attempt: r.Attempt, Compactions: h.Compactions, Pushed: v.Pack != "", Last: v.Last, Until: v.Until,
			Prompt: h.Prompt, Request: req, Call: c}
		if failed != nil {
			sent.Failed = Explain(failed)
		}
		err = rec.Record(ctx, sent)
	}
	if err != nil && ctx.Err() == nil {
		s.warn("record anatomy", err)
	}
}

// usageOf is what the calls of a run cost, as far as a room knows. An account that cannot be read is worth no failure.
func (s *Session) usageOf(ctx context.Context, run string) (sum tidemark.Usage) {
	if rec, ok := room.Find[room.Recorder](s.rooms); ok {
		var err error
		if sum, err = rec.Usage(ctx, run); err != nil {
			s.warn("read what a turn has spent", err)
		}
	}
	return sum
}
