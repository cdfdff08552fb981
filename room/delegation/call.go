package delegation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// child is the conversation that a call delegates to, and its errand.
type child struct {
	key    tidemark.Key
	errand tidemark.Errand
}

// childOf names what a call delegates to: the same call of the same run has the same child, in every life.
func (s *Room) childOf(c room.Call) child {
	id := string(tidemark.HashOf(fmt.Appendf(nil, "%s\n%s\n%d\n%d\n%s", s.Key, c.Run, c.Round, c.N, c.ID)))[:24]
	return child{key: tidemark.Key("agent:" + s.Key.Agent() + ":" + tidemark.ChannelDelegate + ":dm:" + id),
		errand: tidemark.Errand{ID: id, Origin: tidemark.Origin{From: tidemark.FromAgent, Channel: tidemark.ChannelDelegate, Peer: string(s.Key)}}}
}

// Call answers a call of delegate.
func (s *Room) Call(ctx context.Context, c room.Call) tidemark.Block {
	ch, err := s.begetting(ctx, c)
	if err != nil {
		return notDelegated(c, inWords(err))
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return notDelegated(c, "others were in work all the time.")
	}
	if ch.errand.Limits.Budget, err = s.grant(ctx, c, ch.errand.Limits.Budget); err != nil {
		return notDelegated(c, inWords(err))
	}
	limited, stop := s.Runtime.WithTimeout(ctx, s.Timeout)
	defer stop()
	out, err := s.workOf(limited, ch)
	late := err != nil && limited.Err() != nil
	switch {
	case ctx.Err() != nil: // the turn was stopped, and its end drops the child; or this life ended, and the next one asks again
		return tidemark.ToolResult(c.ID, "Stopped.", true)
	case late:
		s.drop(ctx, ch)
		return tidemark.ToolResult(c.ID, fmt.Sprintf("%s did not answer within %s and was stopped. Recall with scope agent finds what was said there.", ch.key, s.Timeout), true)
	case err != nil:
		if mayPass(err) {
			s.drop(ctx, ch) // it may work, where it cannot be reached
		} else { // it was refused
			s.spent(ctx, c, 0)
		}
		return tidemark.ToolResult(c.ID, fmt.Sprintf("%s could not be asked: %s", ch.key, inWords(err)), true)
	}
	s.spent(ctx, c, out.Spent)
	return answerOf(c.ID, ch.key, out)
}

func notDelegated(c room.Call, why string) tidemark.Block {
	return tidemark.ToolResult(c.ID, "Not delegated: "+why, true)
}

// begetting reads a call and says what it delegates, if it may.
func (s *Room) begetting(ctx context.Context, c room.Call) (child, error) {
	var in struct {
		Task   string          `json:"task"`
		Tools  []string        `json:"tools"`
		Budget tidemark.Tokens `json:"budget"`
	}
	err := json.Unmarshal(c.Input, &in)
	switch {
	case err != nil || strings.TrimSpace(in.Task) == "":
		return child{}, fmt.Errorf(`want {"task": what is to be done}: %w`, errors.Join(err, tidemark.ErrInvalid))
	case len(in.Task) > maxTask:
		return child{}, fmt.Errorf("the task has %d bytes, at most %d: %w", len(in.Task), maxTask, tidemark.ErrInvalid)
	case in.Budget != 0 && in.Budget < MinBudget:
		return child{}, fmt.Errorf("budget %d: want %d tokens or more, or none: %w", in.Budget, MinBudget, tidemark.ErrInvalid)
	case slices.ContainsFunc(c.Origins, func(o tidemark.Origin) bool { return !s.MayChange(o) }):
		return child{}, fmt.Errorf("this turn answers somebody else, and only the owner's turns delegate: %w", tidemark.ErrForbidden)
	}
	a, err := s.Account(ctx, c)
	if err != nil {
		return child{}, fmt.Errorf("count what was delegated: %w", err)
	}
	if a.Before >= s.MaxChildren {
		return child{}, fmt.Errorf("this turn delegated %d times, which is the most (delegation.maxChildren): %w", s.MaxChildren, tidemark.ErrInvalid)
	}
	ch := s.childOf(c)
	ch.errand.Text = in.Task
	ch.errand.Limits, err = s.limitsOf(ctx, in.Tools, in.Budget)
	return ch, err
}

// limitsOf are those of a child: what this conversation has set for itself, and one step deeper.
func (s *Room) limitsOf(ctx context.Context, globs []string, asked tidemark.Tokens) (l tidemark.Limits, err error) {
	l = s.Limits()
	l.Depth, l.Budget = s.depth()+1, s.Budget
	if asked > 0 {
		l.Budget = min(l.Budget, asked)
	}
	l.Tools, err = s.toolsOf(ctx, l.Tools, globs)
	return l, err
}

// toolsOf are the globs of a child. They narrow what is offered here: where that is narrowed already, they are the
// names that are left.
func (s *Room) toolsOf(ctx context.Context, mine, globs []string) ([]string, error) {
	if len(globs) == 0 {
		return mine, nil
	}
	if err := approval.CheckGlobs("tools", globs); err != nil {
		return nil, err
	}
	var left, have []string
	offered, err := s.Offered(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range offered {
		have = append(have, t.Name)
		if approval.Any(globs, t.Name) {
			left = append(left, t.Name)
		}
	}
	switch {
	case len(left) == 0:
		return nil, fmt.Errorf("tools: none of yours is named so; you have %.1000s: %w", strings.Join(have, ", "), tidemark.ErrInvalid)
	case len(mine) == 0:
		return globs, nil
	case len(left) > approval.MaxGlobs:
		return nil, fmt.Errorf("tools: %d are named, at most %d: %w", len(left), approval.MaxGlobs, tidemark.ErrInvalid)
	}
	return left, nil
}

// workOf waits for a child. Where it was cut off, as by a host that moves it, it is asked again and joins.
func (s *Room) workOf(ctx context.Context, ch child) (out tidemark.Outcome, err error) {
	for try := 1; ; try++ {
		began := s.Runtime.Now()
		out, err = s.Children.Work(ctx, ch.key, ch.errand)
		if !mayPass(err) || ctx.Err() != nil || s.Life.Err() != nil {
			return out, err
		}
		if s.Runtime.Now().Sub(began) >= childLong {
			try = 1
		}
		if try == childTries || s.Runtime.Sleep(ctx, time.Second<<(try-1)) != nil {
			return out, err
		}
	}
}

// mayPass reports whether to ask again may help.
func mayPass(err error) bool {
	return errors.Is(err, tidemark.ErrUnavailable) || errors.Is(err, tidemark.ErrDead) || errors.Is(err, tidemark.ErrBusy)
}

// drop ends what is in work of a child. One that cannot be reached ends at its own bounds.
func (s *Room) drop(ctx context.Context, ch child) {
	limited, stop := s.Runtime.WithTimeout(ctx, dropTime)
	defer stop()
	if err := s.Children.Drop(limited, ch.key, ch.errand.ID); err != nil {
		s.Warn("stop what was delegated", err)
	}
}

// Cancel implements room.Canceller: also where nothing more is delegated, since an earlier life may have.
func (s *Room) Cancel(ctx context.Context, c room.Call) {
	if s.Children != nil && c.Tool == room.DelegateTool {
		s.drop(ctx, s.childOf(c))
	}
}
