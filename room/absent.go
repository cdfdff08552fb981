package room

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// Teller is the room that tells people over channels.
func (l *List) Teller() Teller {
	if t, ok := Find[Teller](*l); ok {
		return t
	}
	return NoTeller{}
}

// Gate is the room that says which calls may run.
func (l *List) Gate() Gate {
	if g, ok := Find[Gate](*l); ok {
		return g
	}
	return NoGate{}
}

// Skipper is the room that may leave turns out of what is found.
func (l *List) Skipper() Skipper {
	if k, ok := Find[Skipper](*l); ok {
		return k
	}
	return KeepsAll{}
}

// Leaver is the room that says which turns were left out.
func (l *List) Leaver() Leaver {
	if k, ok := Find[Leaver](*l); ok {
		return k
	}
	return KeepsAll{}
}

// NoTeller is the teller of a conversation without channels.
type NoTeller struct{}

// Dispatch implements [Teller].
func (NoTeller) Dispatch() {}

// Typing implements [Teller].
func (NoTeller) Typing(context.Context) func(to []tidemark.Origin) { return func([]tidemark.Origin) {} }

// Unsent implements [Teller].
func (NoTeller) Unsent(context.Context) (int64, error) { return 0, nil }

// Lines implements [Teller].
func (NoTeller) Lines(context.Context, string, []tidemark.Origin, string, ...string) ([]tidemark.Stmt, error) {
	return nil, nil
}

// Say implements [Teller].
func (NoTeller) Say(context.Context, string, *tidemark.Address, string, *tidemark.Event) error {
	return fmt.Errorf("this conversation has no channels: %w", tidemark.ErrNotFound)
}

// NoGate is the gate of a conversation that lets each call run.
type NoGate struct{}

// Judge implements [Gate].
func (NoGate) Judge(string, []byte, bool) Ruling { return Ruling{} }

// Asked implements [Gate].
func (NoGate) Asked(context.Context, string, int) (map[int]Ruling, error) { return nil, nil }

// Parked implements [Gate].
func (NoGate) Parked(context.Context) (string, error) { return "", nil }

// Close implements [Gate].
func (NoGate) Close(context.Context, string) ([]tidemark.Stmt, error) { return nil, nil }

// Ask implements [Gate].
func (NoGate) Ask(context.Context, Turn, []Waiting) (Done, time.Time, error) {
	return Done{}, time.Time{}, nil
}

// KeepsAll leaves no turn out of what is found.
type KeepsAll struct{}

// HoldStmts implements [Skipper].
func (KeepsAll) HoldStmts(context.Context, string, string) ([]tidemark.Stmt, error) { return nil, nil }

// Again implements [Skipper].
func (KeepsAll) Again(context.Context, string) error { return nil }

// DecideStmts implements [Skipper].
func (KeepsAll) DecideStmts(context.Context, string, string, tidemark.Entry) ([]tidemark.Stmt, error) {
	return nil, nil
}

// EndWait implements [Skipper].
func (KeepsAll) EndWait(string) {}

// Ended implements [Skipper].
func (KeepsAll) Ended(context.Context, string) {}

// Skipped implements [Leaver].
func (KeepsAll) Skipped(context.Context, int64, int64) (map[int64]bool, error) {
	return nil, nil
}

// Count implements [Leaver].
func (KeepsAll) Count(context.Context) (int, error) { return 0, nil }

// Settled implements [Leaver].
func (KeepsAll) Settled(context.Context) (int64, error) { return host.LogEnd, nil }
