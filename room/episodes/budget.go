package episodes

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/room"
)

// near is how far below the budget an estimate may be for the provider to be asked: a tenth of it.
const near = 10

// How long a count is waited for, and for how long a provider that gave none is not asked: turns go on without.
const (
	countWait = 2 * time.Second
	countRest = 5 * time.Minute
)

// Budgets implements room.Budgeter.
func (s *Room) Budgets() bool { return s.strategy() != nil }

// Count implements room.Budgeter, where that is configured, and near the budget only.
func (s *Room) Count(ctx context.Context, size tidemark.Tokens, count func(context.Context) (tidemark.Tokens, error)) (n tidemark.Tokens, asked bool) {
	e, now := s.strategy(), s.Runtime.Now()
	if e == nil || !e.Exact || now.UnixMilli() < s.uncounted.Load() {
		return 0, false
	}
	if limit := e.Limit(s.Budget()); size < limit-limit/near {
		return 0, false
	}
	limited, stop := s.Runtime.WithTimeout(ctx, countWait)
	defer stop()
	n, err := count(limited)
	if err == nil && n > 0 {
		return n, true
	}
	if ctx.Err() == nil {
		s.uncounted.Store(now.Add(countRest).UnixMilli())
		s.Logger.Warn("count tokens", "session", s.Key, "err", err)
	}
	return 0, true
}

// shortage is what the operator was told last of a budget that is not met: by how much, 0 for nothing.
type shortage struct {
	log string
	episodes.Shortage
}

// Over implements room.Budgeter: people are told that the budget cannot be met when that begins, when it grows much, and when a
// whole turn had room again; the model is told with each call. It costs a query in each life, and one transaction each time.
func (s *Room) Over(ctx context.Context, run string, v room.Seen) (room.Overdraft, error) {
	e := s.strategy()
	if e == nil {
		return room.Overdraft{}, nil
	}
	limit, short := e.Limit(s.Budget()), e.Short(v.View, s.Budget())
	told, err := s.toldOf(ctx, v.Log)
	if err != nil {
		return room.Overdraft{}, err
	}
	now := *told
	begins, over := now.See(run, v.Size, limit)
	out := room.Overdraft{By: e.Name(), Left: room.EpisodesLeft{Budget: limit, Short: short}, Then: func() { s.told.Store(&now) }}
	switch {
	case short > 0:
		var open string
		err := s.withGraph(ctx, v.Log, func(g *episodes.Graph) error {
			open = openName(g)
			return nil
		})
		if err != nil {
			return room.Overdraft{}, err
		}
		out.Advice = overAdvice(short, limit, open)
		if begins {
			out.Text = fmt.Sprintf("The context is %d tokens over its budget of %d, and no episode can leave: %s.", short, limit, whyShort(v.View, open))
		}
	case over:
		out.Text = fmt.Sprintf("The context is within its budget of %d tokens again: %d.", limit, v.Size)
	case v.Size > limit-limit/near:
		out.Advice = markAdvice(v.View, limit)
	}
	if out.Text == "" {
		s.told.Store(&now)
		return out, nil
	}
	if short > 0 {
		s.Logger.Warn("the budget of episodes is not met", "session", s.Key, "budget", limit, "short", short)
	}
	out.Stmts = []tidemark.Stmt{{SQL: `INSERT INTO marked_logs(log, upto, short) VALUES(?, 0, ?) ON CONFLICT(log) DO UPDATE SET short = excluded.short`,
		Args: []any{v.Log, int64(short)}, Want: 1}}
	return out, s.Made.Open(ctx, tables)
}

// toldOf is what the operator was told last of a log.
func (s *Room) toldOf(ctx context.Context, log string) (*shortage, error) {
	if t := s.told.Load(); t != nil && t.log == log {
		return t, nil
	}
	t := &shortage{log: log}
	rows, err := s.Made.Query(ctx, tables, `SELECT short FROM marked_logs WHERE log = ? LIMIT 1`, log)
	if err != nil {
		return nil, fmt.Errorf("read what was told of a budget: %w", err)
	}
	if len(rows) > 0 {
		t.By = tidemark.Tokens(rows[0].Int(0))
	}
	return t, nil
}

// shownName bounds the name of an episode in a note, in characters.
const shownName = 60

// openName is the episode that is open, as notes name it; empty for none.
func openName(g *episodes.Graph) string {
	if a := g.Active(); a != nil {
		return clip.Line(a.String(), shownName)
	}
	return ""
}

// whyShort says why nothing more leaves a view.
func whyShort(v compaction.View, open string) string {
	switch {
	case open != "":
		return open + " is open"
	case len(v.Back)+len(v.Returned) > 0:
		return "what stands was brought back by undo, was said by people, is pinned, or is not finished"
	}
	return "what stands was said by people, is pinned, or is not finished"
}

// overAdvice is what the model is told of a budget that is not met.
func overAdvice(short, limit tidemark.Tokens, open string) string {
	what := "Divide what you do with delimiter; episodes that ended leave."
	if open != "" {
		what = "Open is " + open + ": end it with delimiter as soon as you can."
	}
	return fmt.Sprintf("[The context is %d tokens over its budget of %d, and nothing more can leave. %s]", short, limit, what)
}

// markAdvice is what the model is told shortly before something leaves, when it marks nothing.
func markAdvice(v compaction.View, limit tidemark.Tokens) string {
	works := false
	for i := range v.Items {
		for n := range v.Items[i].Message.Content {
			if b := &v.Items[i].Message.Content[n]; b.Type == tidemark.TypeToolUse {
				if b.Name == episodes.ToolName {
					return ""
				}
				works = true
			}
		}
	}
	if !works {
		return ""
	}
	return fmt.Sprintf("[The context has %d of %d tokens. Divide work with delimiter: episodes that ended leave first.]", v.Size, limit)
}
