package room

import (
	"context"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/memory"
)

// DefaultPack is the budget of what is pushed to the model, in tokens. Papers/total-recall §5.3; the shares
// are those of Annex A.2. What of them stands in the view anyway, system prompt, persona, markers and the
// newest messages, is not repeated, so the pack has the shares of the task and of what is retrieved.
const DefaultPack tidemark.Tokens = 4096

const (
	shareTask      = 3  // of 100
	shareRetrieved = 47 // of 100

	// SharePack is how much of its budget a pack takes, of 100.
	SharePack = shareTask + shareRetrieved
)

// PackShares divides a budget: rest is for the task card, all for that with its constraints and what is retrieved. What is to
// be heeded takes its room from what is retrieved, since a rule that is not shown is not kept. Without a budget nothing is
// pushed, and the card is as long, where it is shown, as by default.
func PackShares(budget tidemark.Tokens) (rest, all tidemark.Tokens) {
	if budget <= 0 {
		budget = DefaultPack
	}
	return budget * shareTask / 100, budget * SharePack / 100
}

// Note is what the model must know now and what would break the cached prefix if it stood in the system prompt: the pack, if
// there is one, and the time, in the zone of the agent.
func Note(pack string, now time.Time) string {
	is := now.Format("[It is Monday, 2006-01-02 15:04 MST.]")
	if pack == "" {
		return is
	}
	return pack + "\n\n" + is
}

// Packer is a room that says what is pushed to the model beside the messages of a call.
type Packer interface {
	// Turn returns what makes the pack of each call of a turn, as long as one life works on it: empty for none, with the size of
	// the view and all that is pushed beside it. What is asked for once a turn it keeps.
	Turn(t PackTurn) func(ctx context.Context, v Seen) (pack string, size tidemark.Tokens)
	// Refused is told of a pack that the model's API refused: it is pushed again when it is another.
	Refused(pack string)
}

// PackTurn is a turn whose calls have a pack, with the rooms that have something for it, nil where there is none.
type PackTurn struct {
	Started time.Time
	Begun   func(ctx context.Context) (int64, error) // as that of a Call
	Task    Pusher
	Find    Retriever
	Records Recorder
}

// Windows are how many tokens the models of the session take.
type Windows interface {
	// Names are the models in use.
	Names() []string
	// TakeUp puts in force what was heard of them.
	TakeUp(ctx context.Context, heard []tidemark.Window) error
}

// Knower is a room that knows what the agent remembers, for a summariser, which need not write it down again.
type Knower interface {
	// Memories returns the lines of memory that the system prompt of a view has and what came since, the conversation's own,
	// too; what cannot be read is left out.
	Memories(ctx context.Context, v Seen) []string
	// Near returns the facts that are near what persons said in some messages, for the model that draws new ones from them;
	// none where nobody compares facts.
	Near(ctx context.Context, items []compaction.Item) []memory.Known
}
