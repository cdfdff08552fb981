package session

import (
	"context"
	"errors"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/mend"
	"github.com/tidemark-ai/tidemark/refusal"
)

// trial is a smaller window that a turn tries, since a request was refused and nobody said what the model takes. It is
// learned when a request within it was taken, if the refusals were for tokens, and forgotten with the turn.
type trial struct {
	from  tidemark.Tokens    // the window before it, 0: none is tried
	bytes bool               // bytes were too many, which says nothing of tokens
	sized *tidemark.APIError // in these words, which are not known, the API refuses a request that is too large, as it was found
	least bool               // the window is what the view takes and little more, since nothing could leave
}

// answerRefusal answers a refusal: what is too large is made smaller, what is refused of the request taken out. A reply that
// declined, with no error, is one as well. It reports whether the call may be made again.
func (s *Session) answerRefusal(ctx context.Context, r *run, v, asked View, c tidemark.Call, refused error) (bool, error) {
	var api *tidemark.APIError
	switch {
	case refused == nil:
		return s.reconsider(ctx, r, asked, c)
	case !errors.As(refused, &api):
		return false, refused
	case api.Class == tidemark.ClassRefusal && r.begun: // it thought, and declined without a word
		again, err := s.reconsider(ctx, r, asked, c)
		if !again && err == nil {
			err = refused
		}
		return again, err
	case refusal.Unexplained(*api, mend.AnsweredIn(v.Items) >= 0) && (r.trial.sized == nil || !refusal.Alike(*r.trial.sized, *api)):
		again, large, err := s.mend(ctx, r, asked, *api)
		if again || err != nil {
			return again, err
		}
		if large == nil {
			return false, refused
		}
		api = large
	case api.Class != tidemark.ClassOverflow && (r.trial.sized == nil || !refusal.Alike(*r.trial.sized, *api)):
		return false, refused
	}
	if r.refits >= maxRefits {
		return false, refused
	}
	if err := s.refit(ctx, r, v, *api); err != nil {
		if errors.Is(err, tidemark.ErrNoGain) && r.trial.sized != nil { // it was not for its size, perhaps: people read the API's words
			err = refused
		}
		return false, err
	}
	r.Attempt = 0 // it is another request
	return true, nil
}

// took keeps that a request was taken, and learns the window that was tried with it.
func (s *Session) took(ctx context.Context, r *run, v View, usage tidemark.Usage) error {
	size := max(v.Size, usage.Context())
	s.mostTaken.Store(max(s.mostTaken.Load(), int64(size)))
	t := r.trial
	r.declined = ""
	if r.trial = (trial{}); t.from == 0 || t.bytes {
		return nil
	}
	return s.learnAnd(ctx, r, t.from, max(s.settings().Window, size), tidemark.WindowHalved)
}

// retrySmaller compacts a view for a window that is tried.
func (s *Session) retrySmaller(ctx context.Context, r *run, v View) error {
	before, taken := s.settings().Window, tidemark.Tokens(0)
	if r.trial.from == 0 {
		r.trial.from, taken = before, tidemark.Tokens(s.mostTaken.Load())
	}
	r.weigh(&v, v.Fixed+v.View.Tokens()) // what was reported of requests before may be too little
	if err := s.useWindow(ctx, windowToTry(before, taken, v)); err != nil {
		return err
	}
	err := s.fitInto(ctx, r, v, before, 0)
	if least := v.Size + v.Size/16; errors.Is(err, tidemark.ErrNoGain) && !r.trial.least && least < before {
		r.trial.least = true // the view cannot be smaller, but the room for the reply can
		return s.useWindow(ctx, least)
	}
	return err
}

// windowToTry is what the model took before, or half of what was refused. It leaves room for a talk, and for what no
// compaction can take away.
func windowToTry(window, taken tidemark.Tokens, v View) tidemark.Tokens {
	refused := min(window, v.Size)
	least := max(refused/2, 2*v.Fixed, MinWindow)
	if taken < refused {
		least = max(least, taken)
	}
	return min(least, window)
}

// useWindow puts a window in force for a turn, or with 0 the one that is known.
func (s *Session) useWindow(ctx context.Context, tokens tidemark.Tokens) error {
	if s.tried.Swap(int64(tokens)) == int64(tokens) {
		return nil
	}
	return s.loadSettings(ctx)
}
