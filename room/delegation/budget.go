package delegation

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// keptShare is how many parts what is left of a turn's budget has, of which one stays with the parent, to read answers with.
const keptShare = 4

// share is the part of a turn's budget that a call may have, which is no more than most: of several that begin at once each
// has its part of what is left. left is what the turn has not spent.
func share(a room.Account, budget, most tidemark.Tokens) (part, left tidemark.Tokens) {
	left = budget - a.Turn
	before := left + a.Round // what others of this round were given is spent already
	return min(most, (before-before/keptShare-a.Round)/tidemark.Tokens(max(a.Open, 1))), left
}

// grant gives a call a part of the turn's budget, where it has one, and writes it down. A call that had its part in an earlier
// life keeps it.
func (s *Room) grant(ctx context.Context, c room.Call, most tidemark.Tokens) (tidemark.Tokens, error) {
	a, err := s.Account(ctx, c)
	if err != nil {
		return 0, fmt.Errorf("read the budget: %w", err)
	}
	if a.Call > 0 {
		return a.Call, nil
	}
	if budget := s.Limits().Budget; budget > 0 {
		var left tidemark.Tokens
		if most, left = share(a, budget, most); most < MinBudget {
			return 0, fmt.Errorf("%d tokens are left of this turn's budget, too few to delegate: do it yourself, or say what is left: %w", max(left, 0), tidemark.ErrInvalid)
		}
	}
	return most, s.spend(ctx, c, most)
}

// spend writes down what a call delegated: first what it may cost, then what it did.
func (s *Room) spend(ctx context.Context, c room.Call, n tidemark.Tokens) error {
	if err := s.DB.Tx(ctx, []tidemark.Stmt{c.Fence(), s.Spend(c, n)}); err != nil {
		return fmt.Errorf("note the budget of call %s: %w", c.ID, err)
	}
	return nil
}

// spent is spend for a call that has its answer, whether that is noted or not.
func (s *Room) spent(ctx context.Context, c room.Call, n tidemark.Tokens) {
	if err := s.spend(ctx, c, n); err != nil {
		s.Warn("note what was delegated", err)
	}
}
