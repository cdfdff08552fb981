package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// planned is [compaction.Plan] with the episodes of the log, where a strategy asks for them.
func (s *Session) planned(ctx context.Context, log string, list []compaction.Strategy, v compaction.View, force bool) (act compaction.Act, err error) {
	e := s.episodic()
	if e == nil || !force && v.Size <= e.Limit(s.Budget()) {
		return compaction.Plan(list, v, s.Budget(), force)
	}
	err = s.withGraph(ctx, log, func(g *episodes.Graph) error {
		v.Graph = g
		act, err = compaction.Plan(list, v, s.Budget(), force)
		return err
	})
	return act, err
}

// EpisodesLeft is what an act did to episodes: a part of [Compacted].
type EpisodesLeft struct {
	Whole  int             `json:"whole"` // nothing stands of so many any more
	Part   int             `json:"part"`  // and less of so many
	Budget tidemark.Tokens `json:"budgetTokens"`
	Short  tidemark.Tokens `json:"shortTokens,omitempty"` // over it still
}

func (l EpisodesLeft) line(b *strings.Builder) {
	fmt.Fprintf(b, "Episodes: %d left whole, %d in part", l.Whole, l.Part)
}

// episodesLeft counts what a plan does to episodes, by the measure of the view before; it does nothing where they have no
// part in it.
func (s *Session) episodesLeft(ctx context.Context, p *plan, v View, after compaction.View, done *Compacted) error {
	e := s.episodic()
	if e == nil || !slices.Contains(p.Act.By, e.Name()) {
		return nil
	}
	after.Size = v.measure(v.Fixed + after.Tokens())
	done.After, done.Episodes = after.Size, &EpisodesLeft{Budget: e.Limit(s.Budget()), Short: e.Short(after, s.Budget())}
	return s.withGraph(ctx, p.Log, func(g *episodes.Graph) error {
		was, is := standing(v.View, g), standing(after, g)
		for i := range was {
			switch {
			case is[i].Gone && !was[i].Gone:
				done.Episodes.Whole++
			case is[i].Tokens < was[i].Tokens:
				done.Episodes.Part++
			}
		}
		return nil
	})
}

// standing tells how far episodes left a view. It counts what must stay as well, so it is none of a plan's ledgers.
func standing(v compaction.View, g *episodes.Graph) []episodes.State {
	v.Graph, v.Back, v.Returned = g, nil, nil
	return (&compaction.Episodes{}).States(v)
}

// fitted is fit before a call of the model, and says where the budget of episodes cannot be met.
func (s *Session) fitted(ctx context.Context, r *run, v View) (View, error) {
	e := s.episodic()
	if e == nil {
		v, err := s.fit(ctx, r, r.measured(v), fitAuto)
		return r.measured(v), err
	}
	v = s.countedExactly(ctx, r, e, v)
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
	return v, s.shortage(ctx, r, e, v)
}

// scale is what a provider counted of a view, or refused it with, and what we estimate of it.
type scale struct {
	counted, estimated tidemark.Tokens
	refused            bool // it counts more than what an earlier reply reported
}

// countNear is how far below the budget an estimate may be for the provider to be asked: a tenth of it.
const countNear = 10

// countFar is how many times larger or smaller than the estimate a count may be to be believed.
const countFar = 4

// How long a count is waited for, and for how long a provider that gave none is not asked: turns go on without.
const (
	countWait = 2 * time.Second
	countRest = 5 * time.Minute
)

// countedExactly gives a view the size that the provider counts, once a turn and near the budget only, where that is
// configured. All that follows in the turn stands on that figure. Without an answer all of it stands on the estimate.
func (s *Session) countedExactly(ctx context.Context, r *run, e *compaction.Episodes, v View) View {
	v = r.measured(v)
	limit := e.Limit(s.Budget())
	c, ok := s.Provider.(tidemark.Counter)
	now := s.Runtime.Now()
	if !e.Exact || !ok || r.counted || s.settings().NoCompaction || v.Size < limit-limit/countNear || now.UnixMilli() < s.uncounted.Load() {
		return v
	}
	r.counted = true
	limited, stop := s.Runtime.WithTimeout(ctx, countWait)
	defer stop()
	n, err := c.Count(limited, s.request(v))
	if err == nil && (n < v.Size/countFar || n > v.Size*countFar) {
		err = fmt.Errorf("it counts %d tokens where %d are estimated: %w", n, v.Size, tidemark.ErrInvalid)
	}
	if err != nil || n <= 0 {
		if ctx.Err() == nil {
			s.uncounted.Store(now.Add(countRest).UnixMilli())
			s.Logger.Warn("count tokens", "session", s.Key, "err", err)
		}
		return v
	}
	v.Size, v.Anchor = n, true
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

// toldOf is what the operator was told last of a budget that is not met: by how much, 0 for nothing.
type toldOf struct {
	log string
	episodes.Shortage
}

// shortage tells the operator that the budget cannot be met when that begins, when it grows much, and when a whole turn had room again;
// the model is told with each call. It costs a query in each life, and one transaction each time.
func (s *Session) shortage(ctx context.Context, r *run, e *compaction.Episodes, v View) error {
	limit, short := e.Limit(s.Budget()), e.Short(v.View, s.Budget())
	told, err := s.toldShort(ctx, v.Log)
	if err != nil {
		return err
	}
	now := *told
	begins, over := now.See(r.ID, v.Size, limit)
	r.over = ""
	var text string
	switch {
	case short > 0:
		open, err := s.openEpisode(ctx, v.Log)
		if err != nil {
			return err
		}
		r.over = overAdvice(short, limit, open)
		if begins {
			text = fmt.Sprintf("The context is %d tokens over its budget of %d, and no episode can leave: %s.", short, limit, whyShort(v, open))
		}
	case over:
		text = fmt.Sprintf("The context is within its budget of %d tokens again: %d.", limit, v.Size)
	case v.Size > limit-limit/countNear:
		r.over = markAdvice(v, limit)
	}
	if text == "" {
		s.shortfall.Store(&now)
		return nil
	}
	if short > 0 {
		s.Logger.Warn("the budget of episodes is not met", "session", s.Key, "budget", limit, "short", short)
	}
	event := tidemark.Event{Type: "notice", Text: text, Data: []byte(mustJSON(Compacted{Reason: "budget", By: []string{e.Name()}, Before: v.Size, After: v.Size,
		Limit: s.Budget().Limit(), Episodes: &EpisodesLeft{Budget: limit, Short: short}}))}
	if err := s.made.Open(ctx, markedTables); err != nil {
		return err
	}
	noted := tidemark.Stmt{SQL: `INSERT INTO marked_logs(log, upto, short) VALUES(?, 0, ?) ON CONFLICT(log) DO UPDATE SET short = excluded.short`,
		Args: []any{v.Log, int64(short)}, Want: 1}
	if err := s.stepEvent(ctx, r, event, noted); err != nil {
		return fmt.Errorf("tell of a budget: %w", err)
	}
	s.shortfall.Store(&now)
	return nil
}

// toldShort is what the operator was told last of a log.
func (s *Session) toldShort(ctx context.Context, log string) (*toldOf, error) {
	if t := s.shortfall.Load(); t != nil && t.log == log {
		return t, nil
	}
	t := &toldOf{log: log}
	rows, err := s.made.Query(ctx, markedTables, `SELECT short FROM marked_logs WHERE log = ? LIMIT 1`, log)
	if err != nil {
		return nil, fmt.Errorf("read what was told of a budget: %w", err)
	}
	if len(rows) > 0 {
		t.By = tidemark.Tokens(rows[0].Int(0))
	}
	s.shortfall.Store(t)
	return t, nil
}

// openEpisode is the name of the episode that is open, empty for none.
func (s *Session) openEpisode(ctx context.Context, log string) (name string, err error) {
	err = s.withGraph(ctx, log, func(g *episodes.Graph) error {
		if a := g.Active(); a != nil {
			name = clip.Line(a.String(), shownEpisode)
		}
		return nil
	})
	return name, err
}

// shownEpisode bounds the name of an episode in a note, in bytes.
const shownEpisode = 60

// whyShort says why nothing more leaves a view.
func whyShort(v View, open string) string {
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
func markAdvice(v View, limit tidemark.Tokens) string {
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
