package outbound

import (
	"context"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// workingEvery is how often people are shown that an answer is being written; what they see lasts a
// little longer.
const workingEvery = 20 * time.Second

// Typing implements room.Teller.
func (s *Room) Typing(ctx context.Context) func(to []tidemark.Origin) {
	shown := map[string]string{} // by reader, the message that was shown to be answered
	return func(to []tidemark.Origin) {
		if s.courier == nil {
			return
		}
		for _, l := range listeners(to) {
			if l.newest == "" || shown[l.who] == l.newest {
				continue
			}
			first := shown[l.who] == ""
			shown[l.who] = l.newest
			s.Runtime.Go(func() { s.show(ctx, l, first) })
		}
	}
}

// show tells somebody that what they wrote was read, and again until ctx ends if they were not told before.
func (s *Room) show(ctx context.Context, l listener, again bool) {
	for {
		begun := s.Runtime.Now()
		s.showOne(ctx, l.To, l.newest)
		took := s.Runtime.Now().Sub(begun) // where what people see is short, a courier repeats it itself
		if !again || s.Runtime.Sleep(ctx, workingEvery-min(max(took, 0), workingEvery-time.Second)) != nil {
			return
		}
	}
}

func (s *Room) showOne(ctx context.Context, to tidemark.Address, message string) {
	limited, stop := s.Runtime.WithTimeout(ctx, workingEvery)
	defer stop()
	if err := s.courier.Working(limited, to, message); err != nil && ctx.Err() == nil {
		s.Logger.Debug("show working", "session", s.Key, "err", err)
	}
}
