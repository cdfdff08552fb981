package room

import (
	"context"

	"github.com/tidemark-ai/tidemark"
)

// Turns is the run in work.
type Turns struct {
	// Active returns the run that works in this life, "" for none.
	Active func() (run string)
	// Usage is what the calls of a run cost, as far as the newest records tell.
	Usage func(ctx context.Context, run string) tidemark.Usage
	// GoOn returns what makes a run due that rests, and the present log; tidemark.ErrConflict when it is written and the
	// run has ended, or was stopped. Resume takes it up at once.
	GoOn   func(ctx context.Context, run string) (log string, stmts []tidemark.Stmt, err error)
	Resume func()
	// Hold takes the one run of the session for work, so that nothing else writes into it meanwhile; tidemark.ErrBusy while
	// a turn is in work. Behind work that does not fail the run has ended, and rooms and the agent are told, unless it did so
	// with Held.Move.
	Hold func(ctx context.Context, work func(h Held) error) error
}

// Held is the run of a session that a room works in.
type Held interface {
	// Append gathers a message for the next Write, behind a link of the chain of the log; it fills the payload of its entry, and
	// its link.
	Append(ctx context.Context, e *tidemark.Entry, m tidemark.Message, prev tidemark.Hash) error
	// Write writes what was gathered, and something else; tidemark.ErrConflict where the run is another's by now.
	Write(ctx context.Context, stmts ...tidemark.Stmt) error
	// Size is how large the view of the log is, without what was gathered; with fit it is compacted first where that is over
	// the limit. It is asked before the first Append, or the context that Write tells of is only what was gathered.
	Size(ctx context.Context, fit bool) (tidemark.Tokens, error)
	// Move has the session go on from a place in a log of its own, with what else is written then, and ends the run.
	Move(ctx context.Context, i tidemark.SessionInfo, from Place, stmts ...tidemark.Stmt) error
}

// Lease tells apart who works on something in several lives of a session: an object that should be gone but is not is of an
// earlier one.
type Lease struct {
	// Owner returns a new name for who works on something. Bound sorts behind all those of this life, and before those of
	// later ones.
	Owner func() string
	Bound func() string
	// Held returns what holds while no later life has begun.
	Held func() tidemark.Stmt
}
