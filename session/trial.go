package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tidemark-ai/tidemark"
)

// trial is a smaller window that a turn tries, since a request was refused and nobody said what the model takes. It is
// learned when a request within it was taken, if the refusals were for tokens, and forgotten with the turn.
type trial struct {
	from      tidemark.Tokens // the window before it, 0: none is tried
	doubted   bool            // of one refusal nobody said that the request was too large, either: it may have been an outage
	bytes     bool            // bytes were too many, which says nothing of tokens
	least     bool            // the window is what the view takes and little more, since nothing could leave
	installed []tidemark.EntryID
}

// answerRefusal answers a refusal: what the model API named is mended, what is too large made smaller. A reply that declined, with
// no error, is one as well. It reports whether the call may be made again.
func (s *Session) answerRefusal(ctx context.Context, r *run, v, asked View, c tidemark.Call, refused error) (bool, error) {
	if refused == nil {
		return s.reconsider(ctx, r, asked, c)
	}
	if again, err := s.mend(ctx, r, asked, refused); again || err != nil {
		return err == nil, err
	}
	var api *tidemark.APIError
	if !errors.As(refused, &api) || r.refits >= maxRefits {
		return false, refused
	}
	doubted := unexplained(*api)
	switch {
	case doubted && r.trial.doubted: // a smaller one is refused as well
		return false, errors.Join(refused, s.undoRetry(ctx, r))
	case doubted && !s.mostOf(v), !doubted && api.Class != tidemark.ClassOverflow:
		return s.guess(ctx, r, asked, refused)
	}
	if err := s.refit(ctx, r, v, *api); err != nil {
		if doubted {
			s.Logger.Warn("try a smaller request", "session", s.Key, "err", err)
			err = refused
		}
		return false, err
	}
	r.Attempt = 0 // it is another request
	return true, nil
}

// unexplained reports a refusal that may be for the size of a request, for all that it says: many servers have words of
// their own for it, or none.
func unexplained(api tidemark.APIError) bool {
	switch api.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		known := api.Class != tidemark.ClassBadRequest && api.Class != tidemark.ClassOverloaded
		return !known && api.Place == nil && (api.Param == "" || api.Param == "messages") && !ofParameter(api)
	}
	return false
}

// mostOf reports whether a view may be too large for the model: most of what it ever took in this life. After a refusal
// that was for something else nothing is, until the model takes a request.
func (s *Session) mostOf(v View) bool {
	return v.Size > MinWindow && 2*v.Size > tidemark.Tokens(s.mostTaken.Load()) && !s.doubts.Load()
}

// took keeps that a request was taken, and learns the window that was tried with it.
func (s *Session) took(ctx context.Context, r *run, v View, usage tidemark.Usage) error {
	s.doubts.Store(false)
	size := max(v.Size, usage.Context())
	s.mostTaken.Store(max(s.mostTaken.Load(), int64(size)))
	t := r.trial
	if r.trial = (trial{}); t.from == 0 || t.doubted || t.bytes {
		return nil
	}
	return s.learnAnd(ctx, r, t.from, max(s.settings().Window, size), tidemark.WindowHalved)
}

// retrySmaller compacts a view for a window that is tried.
func (s *Session) retrySmaller(ctx context.Context, r *run, v View, mode fitMode) error {
	before, taken := s.settings().Window, tidemark.Tokens(0)
	if r.trial.from == 0 {
		r.trial.from, taken = before, tidemark.Tokens(s.mostTaken.Load())
	}
	r.weigh(&v, v.Fixed+v.View.Tokens()) // what was reported of requests before may be too little
	r.trial.doubted = r.trial.doubted || mode == fitDoubted
	if err := s.useWindow(ctx, windowToTry(before, taken, v)); err != nil {
		return err
	}
	err := s.fitInto(ctx, r, v, before, 0, mode)
	if least := v.Size + v.Size/16; errors.Is(err, tidemark.ErrNoGain) && mode == fitForced && !r.trial.least && least < before {
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

// undoRetry takes back what made a request smaller that is refused all the same: its size was not why.
func (s *Session) undoRetry(ctx context.Context, r *run) error {
	s.doubts.Store(true)
	if len(r.trial.installed) == 0 {
		return nil
	}
	o := tidemark.Overlay{By: []string{"session"}, Lifts: r.trial.installed, Reason: string(fitDoubted)}
	_, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, o)
	if err != nil {
		return fmt.Errorf("take back a compaction: %w", err)
	}
	stmts = append(stmts, tidemark.Stmt{SQL: `UPDATE heads SET prompt = '' WHERE key = ?`, Args: []any{string(s.Key)}, Want: 1})
	return s.announce(ctx, r, "The model's API refused a smaller request as well. The compaction is taken back, and everything is in view as before.", stmts...)
}
