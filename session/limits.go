package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/room"
)

// Bounds of the limits of an errand.
const (
	maxLimitRounds = 1_000
	maxLimitBudget = tidemark.Tokens(1_000_000_000)
)

// validLimits names the field that is out of bounds.
func validLimits(l tidemark.Limits) error {
	switch {
	case l.Window != 0 && (l.Window < MinWindow || l.Window > MaxWindow):
		return fmt.Errorf("limits.window %d: want %d to %d tokens: %w", l.Window, MinWindow, MaxWindow, tidemark.ErrInvalid)
	case l.Rounds < 0 || l.Rounds > maxLimitRounds:
		return fmt.Errorf("limits.maxRounds %d: want 1 to %d, or 0 for the configured bound: %w", l.Rounds, maxLimitRounds, tidemark.ErrInvalid)
	case l.Budget < 0 || l.Budget > maxLimitBudget:
		return fmt.Errorf("limits.budget %d: want 1 to %d tokens, or 0 for no bound: %w", l.Budget, maxLimitBudget, tidemark.ErrInvalid)
	case l.Depth < 0 || l.Depth > tidemark.MaxDepth:
		return fmt.Errorf("limits.depth %d: want 0 to %d: %w", l.Depth, tidemark.MaxDepth, tidemark.ErrInvalid)
	case len(l.Model) > maxTitle:
		return fmt.Errorf("limits.model may have %d bytes: %w", maxTitle, tidemark.ErrInvalid)
	case len(l.Strategies) > approval.MaxGlobs:
		return fmt.Errorf("limits.strategies names %d, at most %d: %w", len(l.Strategies), approval.MaxGlobs, tidemark.ErrInvalid)
	}
	return approval.CheckGlobs("limits.tools", l.Tools)
}

// permits reports whether the limits in force leave a tool.
func (s *Session) permits(name string) bool {
	globs := s.settings().limits.Tools
	return len(globs) == 0 || approval.Any(globs, name)
}

// permitted takes out the tools that the limits in force do not leave.
func (s *Session) permitted(tools []tidemark.Tool) []tidemark.Tool {
	return slices.DeleteFunc(tools, func(t tidemark.Tool) bool { return !s.permits(t.Name) })
}

// notPermitted answers a call that the limits in force do not leave: a model may name what it was not offered.
func notPermitted(c call) tidemark.Block {
	return tidemark.ToolResult(c.ID, fmt.Sprintf("not run: this conversation may not use %.80q; use the tools that you have.", c.Block.Name), true)
}

// strategies are what makes the context smaller here, in the order in which they plan.
func (s *Session) strategies() []compaction.Strategy {
	if now := s.settings(); now != nil {
		return now.strategies
	}
	return s.Strategies
}

// asked returns the strategies that are to plan for a view, none where nothing is to be done. A view within the limit
// is for those with a limit of their own, and so is every view while the summariser rests; rests says that.
func (s *Session) asked(ctx context.Context, v View, mode fitMode, hard bool) (list []compaction.Strategy, rests bool, err error) {
	list = s.strategies()
	if mode != fitAuto {
		return list, false, nil
	}
	if s.settings().NoCompaction || !compaction.Due(list, v.View, s.Budget()) {
		return nil, false, nil
	}
	if !s.Budget().Over(v.View) || hard {
		return list, false, nil
	}
	if rests, err = s.cooling(ctx); !rests || err != nil {
		return list, false, err
	}
	if list = compaction.Early(list); !compaction.Due(list, v.View, s.Budget()) {
		list = nil
	}
	return list, true, nil
}

// narrowed are the strategies that are named. All of them, where nothing is named or what is was configured once
// and is not any more: a conversation without any ends at its window.
func narrowed(all []compaction.Strategy, names []string) []compaction.Strategy {
	var out []compaction.Strategy
	for _, x := range all {
		if slices.Contains(names, x.Name()) {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// mayStart refuses an errand that asks for strategies which are not configured.
func (s *Session) mayStart(l tidemark.Limits) error {
	have := make([]string, len(s.Strategies))
	for i, x := range s.Strategies {
		have[i] = x.Name()
	}
	for _, name := range l.Strategies {
		if !slices.Contains(have, name) {
			return fmt.Errorf("limits.strategies: %.40q is not configured: want some of %s (compaction.strategies): %w", name, strings.Join(have, ", "), tidemark.ErrInvalid)
		}
	}
	return validLimits(l)
}

// setLimits are those that the conversation has set for itself, beyond the configured settings.
func (s *Session) setLimits() tidemark.Limits {
	now := s.settings()
	l := now.limits
	l.Model, l.Window = "", 0
	if now.Model != s.Settings.Model {
		l.Model = now.Model
	}
	if now.set != cmp.Or(s.Settings.Window, DefaultWindow) {
		l.Window = now.set
	}
	return l
}

// account is where a turn stands at a call of a tool.
func (s *Session) account(ctx context.Context, c room.Call) (a room.Account, err error) {
	rows, err := s.DB.Query(ctx, `SELECT (SELECT count(*) FROM calls WHERE run = ? AND (round < ? OR round = ? AND n < ?) AND json_extract(call, '$.name') = ?),
		(SELECT count(*) FROM calls WHERE run = ? AND round = ? AND spent = 0 AND state <> 'done' AND json_extract(call, '$.name') = ?),
		(SELECT spent FROM calls WHERE run = ? AND round = ? AND n = ?),
		(SELECT coalesce(sum(spent), 0) FROM calls WHERE run = ? AND round = ?),
		(SELECT coalesce(sum(spent), 0) FROM calls WHERE run = ?) + (SELECT spent FROM runs WHERE id = ?)`,
		c.Run, c.Round, c.Round, c.N, c.Tool, c.Run, c.Round, c.Tool, c.Run, c.Round, c.N, c.Run, c.Round, c.Run, c.Run)
	if err != nil {
		return a, err
	}
	r := rows[0]
	return room.Account{Before: int(r.Int(0)), Open: int(r.Int(1)), Call: tidemark.Tokens(r.Int(2)), Round: tidemark.Tokens(r.Int(3)), Turn: tidemark.Tokens(r.Int(4))}, nil
}

// callSpends notes what a call spends.
func callSpends(c room.Call, n tidemark.Tokens) tidemark.Stmt {
	return tidemark.Stmt{SQL: `UPDATE calls SET spent = ? WHERE run = ? AND round = ? AND n = ?`, Args: []any{int64(n), c.Run, c.Round, c.N}, Want: 1}
}

// spent is what a run has spent so far, with what its calls delegated.
func (s *Session) spent(ctx context.Context, run string) (tidemark.Tokens, error) {
	rows, err := s.DB.Query(ctx, `SELECT spent + (SELECT coalesce(sum(spent), 0) FROM calls WHERE run = runs.id) FROM runs WHERE id = ? LIMIT 1`, run)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return tidemark.Tokens(rows[0].Int(0)), nil
}

// withinBudget ends a turn that has spent what an errand allowed it, before it calls the model again.
func (s *Session) withinBudget(ctx context.Context, r *run) error {
	budget := s.settings().limits.Budget
	if budget == 0 {
		return nil
	}
	spent, err := s.spent(ctx, r.ID)
	if err != nil {
		return fmt.Errorf("read what the turn spent: %w", err)
	}
	if spent < budget {
		return nil
	}
	return &overBudgetError{spent, budget}
}

// overBudgetError ends a turn visibly.
type overBudgetError struct{ spent, budget tidemark.Tokens }

func (e *overBudgetError) Error() string {
	return fmt.Sprintf("the turn spent %d tokens, and may spend %d", e.spent, e.budget)
}

// Unwrap makes it a bound.
func (e *overBudgetError) Unwrap() error { return tidemark.ErrTooLarge }
