package tidemark

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Tool is what a model is told of a tool, and what the turn must know of it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	// More are further members of its definition, as a client of chat completions has them (strict): a provider of that
	// API sends them on, others leave them out.
	More []Option `json:"-"`
	// Idempotent says that a call which may have run before a crash may be run again.
	Idempotent bool `json:"-"`
	// Timeout is how long a call may take; 0: as long as the conversation's settings say.
	Timeout time.Duration `json:"-"`
	// Mark names the definition as its source has it, of a tool of others; empty: it never changes.
	Mark string `json:"-"`
}

// Request is one call of a model.
type Request struct {
	Model     string
	System    string
	Tools     []Tool
	Messages  []Message
	MaxTokens Tokens // bound on the reply, 0 for the provider's default
	// Note is a short text that stands behind the last cache marker and is not stored: the clock,
	// what was learned since the system prompt was frozen, advice.
	Note string
	// Options are parameters of one call; a provider leaves out what its API lacks (see [Taker]).
	Options []Option
}

// Option is a parameter of a call that changes neither its messages nor the form of its answer, by the name
// and with the value that it has in chat completions: temperature, stop.
type Option struct {
	Name  string
	Value json.RawMessage
}

// Taker is a provider that heeds options, and says which.
type Taker interface {
	Takes(option string) bool
}

// Sent returns the messages as they go out: with the note behind the last one.
func (r Request) Sent() []Message {
	n := len(r.Messages)
	if r.Note == "" || n == 0 || r.Messages[n-1].Role != User && r.Messages[n-1].Role != System {
		return r.Messages
	}
	out := append([]Message(nil), r.Messages...)
	last := out[n-1]
	out[n-1] = Message{Role: last.Role, Content: append(append([]Block(nil), last.Content...), Text(r.Note))}
	return out
}

// Reply is the whole answer of one call.
type Reply struct {
	Message Message
	Call    Call
	LeftOut []string // names of the tools that were not sent, since the API takes no more
	Unfit   []string // of the pictures and files behind the last answer, what stands for those that the API does not take, and why
}

// Delta is one step of a streamed answer. The last one of a successful stream carries the Reply.
type Delta struct {
	Text     string // a piece of visible text
	Thinking string // a piece of thinking
	Tool     string // the name of a tool whose call begins
	Reply    *Reply
}

// Provider is a model API.
type Provider interface {
	// Stream makes one call and yields its answer piece by piece. It ends after the delta with
	// the Reply, or after an error, which is an *APIError or the cause of ctx. The reader stops
	// it, and the call, by breaking. It may be called at once by several goroutines.
	Stream(ctx context.Context, req Request) iter.Seq2[Delta, error]
}

// Counter is a Provider that says how large a request is without answering it. One that wraps a provider which does not
// count is ErrInvalid.
type Counter interface {
	// Count returns the input tokens of a request. It is no call of the model and costs nothing. It may be called at
	// once by several goroutines.
	Count(ctx context.Context, req Request) (Tokens, error)
}

// Complete makes a call and returns its whole answer.
func Complete(ctx context.Context, p Provider, req Request) (Reply, error) {
	for d, err := range p.Stream(ctx, req) {
		if err != nil {
			return Reply{}, err
		}
		if d.Reply != nil {
			return *d.Reply, nil
		}
	}
	return Reply{}, fmt.Errorf("complete: %w", &APIError{Class: ClassNetwork, Message: "the stream ended without a reply"})
}

// Scope says on whose behalf something is done: what memory may be shown or written, which tools
// may be used.
type Scope struct {
	Agent string
	Key   Key
	Owner bool   // the holder of the token, or an identity linked to it
	Peer  string // who speaks when it is not the owner
}

// Main reports whether the scope is the owner's main session, the only one that sees MEMORY.md.
func (s Scope) Main() bool { return s.Owner && s.Key.Main() }
