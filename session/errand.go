package session

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// Start makes an errand durable and sets what the conversation may use for it. The same twice is one.
func (s *Session) Start(ctx context.Context, e tidemark.Errand) error {
	o, err := s.Override(ctx)
	if err != nil {
		return err
	}
	unbounded := o.Limits == nil && mustJSON(e.Limits) == mustJSON(tidemark.Limits{})
	if next := o.with(e.Limits); !unbounded && !next.equal(o) {
		if err := s.Configure(ctx, next); err != nil {
			return err
		}
	}
	_, err = s.Post(ctx, Input{ID: e.ID, Message: tidemark.NewText(tidemark.User, e.Text), Origin: e.Origin})
	return err
}

// Work starts an errand and waits for what comes of it. A turn that failed is an outcome with an Error.
func (s *Session) Work(ctx context.Context, e tidemark.Errand) (tidemark.Outcome, error) {
	sub, err := s.Subscribe()
	if err != nil {
		return tidemark.Outcome{}, err
	}
	defer sub.Close()
	if err := s.Start(ctx, e); err != nil {
		return tidemark.Outcome{}, err
	}
	for {
		out, ok, err := s.outcome(ctx, e.ID)
		if ok || err != nil {
			return out, err
		}
		select {
		case <-sub.Ready:
			for _, more := sub.Next(); more; _, more = sub.Next() {
			}
			if !sub.Behind() {
				continue
			}
			sub.Close()
			if sub, err = s.Subscribe(); err != nil { // the deferred Close is of the first, which is closed
				return tidemark.Outcome{}, err
			}
		case <-ctx.Done():
			return tidemark.Outcome{}, fmt.Errorf("wait for errand %s: %w", e.ID, context.Cause(ctx))
		}
	}
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
	if e.ID == "" {
		return out, true, nil
	}
	m, err := e.Message()
	if err != nil {
		return out, false, fmt.Errorf("read answer of errand %s: %w", id, err)
	}
	out.Text = m.PlainText()
	return out, true, nil
}
