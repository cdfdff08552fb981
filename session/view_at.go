package session

import (
	"context"
	"errors"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/history"
)

// viewAt computes the view of a history as it was when its newest entry had a position, as it would be sent now, and gives it
// to use while there is memory for it.
func (s *Session) viewAt(ctx context.Context, log string, until int64, use func(View) error) error {
	then, err := s.Reader.EditsAt(ctx, log, until)
	if err != nil {
		return err
	}
	var give func()
	v, err := s.viewOf(ctx, log, then, func(bytes int64) (err error) {
		give, err = s.Reader.Reserve(ctx, bytes)
		return err
	})
	if give != nil {
		defer give()
	}
	if err != nil {
		return err
	}
	return use(v)
}

// lookMost is how large a view is that is read to weigh it: what no model takes is estimated.
const lookMost tidemark.Tokens = 2_000_000

// weighAt is how many tokens a model would read at a place. What does not fit into memory is taken by its estimates. With
// check, a view that is read is refused where it is no conversation.
func (s *Session) weighAt(ctx context.Context, log string, upTo int64, check bool) (size tidemark.Tokens, err error) {
	if size, err = s.Reader.Estimate(ctx, log, upTo); err != nil || size > lookMost {
		return size, err
	}
	read := tidemark.Tokens(0)
	err = s.viewAt(ctx, log, upTo, func(v View) error {
		if read = v.Size; check && len(v.Items) > 0 {
			return tidemark.Check(v.Messages())
		}
		return nil
	})
	if errors.Is(err, history.ErrHeavy) {
		return size, nil
	}
	return read, err
}
