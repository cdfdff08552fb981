package main

import (
	"context"
	"log/slog"
	"time"
)

// alarmed is what a clock needs of its object, a *cloudflare.Obj.
type alarmed interface {
	Name() string
	Now() time.Time
	Logger() *slog.Logger
	// SetAlarm replaces the alarm that is set.
	SetAlarm(ctx context.Context, at time.Time) error
}

// clock keeps the one alarm of an object at the earliest time that was asked for.
type clock struct {
	o      alarmed
	next   time.Time // zero: none is known to be set
	waking bool      // next is only noted: see wake
}

// set asks to be woken at a time or before. In a new life of the object it replaces the alarm of an
// earlier one, so what that one left is asked for first.
func (c *clock) set(ctx context.Context, at time.Time) error {
	before := c.next
	if at.IsZero() || !before.IsZero() && !at.Before(before) {
		return nil
	}
	if c.next = at; c.waking {
		return nil
	}
	err := c.o.SetAlarm(ctx, at)
	if err != nil && c.next.Equal(at) {
		c.next = before // which stands
	}
	return err
}

// wakeAgain is when a wake that failed is tried again, atLeast the pause between two wakes.
const (
	wakeAgain = time.Minute
	atLeast   = time.Second
)

// wake does what is due when the alarm has rung, and sets it again: for the next thing that is due, or to
// try again. The platform itself gives up after some failures, so a failed wake is not one to it. It
// rings again if the object ends in the middle, unless another alarm was set by then: so none is.
func (c *clock) wake(ctx context.Context, due func(context.Context) (next time.Time, err error)) error {
	c.next, c.waking = time.Time{}, true
	var asked time.Time
	next, err := func() (time.Time, error) {
		defer func() { asked, c.next, c.waking = c.next, time.Time{}, false }()
		return due(ctx)
	}()
	now := c.o.Now()
	if err != nil {
		c.o.Logger().Warn("wake", "object", c.o.Name(), "err", err)
		next = now.Add(wakeAgain)
	}
	if next.IsZero() || !asked.IsZero() && asked.Before(next) {
		next = asked
	}
	if next.IsZero() {
		return nil
	}
	if first := now.Add(atLeast); next.Before(first) {
		next = first
	}
	return c.set(ctx, next)
}
