package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/session"
)

var (
	_ agent.Voices     = Here(nil)
	_ agent.Errands    = Here(nil)
	_ agent.Delegates  = Here(nil)
	_ session.Children = Here(nil)
	_ session.Children = (*agent.FarSessions)(nil)
)

// Start implements [agent.Errands].
func (h Here) Start(ctx context.Context, key tidemark.Key, e tidemark.Errand) error {
	s, err := h(ctx, key, true)
	if err != nil {
		return err
	}
	return s.Start(ctx, e)
}

// lives is how often a session that the host drops meanwhile is opened again for an errand.
const lives = 3

// Work implements [agent.Errands].
func (h Here) Work(ctx context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error) {
	var out tidemark.Outcome
	err := fmt.Errorf("session %s: %w", key, tidemark.ErrDead)
	for life := 0; life < lives && errors.Is(err, tidemark.ErrDead) && ctx.Err() == nil; life++ {
		var s *session.Session
		if s, err = h(ctx, key, true); err == nil {
			out, err = s.Work(ctx, e)
		}
	}
	return out, err
}

// Decide implements [agent.Errands].
func (h Here) Decide(ctx context.Context, key tidemark.Key, d tidemark.Decision) error {
	s, err := h(ctx, key, false)
	if err != nil {
		return err
	}
	return s.Decide(ctx, d)
}

// Relay implements [agent.Errands].
func (h Here) Relay(ctx context.Context, key tidemark.Key, q tidemark.Question) error {
	s, err := h(ctx, key, true)
	if err != nil {
		return err
	}
	return s.Relay(ctx, q)
}

// Occupied implements [agent.Voices].
func (h Here) Occupied(ctx context.Context, key tidemark.Key) (bool, error) {
	s, err := h(ctx, key, false)
	if errors.Is(err, tidemark.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.Occupied(ctx)
}

// Correspondent implements [agent.Voices].
func (h Here) Correspondent(ctx context.Context, key tidemark.Key) (tidemark.Origin, error) {
	s, err := h(ctx, key, false)
	if err != nil {
		return tidemark.Origin{}, err
	}
	return s.Correspondent(ctx)
}

// Drop implements [agent.Delegates].
func (h Here) Drop(ctx context.Context, key tidemark.Key, id string) error {
	s, err := h(ctx, key, false)
	if errors.Is(err, tidemark.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Drop(ctx, id)
}

// Read implements [agent.Delegates].
func (h Here) Read(ctx context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error) {
	s, err := h(ctx, key, false)
	if err != nil {
		return "", err
	}
	return s.ReadEntry(ctx, entry, offset)
}

// delegation is what a model may hand to conversations of its own.
func delegation(d config.Delegation) session.Delegation {
	return session.Delegation{Off: !d.Enabled, MaxDepth: d.MaxDepth, MaxChildren: d.MaxChildren, Timeout: milliseconds(d.TimeoutMs), Budget: d.Budget}
}
