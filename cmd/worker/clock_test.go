package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// fakeObject has an alarm; fail makes setting it fail.
type fakeObject struct {
	now, alarm time.Time
	fail       bool
}

var errFake = errors.New("storage is down")

func (o *fakeObject) Name() string         { return "main" }
func (o *fakeObject) Now() time.Time       { return o.now }
func (o *fakeObject) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (o *fakeObject) SetAlarm(_ context.Context, at time.Time) error {
	if o.fail {
		return errFake
	}
	o.alarm = at
	return nil
}

// TestClock: the alarm is never set later than it stands, whatever is asked for and whatever fails.
func TestClock(t *testing.T) {
	const m = time.Minute
	for _, row := range []struct {
		name string
		ask  []time.Duration // a negative one fails to be set
		want time.Duration
	}{
		{"the first", []time.Duration{5 * m}, 5 * m},
		{"an earlier one", []time.Duration{5 * m, 2 * m}, 2 * m},
		{"a later one", []time.Duration{2 * m, 5 * m}, 2 * m},
		{"the same", []time.Duration{2 * m, 2 * m}, 2 * m},
		{"a later one behind one that failed", []time.Duration{5 * m, -2 * m, 9 * m}, 5 * m},
		{"again behind one that failed", []time.Duration{5 * m, -2 * m, 2 * m}, 2 * m},
		{"nothing but failed before", []time.Duration{-2 * m, 9 * m}, 9 * m},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := &fakeObject{now: time.Unix(1_800_000_000, 0)}
			c := clock{o: o}
			for _, d := range row.ask {
				o.fail = d < 0
				if err := c.set(t.Context(), o.now.Add(d.Abs())); (err != nil) != o.fail {
					t.Fatal(err)
				}
			}
			if got := o.alarm.Sub(o.now); got != row.want {
				t.Errorf("the alarm is in %s, want %s", got, row.want)
			}
		})
	}
}

// TestClockWake: behind a wake the alarm stands for the next thing, not at once again, and for another
// try when it failed; what was asked for during the wake is kept.
func TestClockWake(t *testing.T) {
	const never = time.Duration(0)
	for _, row := range []struct {
		name       string
		next, told time.Duration // of what is due next, and what the wake itself asked for
		err        error
		want       time.Duration
	}{
		{"nothing more", never, never, nil, never},
		{"later", time.Hour, never, nil, time.Hour},
		{"due already", -time.Hour, never, nil, atLeast},
		{"failed", never, never, errFake, wakeAgain},
		{"asked for an earlier one", time.Hour, time.Minute, nil, time.Minute},
		{"asked for a later one", time.Minute, time.Hour, nil, time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := &fakeObject{now: time.Unix(1_800_000_000, 0)}
			c := clock{o: o, next: o.now.Add(-time.Minute)} // it has rung
			at := func(d time.Duration) time.Time {
				if d == never {
					return time.Time{}
				}
				return o.now.Add(d)
			}
			err := c.wake(t.Context(), func(ctx context.Context) (time.Time, error) {
				err := c.set(ctx, at(row.told))
				if !o.alarm.IsZero() {
					t.Error("the alarm was set in the middle of the wake")
				}
				return at(row.next), errors.Join(err, row.err)
			})
			if err != nil || !o.alarm.Equal(at(row.want)) {
				t.Errorf("the alarm is at %s, %v; want in %s", o.alarm, err, row.want)
			}
		})
	}
}

// TestClockPanic: a wake that panics leaves a clock that works, and no alarm that would take the place of
// the platform's next try.
func TestClockPanic(t *testing.T) {
	o := &fakeObject{now: time.Unix(1_800_000_000, 0)}
	c := clock{o: o}
	func() {
		defer func() { _ = recover() }()
		_ = c.wake(t.Context(), func(ctx context.Context) (time.Time, error) {
			_ = c.set(ctx, o.now.Add(time.Minute))
			panic("in a wake")
		})
	}()
	if !o.alarm.IsZero() {
		t.Errorf("the alarm was set for %s", o.alarm)
	}
	err := c.wake(t.Context(), func(context.Context) (time.Time, error) { return o.now.Add(time.Hour), nil })
	if err != nil || !o.alarm.Equal(o.now.Add(time.Hour)) {
		t.Errorf("the alarm is at %s, %v", o.alarm, err)
	}
}
