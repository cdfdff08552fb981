// Package errand is the room that does what an actor gives the conversation, where no person writes: the run of a schedule, or
// what another conversation delegates. It asks the queue for that, and keeps nothing of its own. Begin with Room.Work.
package errand

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// Room does errands of one conversation. Its methods may be called at once.
type Room struct {
	room.Self
	room.History
	room.Queue
}

// Make makes the room.
func Make(p room.Ports) any { return &Room{p.Self, p.History, p.Queue} }

// Start makes an errand durable and sets what the conversation may use from it on. The same twice is one: it
// changes nothing the second time, whatever other errand came between.
func (s *Room) Start(ctx context.Context, e tidemark.Errand) error {
	if e.ID == "" {
		return fmt.Errorf("an errand needs an id, so that the same twice is one: %w", tidemark.ErrInvalid)
	}
	return s.Post(ctx, e)
}

// Work starts an errand and waits for what comes of it. A turn that failed, or was stopped, is an outcome with an
// Error. Asked again with the same id it joins the turn that is in work, or tells what came of it. When ctx ends
// the turn goes on; see [Room.Drop].
//
// # Errors
//
// ErrDead when the host dropped the object meanwhile: whoever opens it again may ask again.
func (s *Room) Work(ctx context.Context, e tidemark.Errand) (tidemark.Outcome, error) {
	ends, err := s.Follow() // first: nothing is missed, and the host keeps an object that somebody listens to
	if err != nil {
		return tidemark.Outcome{}, err
	}
	defer ends.Close()
	if err := s.Start(ctx, e); err != nil {
		return tidemark.Outcome{}, s.orDead(err)
	}
	for {
		out, ok, err := s.outcome(ctx, e.ID)
		if ok || err != nil {
			return out, s.orDead(err)
		}
		if err := ends.Next(ctx); err != nil {
			return tidemark.Outcome{}, fmt.Errorf("wait for errand %s: %w", e.ID, err)
		}
	}
}

// orDead is err, or ErrDead where that is why.
func (s *Room) orDead(err error) error {
	if err != nil && s.Life.Err() != nil {
		return fmt.Errorf("%w: %w", err, tidemark.ErrDead)
	}
	return err
}

// outcome is what came of an errand; ok is false while its turn is in work.
func (s *Room) outcome(ctx context.Context, id string) (out tidemark.Outcome, ok bool, err error) {
	p, err := s.Find(ctx, id)
	if !p.Over || err != nil {
		return out, false, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return out, false, err
	}
	out = tidemark.Outcome{Error: p.Failure, Entry: p.Reply, Usage: info.Usage, Spent: p.Spent}
	if p.Reply == "" {
		if p.Failure == "" {
			out.Error = "Stopped before it began."
		}
		return out, true, nil
	}
	e, err := s.Log.Entry(ctx, p.Reply)
	if err != nil {
		return out, false, fmt.Errorf("read answer of errand %s: %w", id, err)
	}
	m, done, err := s.Words(ctx, e)
	if err != nil {
		return out, false, fmt.Errorf("read answer of errand %s: %w", id, err)
	}
	defer done()
	out.Text = m.PlainText()
	return out, true, nil
}

// Drop ends an errand: what of it is in work is stopped, what waits is not begun, and all that was said stays in the
// log. It is durable when Drop returns. One that has ended already, or is not there, is left as it is.
func (s *Room) Drop(ctx context.Context, id string) error {
	p, err := s.Find(ctx, id)
	if err != nil {
		return fmt.Errorf("drop errand %s: %w", id, err)
	}
	if !p.There || p.Over || s.Withdraw(ctx, id) == nil {
		return nil
	}
	if err := s.Stop(ctx, "drop:"+id); err != nil {
		return fmt.Errorf("drop errand %s: %w", id, err)
	}
	return nil
}
