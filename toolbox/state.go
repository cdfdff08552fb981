package toolbox

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// State is how a source is doing, for people. It holds no secret.
type State struct {
	Name     string          `json:"name"`              // empty: modules
	State    string          `json:"state"`             // reachable, error, gap, not asked yet
	Error    string          `json:"error,omitempty"`   // why there is no newer list, or why it cannot be used here
	Version  string          `json:"version,omitempty"` // of the protocol
	Count    int             `json:"tools"`             // that it has and that are used
	Tokens   tidemark.Tokens `json:"tokens"`            // of their whole definitions
	LeftOut  []string        `json:"leftOut,omitempty"` // tools that are not used, and why
	Next     string          `json:"next,omitempty"`    // when its list is no longer good, RFC 3339
	Timeout  int64           `json:"timeoutMs"`         // of a call
	MaxBytes int             `json:"maxBytes"`          // of a result
}

// Shown is a tool as the model is told of it, and where it is from.
type Shown struct {
	Name        string          `json:"name"`
	Source      string          `json:"source"`
	Tool        string          `json:"tool"` // what the source calls it
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"inputSchema"`
	Idempotent  bool            `json:"idempotent"`
}

// Report is what [Box.Report] tells.
type Report struct {
	Sources []State         `json:"sources"`
	Tools   []Shown         `json:"tools"`
	Tokens  tidemark.Tokens `json:"tokens"`  // of the definitions as they are offered
	Stubbed bool            `json:"stubbed"` // they are offered as stubs
}

// Report asks the sources that are due and tells how they are, and which tools a scope may use.
func (b *Box) Report(ctx context.Context, scope tidemark.Scope) Report {
	b.refresh(ctx, (*source).due)
	r := Report{Sources: []State{}, Tools: []Shown{}}
	for _, s := range b.sources {
		state := s.state()
		state.LeftOut = slices.Concat(state.LeftOut, b.leftOut(s))
		r.Sources = append(r.Sources, state)
	}
	entries := b.offered(b.mayUse(scope))
	r.Stubbed = b.stubbed(entries)
	r.Tokens = tokens(entries, r.Stubbed)
	for _, e := range entries {
		t := e.definition(false)
		r.Tools = append(r.Tools, Shown{Name: e.public, Source: e.from.Name, Tool: e.Name, Description: t.Description, Schema: t.InputSchema, Idempotent: t.Idempotent})
	}
	return r
}

func (s *source) state() State {
	out := State{Name: s.Name, State: "reachable", Timeout: s.Timeout.Milliseconds(), MaxBytes: s.MaxBytes}
	if t, ok := s.Source.(Teller); ok {
		out.Version = t.Version()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := make([]entry, 0, len(s.tools))
	for _, t := range s.tools {
		entries = append(entries, entry{tool: t, public: t.Name})
	}
	out.Count, out.Tokens, out.LeftOut = len(entries), tokens(entries, false), s.dropped
	switch {
	case s.Source == nil:
		out.State, out.Error = "gap", s.Gap
	case !s.asked:
		out.State = "not asked yet"
	case s.err != nil:
		out.State, out.Error = "error", saidBy(s.err)
	}
	if !s.next.IsZero() {
		out.Next = s.next.UTC().Format(time.RFC3339)
	}
	return out
}

// Mark names the configuration that tools are listed by. A conversation keeps the list that it was offered as long as the
// mark is the same; what servers say of their own is no part of it.
func (b *Box) Mark() string {
	out := b.Name
	for _, s := range b.sources {
		if m, ok := s.Source.(Marker); ok {
			out += "\n" + m.Mark()
		}
	}
	return string(tidemark.HashOf([]byte(out)))
}
