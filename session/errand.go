package session

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// Start makes an errand durable and sets what the conversation may use from it on. The same twice is one: it
// changes nothing the second time, whatever other errand came between.
func (s *Session) Start(ctx context.Context, e tidemark.Errand) error {
	in := Input{ID: e.ID, Message: tidemark.NewText(tidemark.User, e.Text), Origin: e.Origin}
	if e.ID == "" {
		return fmt.Errorf("an errand needs an id, so that the same twice is one: %w", tidemark.ErrInvalid)
	}
	if err := in.Validate(); err != nil {
		return err
	}
	rows, err := s.DB.Query(ctx, `SELECT 1 FROM inputs WHERE key = ? AND id = ? LIMIT 1`, string(s.Key), e.ID)
	if err != nil {
		return fmt.Errorf("find errand %s: %w", e.ID, err)
	}
	if len(rows) == 0 {
		if err := s.limit(ctx, e.Limits); err != nil {
			return fmt.Errorf("errand %s: %w", e.ID, err)
		}
	}
	_, err = s.Post(ctx, in)
	return err
}

// limit sets what the conversation may use.
func (s *Session) limit(ctx context.Context, l tidemark.Limits) error {
	if err := s.mayStart(l); err != nil {
		return err
	}
	o, err := s.Override(ctx)
	if err != nil {
		return err
	}
	unbounded := o.Limits == nil && mustJSON(l) == mustJSON(tidemark.Limits{})
	if next := o.with(l); !unbounded && !next.equal(o) {
		return s.Configure(ctx, next)
	}
	return nil
}

// Work starts an errand and waits for what comes of it. A turn that failed, or was stopped, is an outcome with an
// Error. Asked again with the same id it joins the turn that is in work, or tells what came of it. When ctx ends
// the turn goes on; see [Session.Drop].
//
// # Errors
//
// ErrDead when the host dropped the object meanwhile: whoever opens it again may ask again.
func (s *Session) Work(ctx context.Context, e tidemark.Errand) (tidemark.Outcome, error) {
	sub, err := s.Subscribe() // first: nothing is missed, and the host keeps an object that somebody listens to
	if err != nil {
		return tidemark.Outcome{}, err
	}
	defer func() { sub.Close() }()
	if err := s.Start(ctx, e); err != nil {
		return tidemark.Outcome{}, s.orDead(err)
	}
	for {
		out, ok, err := s.outcome(ctx, e.ID)
		if ok || err != nil {
			return out, s.orDead(err)
		}
		if sub, err = s.nextEnd(ctx, sub); err != nil {
			return tidemark.Outcome{}, fmt.Errorf("wait for errand %s: %w", e.ID, err)
		}
	}
}

// nextEnd waits until a turn has ended, as a subscription tells, which it renews when that fell behind. Nobody tells
// of what another life of the object does, so it waits no longer than a run may be silent.
func (s *Session) nextEnd(ctx context.Context, sub *Subscription) (*Subscription, error) {
	pause, stop := s.Runtime.WithTimeout(ctx, heartbeat)
	defer stop()
	for {
		select {
		case <-sub.Ready:
		case <-s.life.Done():
			return sub, tidemark.ErrDead
		case <-pause.Done():
			if ctx.Err() != nil {
				return sub, context.Cause(ctx)
			}
			return sub, nil
		}
		over := false
		for n, more := sub.Next(); more; n, more = sub.Next() {
			over = over || n.Type == NoticeDone || n.Type == NoticeError
		}
		if sub.Behind() {
			next, err := s.Subscribe()
			if err != nil {
				return sub, err
			}
			sub.Close()
			return next, nil
		}
		if over {
			return sub, nil
		}
	}
}

// orDead is err, or ErrDead where that is why.
func (s *Session) orDead(err error) error {
	if err != nil && s.life.Err() != nil {
		return fmt.Errorf("%w: %w", err, tidemark.ErrDead)
	}
	return err
}

// outcome is what came of an errand; ok is false while its turn is in work.
func (s *Session) outcome(ctx context.Context, id string) (out tidemark.Outcome, ok bool, err error) {
	e, failure, ok, err := s.Reply(ctx, id)
	if !ok || err != nil {
		return out, false, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return out, false, err
	}
	out = tidemark.Outcome{Error: failure, Entry: e.ID, Usage: info.Usage}
	rows, err := s.DB.Query(ctx, `SELECT run FROM inputs WHERE key = ? AND id = ? LIMIT 1`, string(s.Key), id)
	if err == nil && len(rows) > 0 {
		out.Spent, err = s.spent(ctx, rows[0].Text(0))
	}
	if err != nil {
		return out, false, fmt.Errorf("read what errand %s spent: %w", id, err)
	}
	if e.ID == "" {
		if failure == "" {
			out.Error = "Stopped before it began."
		}
		return out, true, nil
	}
	m, err := s.blocks.Message(ctx, e)
	if err != nil {
		return out, false, fmt.Errorf("read answer of errand %s: %w", id, err)
	}
	out.Text = m.PlainText()
	return out, true, nil
}

// Drop ends an errand: what of it is in work is stopped, what waits is not begun, and all that was said stays in the
// log. It is durable when Drop returns. One that has ended already, or is not there, is left as it is.
func (s *Session) Drop(ctx context.Context, id string) error {
	rows, err := s.DB.Query(ctx, `SELECT coalesce(r.state, i.state) FROM inputs i LEFT JOIN runs r ON r.id = i.run WHERE i.key = ? AND i.id = ? LIMIT 1`, string(s.Key), id)
	if err != nil {
		return fmt.Errorf("drop errand %s: %w", id, err)
	}
	if len(rows) == 0 || rows[0].Text(0) == stateDone || rows[0].Text(0) == stateFailed {
		return nil
	}
	err = s.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE inputs SET state = 'done', payload = '' WHERE key = ? AND id = ? AND state = 'new'`, Args: []any{string(s.Key), id}, Want: 1}})
	if err == nil {
		s.hub.send(Notice{Type: NoticeDone, Run: "drop:" + id, Inputs: []string{id}})
		return nil
	}
	_, err = s.Post(ctx, Input{ID: "drop:" + id, Kind: InputAsk, Text: tidemark.CommandStop, Origin: tidemark.Origin{From: tidemark.FromAgent}})
	if err != nil {
		return fmt.Errorf("drop errand %s: %w", id, err)
	}
	return nil
}
