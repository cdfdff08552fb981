package tidemark

import (
	"context"
	"time"
)

// Errand is work that an actor gives a conversation, where no person writes: the run of a schedule, or what
// another conversation delegates.
type Errand struct {
	ID     string `json:"id"`   // of the input: the same twice is one turn
	Text   string `json:"text"` // what is asked
	Origin Origin `json:"origin"`
	Limits Limits `json:"limits,omitzero"` // what the conversation may use, from this errand on
}

// Limits bound what a conversation may use beyond the configured settings. Zero fields leave those.
type Limits struct {
	Model      string   `json:"model,omitempty"`
	Window     Tokens   `json:"window,omitempty"`
	Rounds     int      `json:"maxRounds,omitempty"`  // model calls in one turn
	Budget     Tokens   `json:"budget,omitempty"`     // tokens that one turn may spend, input and output of all its calls
	Strategies []string `json:"strategies,omitempty"` // of those that are configured, by name
	Tools      []string `json:"tools,omitempty"`      // globs of the tools that are offered
	Depth      int      `json:"depth,omitempty"`      // how many conversations delegated one to the next above it
}

// MaxDepth bounds Limits.Depth.
const MaxDepth = 3

// Outcome is what came of an errand.
type Outcome struct {
	Text  string  `json:"text,omitempty"`  // the last words of the model
	Error string  `json:"error,omitempty"` // why there is no answer, in words for people
	Entry EntryID `json:"entry,omitempty"` // of the answer, in the log of the conversation
	Usage Usage   `json:"usage"`           // of all calls of the conversation since its last reset
	Spent Tokens  `json:"spent,omitempty"` // of the turn, with what it delegated: what counts towards a budget
}

// Decision is what the owner says of a tool call that waits for it.
type Decision struct {
	Code  string `json:"code"` // names the call, see the question that was asked
	Allow bool   `json:"allow"`
	By    Origin `json:"by"` // who decided
}

// Question is what the owner is asked about a tool call, as an agent knows it of all its conversations.
type Question struct {
	Code    string    `json:"code"`
	Session Key       `json:"session"` // that asks
	Tool    string    `json:"tool"`
	Input   string    `json:"input"` // the beginning of its JSON
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires"`
	Closed  bool      `json:"closed,omitempty"` // it was decided, or its turn has ended
	// Elsewhere says that the owner is not in the conversation that asks: their main session asks for it.
	Elsewhere bool     `json:"elsewhere,omitempty"`
	Where     Key      `json:"where,omitempty"` // the conversation that delegated; empty: the main one
	To        *Address `json:"to,omitempty"`    // where the owner is asked; nil: in the log of their main session alone
}

// Toolbox holds the tools of others that conversations may use: servers, modules. Its methods may be called
// at once.
type Toolbox interface {
	// Tools lists what a scope may use, always in the same order. It waits for sources that were not asked yet,
	// within the time of ctx; one that cannot be reached is left out, and named in missing.
	Tools(ctx context.Context, scope Scope) (tools []Tool, missing []string)
	// Call runs a tool and returns the result block that answers the call; what fails is a result with
	// is_error, in words for the model. A tool that the scope may not use is such a failure.
	Call(ctx context.Context, scope Scope, call Block) Block
}
