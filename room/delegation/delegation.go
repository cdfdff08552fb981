// Package delegation is the room that has the model give work to conversations of its own: its tool, what one may use, and
// what comes back. How a conversation does what it is given, room/errand says. Begin with Room and Call.
package delegation

import (
	"cmp"
	"context"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// Children are the conversations that one may delegate to, wherever they live. Its methods may be called at once.
type Children interface {
	// Work gives a conversation an errand and waits for what comes of it; the same id again joins it. A failed turn
	// is an Outcome with an Error.
	Work(ctx context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error)
	// Drop ends an errand; what was said stays. One that is not there is no error.
	Drop(ctx context.Context, key tidemark.Key, id string) error
	// Read returns a page of the text of a message there, from an offset in bytes on.
	Read(ctx context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error)
}

// Config bounds what the model may hand to conversations of its own. Zero fields are the defaults.
type Config struct {
	Children    Children // nil: none, and the tool is not offered
	Off         bool
	MaxDepth    int             // conversations above one another, default 1, at most tidemark.MaxDepth
	MaxChildren int             // in one turn, default 8
	Timeout     time.Duration   // of one, default 10 min
	Budget      tidemark.Tokens // of one, default 100,000
}

// Defaults of Config.
const (
	DefaultDepth                    = 1
	DefaultChildren                 = 8
	DefaultTimeout                  = 10 * time.Minute
	DefaultBudget   tidemark.Tokens = 100_000
)

// Bounds of what is delegated.
const (
	MinBudget  tidemark.Tokens = 2_000 // system text, tools and one answer
	slack                      = 30 * time.Second
	maxAtOnce                  = 4        // children that a conversation waits for
	maxTask                    = 64 << 10 // bytes of a task
	shownBytes                 = 8 << 10  // bytes of an answer that the parent is shown at once
	dropTime                   = 5 * time.Second
	childTries                 = 5           // times that a child which cannot be reached is asked
	childLong                  = time.Minute // behind which a cut is the first one again
)

func (c Config) withDefaults() Config {
	c.MaxDepth = min(cmp.Or(c.MaxDepth, DefaultDepth), tidemark.MaxDepth)
	c.MaxChildren = cmp.Or(c.MaxChildren, DefaultChildren)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Budget = cmp.Or(c.Budget, DefaultBudget)
	return c
}

// Room delegates for one conversation.
type Room struct {
	room.Self
	room.Allowance
	Config

	slots chan struct{} // children that are waited for at once
}

// Make returns what makes the room.
func Make(c Config) room.Maker {
	return func(p room.Ports) any {
		return &Room{p.Self, p.Allowance, c.withDefaults(), make(chan struct{}, maxAtOnce)}
	}
}

var (
	_ room.Tools     = (*Room)(nil)
	_ room.Canceller = (*Room)(nil)
	_ room.Briefer   = (*Room)(nil)
	_ room.Reader    = (*Room)(nil)
)

// childSystem is what a conversation is told that was delegated to.
const childSystem = "Another agent delegated the task in the first message to you. Your last message is the answer that it reads, and it reads nothing else: " +
	"say what you found, what you did and what is left open. Nobody answers questions: decide yourself, and say what you assumed."

// isChild reports whether the conversation was delegated to.
func (s *Room) isChild() bool { return s.Key.Channel() == tidemark.ChannelDelegate }

// Brief implements room.Briefer.
func (s *Room) Brief() string {
	if s.isChild() {
		return childSystem
	}
	return ""
}

// Tools lists the tool that hands a task to a conversation with a context of its own, where the model may do that.
func (s *Room) Tools(bool) []tidemark.Tool {
	if !s.delegates() {
		return nil
	}
	return []tidemark.Tool{{
		Name: room.DelegateTool,
		Description: "Give a task to a sub-agent with a context of its own and read its answer: for long searches and work that stands alone. Calls run side by side. " +
			"It sees nothing of this conversation, so say all that it must know.",
		InputSchema: []byte(`{"type":"object","properties":{"task":{"type":"string"},"tools":{"type":"array","items":{"type":"string"},"description":"globs: fewer than you have"},"budget":{"type":"integer","description":"tokens"}},"required":["task"]}`),
		Idempotent:  true, // the conversation and its errand are named by the call's place in its run
		// It may wait for those before it. Its own time is less, so that it ends in words of its own.
		Timeout: 2*s.Timeout + slack,
	}}
}

// depth is how many conversations stand above this one.
func (s *Room) depth() int {
	depth := s.Limits().Depth
	if s.isChild() {
		depth = max(depth, 1)
	}
	return depth
}

// delegates reports whether the model may delegate here. In conversations of others it may not: a child is the
// owner's, and could do what they may not.
func (s *Room) delegates() bool {
	return s.Children != nil && !s.Off && s.Key.Scope().Owner && s.depth() < s.MaxDepth
}
