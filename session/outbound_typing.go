package session

import (
	"context"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// workingEvery is how often people are shown that an answer is being written; what they see lasts a
// little longer.
const workingEvery = 20 * time.Second

// show tells those who wait for a run that what they wrote was read, and again until ctx, the run's,
// ends.
func (s *Session) show(ctx context.Context, r *run) {
	if s.Courier == nil {
		return
	}
	for _, l := range listeners(r.origins) {
		if l.newest == "" || r.shown[l.who] == l.newest {
			continue
		}
		if r.shown == nil {
			r.shown = map[string]string{}
		}
		first := r.shown[l.who] == ""
		r.shown[l.who] = l.newest
		s.Runtime.Go(func() {
			for {
				begun := s.Runtime.Now()
				s.showOne(ctx, l.To, l.newest)
				took := s.Runtime.Now().Sub(begun) // where what people see is short, a courier repeats it itself
				if !first || s.Runtime.Sleep(ctx, workingEvery-min(max(took, 0), workingEvery-time.Second)) != nil {
					return
				}
			}
		})
	}
}

func (s *Session) showOne(ctx context.Context, to tidemark.Address, message string) {
	limited, stop := s.Runtime.WithTimeout(ctx, workingEvery)
	defer stop()
	if err := s.Courier.Working(limited, to, message); err != nil && ctx.Err() == nil {
		s.Logger.Debug("show working", "session", s.Key, "err", err)
	}
}
