package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/room/delegation"
	"github.com/tidemark-ai/tidemark/room/errand"
	"github.com/tidemark-ai/tidemark/room/outbound"
	"github.com/tidemark-ai/tidemark/session"
)

var (
	_ delegation.Children = Here(nil)
	_ delegation.Children = (*agent.FarSessions)(nil)
)

// at has a session do something; with make, one that is not there is made.
func at[T any](ctx context.Context, h Here, key tidemark.Key, make bool, do func(*session.Session) (T, error)) (out T, err error) {
	s, err := h(ctx, key, make)
	if err != nil {
		return out, err
	}
	return do(s)
}

func (h Here) tell(ctx context.Context, key tidemark.Key, make bool, do func(*session.Session) error) error {
	_, err := at(ctx, h, key, make, func(s *session.Session) (any, error) { return nil, do(s) })
	return err
}

// Start implements [agent.Errands].
func (h Here) Start(ctx context.Context, key tidemark.Key, e tidemark.Errand) error {
	return h.tell(ctx, key, true, doing(func(r *errand.Room) error { return r.Start(ctx, e) }))
}

// lives is how often a session that the host drops meanwhile is opened again for an errand.
const lives = 3

// Work implements [agent.Errands].
func (h Here) Work(ctx context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error) {
	var out tidemark.Outcome
	err := fmt.Errorf("session %s: %w", key, tidemark.ErrDead)
	for life := 0; life < lives && errors.Is(err, tidemark.ErrDead) && ctx.Err() == nil; life++ {
		err = h.tell(ctx, key, true, doing(func(r *errand.Room) (err error) {
			out, err = r.Work(ctx, e)
			return err
		}))
	}
	return out, err
}

// Decide implements [agent.Errands].
func (h Here) Decide(ctx context.Context, key tidemark.Key, d tidemark.Decision) error {
	return h.tell(ctx, key, false, within(func(r *approvals.Room) error { return r.Decide(ctx, d) }))
}

// Relay implements [agent.Errands].
func (h Here) Relay(ctx context.Context, key tidemark.Key, q tidemark.Question) error {
	return h.tell(ctx, key, true, within(func(r *approvals.Room) error { return r.Relay(ctx, q) }))
}

// within is for the room of a session that is of a type.
func within[R any](do func(R) error) func(*session.Session) error {
	return func(s *session.Session) error {
		r, ok := session.Room[R](s)
		if !ok {
			return fmt.Errorf("%s has no %T: %w", s.Key, r, tidemark.ErrNotFound)
		}
		return do(r)
	}
}

// doing is for the room of a session that does errands.
func doing(do func(*errand.Room) error) func(*session.Session) error {
	return func(s *session.Session) error {
		r, ok := session.Room[*errand.Room](s)
		if !ok {
			return fmt.Errorf("%s does no errands: %w", s.Key, tidemark.ErrNotFound)
		}
		return do(r)
	}
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
	var o tidemark.Origin
	err := h.tell(ctx, key, false, within(func(r *outbound.Room) (err error) {
		o, err = r.Correspondent(ctx)
		return err
	}))
	return o, err
}

// Drop implements [agent.Delegates].
func (h Here) Drop(ctx context.Context, key tidemark.Key, id string) error {
	err := h.tell(ctx, key, false, doing(func(r *errand.Room) error { return r.Drop(ctx, id) }))
	if errors.Is(err, tidemark.ErrNotFound) {
		return nil
	}
	return err
}

// Read implements [agent.Delegates].
func (h Here) Read(ctx context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error) {
	return at(ctx, h, key, false, func(s *session.Session) (string, error) {
		m, err := s.Reader.Message(ctx, entry)
		if err != nil {
			return "", err
		}
		return room.Page(m, offset)
	})
}

// delegates is what a model may hand to conversations of its own.
func delegates(d config.Delegation, to delegation.Children) delegation.Config {
	return delegation.Config{Children: to, Off: !d.Enabled, MaxDepth: d.MaxDepth, MaxChildren: d.MaxChildren, Timeout: milliseconds(d.TimeoutMs), Budget: d.Budget}
}
