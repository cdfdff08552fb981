package room

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// Seen is what the model sees of a log.
type Seen struct {
	compaction.View
	Log    string                   // session id
	Shown  []compaction.Replacement // the overlays that are in effect
	System string                   // the prompt
	Mark   string                   // hash of the mark of System's memory, see Records.Kept; empty when that has none
	Anchor bool                     // Size rests on what the provider reported
}

// CallAnswerer is a room with a tool whose calls are answered together and in their order, before any call of the reply runs:
// calls run side by side.
type CallAnswerer interface {
	// Answers returns the name of the tool, "" while the model does not have it.
	Answers() string
	// Answer returns the results of such calls, by id, of the newest reply of a log: the same ones when it is asked again.
	Answer(ctx context.Context, log string, calls []string) ([]tidemark.Block, error)
	// Answered takes up results that stand in the log now.
	Answered(ctx context.Context, log string)
}

// Divider is a room that knows which episodes the work in a log is divided into.
type Divider interface {
	// Divide calls use with a view of a log, which has the episodes of it if a strategy is to plan by them: over their budget,
	// or with force. They are use's until that returns.
	Divide(ctx context.Context, log string, v compaction.View, force bool, use func(compaction.View) error) error
	// Left says what an act of some strategies did to episodes, nil where they have no part in it.
	Left(ctx context.Context, log string, by []string, before, after compaction.View) (*EpisodesLeft, error)
	// Ever reports whether episodes may have left a view before.
	Ever(ctx context.Context) (bool, error)
}

// EpisodesLeft is what an act did to episodes.
type EpisodesLeft struct {
	Whole  int             `json:"whole"` // nothing stands of so many any more
	Part   int             `json:"part"`  // and less of so many
	Budget tidemark.Tokens `json:"budgetTokens"`
	Short  tidemark.Tokens `json:"shortTokens,omitempty"` // over it still
}

// String says how many left.
func (l EpisodesLeft) String() string {
	return fmt.Sprintf("Episodes: %d left whole, %d in part", l.Whole, l.Part)
}

// Budgeter is a room with a budget of its own for the view, below what the window leaves.
type Budgeter interface {
	// Budgets reports whether the budget is in force.
	Budgets() bool
	// Count has the provider count a view whose size is estimated where that decides. asked says that it was asked, and n is 0
	// where it gave no answer in time.
	Count(ctx context.Context, size tidemark.Tokens, count func(context.Context) (tidemark.Tokens, error)) (n tidemark.Tokens, asked bool)
	// Over says what is to be told of a view from which nothing more can leave in this turn.
	Over(ctx context.Context, run string, v Seen) (Overdraft, error)
}

// Overdraft is what is told of a budget. The zero value tells nothing.
type Overdraft struct {
	Advice string // to the model, with its next call
	Text   string // to people; with it come the rest
	By     string // the strategy whose budget it is
	Left   EpisodesLeft
	Stmts  []tidemark.Stmt
	Then   func() // when it is written
}

// EpisodeReader is a room that tells what it knows of episodes.
type EpisodeReader interface {
	// ReadEpisode returns a page of an episode of a log, as the model reads it; an unknown name is tidemark.ErrNotFound.
	ReadEpisode(ctx context.Context, log, name string, offset int) (string, error)
	// Divided says how a view stands to the budget, nil where there is none. It reads no messages.
	Divided(ctx context.Context, v Seen) *Divided
}

// Divided is how a call of the model stood to the budget of episodes.
type Divided struct {
	Budget   tidemark.Tokens `json:"budget"`
	LowWater tidemark.Tokens `json:"lowWater"`
	Size     tidemark.Tokens `json:"size"`            // of what was sent
	Short    tidemark.Tokens `json:"short,omitempty"` // over the budget
	Open     string          `json:"open,omitempty"`  // episode
	Gone     int             `json:"gone"`            // episodes that left whole
	Partial  int             `json:"partial"`         // and in part
}
