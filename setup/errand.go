package setup

import (
	"context"
	"errors"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
)

var (
	_ agent.Errands = Here(nil)
	_ agent.Voices  = Here(nil)
)

// Start implements [agent.Errands].
func (h Here) Start(ctx context.Context, key tidemark.Key, e tidemark.Errand) error {
	s, err := h(ctx, key, true)
	if err != nil {
		return err
	}
	return s.Start(ctx, e)
}

// Work implements [agent.Errands].
func (h Here) Work(ctx context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error) {
	s, err := h(ctx, key, true)
	if err != nil {
		return tidemark.Outcome{}, err
	}
	return s.Work(ctx, e)
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
