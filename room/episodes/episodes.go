// Package episodes is the room of a conversation whose agent divides its work into episodes: it answers the tool that
// marks them, keeps their graph for each log, and says what the strategy of that name needs to know beyond its plan, how
// far each episode left the view, and what stands in one. What leaves, package compaction decides, and package episodes
// of the root says what an episode is. Begin with Room, then graph.go.
package episodes

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/room"
)

// tables are there where the strategy episodes was in force once. short is what the operator was told last of how
// far the view is over the budget.
var tables = room.Tables{Space: "session_marked", Steps: []string{
	`CREATE TABLE marked(log TEXT NOT NULL, n INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY(log, n)) WITHOUT ROWID`,
	`CREATE TABLE marked_logs(log TEXT PRIMARY KEY, upto INTEGER NOT NULL, short INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`,
}}

// Room knows the episodes of one conversation. What it keeps in memory can be lost at any time.
type Room struct {
	room.Self
	room.History
	room.View
	kept      atomic.Pointer[graph]    // nil while somebody has it
	uncounted atomic.Int64             // when a provider that did not count is asked again, in milliseconds
	told      atomic.Pointer[shortage] // what the operator was told of a budget that is not met
}

// Make makes the room.
func Make(p room.Ports) any { return &Room{Self: p.Self, History: p.History, View: p.View} }

var (
	_ room.Tabler        = (*Room)(nil)
	_ room.Tools         = (*Room)(nil)
	_ room.CallAnswerer  = (*Room)(nil)
	_ room.Divider       = (*Room)(nil)
	_ room.Budgeter      = (*Room)(nil)
	_ room.EpisodeReader = (*Room)(nil)
)

// Tables implements room.Tabler.
func (s *Room) Tables() room.Tables { return tables }

// strategy returns the strategy episodes, nil when it is not in force.
func (s *Room) strategy() *compaction.Episodes {
	for _, x := range s.Strategies() {
		if e, ok := x.(*compaction.Episodes); ok {
			return e
		}
	}
	return nil
}

// Tool is how the agent divides its work.
var Tool = tidemark.Tool{Name: episodes.ToolName, Description: episodes.Description, InputSchema: []byte(episodes.Schema), Idempotent: true}

// Tools implements room.Tools: the tool is offered while the strategy is in force.
func (s *Room) Tools(bool) []tidemark.Tool {
	if s.strategy() == nil {
		return nil
	}
	return []tidemark.Tool{Tool}
}

// Call implements room.Tools. Calls are answered before any runs, so none comes here unless the strategy came into force since.
func (s *Room) Call(ctx context.Context, c room.Call) tidemark.Block {
	out, err := s.Answer(ctx, c.Log, []string{c.ID})
	if err != nil {
		return tidemark.ToolResult(c.ID, err.Error(), true)
	}
	return out[0]
}

// Answers implements room.CallAnswerer.
func (s *Room) Answers() string {
	if s.strategy() == nil {
		return ""
	}
	return Tool.Name
}

// Answer implements room.CallAnswerer. Who answers somebody that may not change the conversation may still divide its own
// work: nothing of what others said is of an episode.
func (s *Room) Answer(ctx context.Context, log string, calls []string) ([]tidemark.Block, error) {
	out := make([]tidemark.Block, len(calls))
	return out, s.withGraph(ctx, log, func(g *episodes.Graph) error {
		told := g.Answer()
		for i, id := range calls {
			a, ok := told[id]
			if !ok {
				a = episodes.Answer{Text: "The call is not in the newest reply: nothing was marked.", Refused: true}
			}
			out[i] = a.Result(id)
		}
		return nil
	})
}

// Answered implements room.CallAnswerer. What fails is derived later.
func (s *Room) Answered(ctx context.Context, log string) {
	if err := s.withGraph(ctx, log, func(*episodes.Graph) error { return nil }); err != nil && ctx.Err() == nil {
		s.Warn("note episodes", err)
	}
}

// Divide implements room.Divider.
func (s *Room) Divide(ctx context.Context, log string, v compaction.View, force bool, use func(compaction.View) error) error {
	e := s.strategy()
	if e == nil || !force && v.Size <= e.Limit(s.Budget()) {
		return use(v)
	}
	return s.withGraph(ctx, log, func(g *episodes.Graph) error {
		v.Graph = g
		return use(v)
	})
}

// Left implements room.Divider.
func (s *Room) Left(ctx context.Context, log string, by []string, before, after compaction.View) (*room.EpisodesLeft, error) {
	e := s.strategy()
	if e == nil || !slices.Contains(by, e.Name()) {
		return nil, nil
	}
	out := &room.EpisodesLeft{Budget: e.Limit(s.Budget()), Short: e.Short(after, s.Budget())}
	return out, s.withGraph(ctx, log, func(g *episodes.Graph) error {
		was, is := standing(before, g), standing(after, g)
		for i := range was {
			switch {
			case is[i].Gone && !was[i].Gone:
				out.Whole++
			case is[i].Tokens < was[i].Tokens:
				out.Part++
			}
		}
		return nil
	})
}

// Ever implements room.Divider.
func (s *Room) Ever(ctx context.Context) (bool, error) { return s.Made.Has(ctx, tables) }

// standing tells how far episodes left a view. It counts what must stay as well, so it is none of a plan's ledgers.
func standing(v compaction.View, g *episodes.Graph) []episodes.State {
	v.Graph, v.Back, v.Returned = g, nil, nil
	return (&compaction.Episodes{}).States(v)
}
