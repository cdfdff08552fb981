package room

import (
	"context"

	"github.com/tidemark-ai/tidemark"
)

// Queue is what was posted to the conversation, by the ids of inputs.
type Queue struct {
	// Post makes an errand durable and sets what may be used from it on; the same id twice is one, and changes nothing.
	Post func(ctx context.Context, e tidemark.Errand) error
	// Stop stops the run in work, by an input of an id.
	Stop func(ctx context.Context, id string) error
	// Find says what became of an input. Withdraw ends one that waits; any other is tidemark.ErrConflict.
	Find     func(ctx context.Context, id string) (Posted, error)
	Withdraw func(ctx context.Context, id string) error
	// Follow begins to listen for the ends of turns, until that is closed.
	Follow func() (Ends, error)
}

// Posted is what became of an input. The zero value is of one that is not there.
type Posted struct {
	There   bool
	Over    bool             // its turn has ended
	Reply   tidemark.EntryID // of its turn, the last one; empty where it has none
	Failure string           // why it has none, in words for people
	Spent   tidemark.Tokens  // by its turn, with what calls delegated
}

// Ends are the ends of turns, for one goroutine.
type Ends interface {
	// Next waits until a turn has ended, or for some time: another life may have it, of which nobody tells. It returns
	// tidemark.ErrDead when this life is over.
	Next(ctx context.Context) error
	Close()
}

// Allowance is what the conversation may use, and what a turn spends of it.
type Allowance struct {
	// Limits are what the conversation has set for itself; zero fields are as configured.
	Limits func() tidemark.Limits
	// Offered lists the tools that the model has.
	Offered func(ctx context.Context) ([]tidemark.Tool, error)
	// Account says where a turn stands at a call of a tool. Spend returns what notes what that call spends, in the place of
	// what was noted before.
	Account func(ctx context.Context, c Call) (Account, error)
	Spend   func(c Call, n tidemark.Tokens) tidemark.Stmt
}

// Account is where a turn stands at a call of a tool.
type Account struct {
	Before int             // calls of the tool that the turn made before
	Open   int             // calls of the tool in the round that have spent nothing and have no result
	Call   tidemark.Tokens // that the call spends, as noted
	Round  tidemark.Tokens // that all calls of the round spend
	Turn   tidemark.Tokens // that the turn has spent, with all of its calls
}
