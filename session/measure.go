package session

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/history"
	"github.com/tidemark-ai/tidemark/room"
)

// scale is what a provider counted of a view, or refused it with, and what we estimate of it.
type scale struct {
	counted, estimated tidemark.Tokens
	refused            bool // it counts more than what an earlier reply reported
}

// fitted is fit before a call of the model, and says where a budget of a room cannot be met.
func (s *Session) fitted(ctx context.Context, r *run, v View) (View, error) {
	b, ok := room.Find[room.Budgeter](s.rooms)
	if !ok || !b.Budgets() {
		v, err := s.fit(ctx, r, r.measured(v), fitAuto)
		return r.measured(v), err
	}
	v = s.countedExactly(ctx, r, b, v)
	if v.Anchor { // what leaves is counted in the same measure, until the provider counts again
		r.scale = scale{counted: v.Size, estimated: v.Fixed + v.View.Tokens()}
	}
	v, err := s.fit(ctx, r, v, fitAuto)
	if err != nil {
		return v, err
	}
	if v = r.measured(v); s.settings().NoCompaction {
		return v, nil
	}
	over, err := b.Over(ctx, r.ID, v.Seen)
	r.over = over.Advice
	if err != nil || over.Text == "" {
		return v, err
	}
	event := tidemark.Event{Type: "notice", Text: over.Text, Data: []byte(mustJSON(Compacted{Reason: "budget", By: []string{over.By}, Before: v.Size, After: v.Size,
		Limit: s.Budget().Limit(), Episodes: &over.Left}))}
	if err := s.stepEvent(ctx, r, event, over.Stmts...); err != nil {
		return v, fmt.Errorf("tell of a budget: %w", err)
	}
	over.Then()
	return v, nil
}

// countedExactly gives a view the size that the provider counts, once a turn, where that decides about a budget. All that
// follows in the turn stands on that figure. Without an answer all of it stands on the estimate.
func (s *Session) countedExactly(ctx context.Context, r *run, b room.Budgeter, v View) View {
	v = r.measured(v)
	c, ok := s.Provider.(tidemark.Counter)
	if !ok || r.counted || s.settings().NoCompaction {
		return v
	}
	n, asked := b.Count(ctx, v.Size, func(ctx context.Context) (tidemark.Tokens, error) {
		n, err := c.Count(ctx, s.request(v))
		if err == nil && (n < v.Size/history.CountFar || n > v.Size*history.CountFar) {
			err = fmt.Errorf("it counts %d tokens where %d are estimated: %w", n, v.Size, tidemark.ErrInvalid)
		}
		return n, err
	})
	if r.counted = asked; n > 0 {
		v.Size, v.Anchor = n, true
	}
	return v
}

// measured gives a view of which only an estimate is known the scale that the turn stands on.
func (r *run) measured(v View) View {
	switch {
	case r.scale.refused:
		v.Size, v.Anchor, v.Refused = max(v.Size, episodes.Scaled(v.Fixed+v.View.Tokens(), r.scale.counted, r.scale.estimated)), true, true
	case r.scale.estimated > 0 && !v.Anchor:
		v.Size, v.Anchor = episodes.Scaled(v.Fixed+v.View.Tokens(), r.scale.counted, r.scale.estimated), true
	}
	return v
}

// measure gives a size that is estimated in the measure of a view, which may be a provider's.
func (v View) measure(estimated tidemark.Tokens) tidemark.Tokens {
	return episodes.Scaled(estimated, v.Size, v.Fixed+v.View.Tokens())
}
