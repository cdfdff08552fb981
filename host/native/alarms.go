//go:build !js

package native

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
)

const (
	// clockCheck is how long an alarm can be late when the wall clock jumps forward (sleep of a
	// laptop, a corrected clock): Go's timers follow the monotonic clock.
	clockCheck = 30 * time.Second
	// maxFiring bounds the alarms in flight; daily resets of many keys are due at one time.
	maxFiring = 256
)

// Alarms is one alarm a key, as each Durable Object has one. Nothing is stored: whoever owns a key
// sets its alarm again from the due table when the process starts.
//
// At most one call of a key runs at a time. An alarm that is set while it runs, or becomes due,
// waits for it.
type Alarms struct {
	rt   tidemark.Runtime
	fire func(ctx context.Context, key string)
	stop context.CancelFunc
	wake chan struct{} // has room for one: something changed
	over chan struct{} // closed when the loop has ended

	mu     sync.Mutex // guards the following
	byKey  map[string]*alarm
	queue  alarmQueue
	firing int
	closed bool
}

// alarm is a key that has a time, is being called, or both.
type alarm struct {
	key    string
	at     time.Time // zero: no time
	index  int       // in the queue, -1 when not there
	firing bool
}

// NewAlarms starts a clock that calls fire, on a goroutine of rt, when the time of a key has come.
// The context of a call ends with Close.
func NewAlarms(rt tidemark.Runtime, fire func(ctx context.Context, key string)) *Alarms {
	ctx, stop := context.WithCancel(context.Background())
	a := &Alarms{
		rt: rt, fire: fire, stop: stop,
		wake: make(chan struct{}, 1), over: make(chan struct{}), byKey: make(map[string]*alarm),
	}
	rt.Go(func() { a.loop(ctx) })
	return a
}

// Set gives key the time at, in place of an earlier one; the zero time cancels. A time that has
// passed is due at once. After Close it does nothing.
func (a *Alarms) Set(key string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	al := a.byKey[key]
	if al == nil {
		if at.IsZero() {
			return
		}
		al = &alarm{key: key, index: -1}
		a.byKey[key] = al
	}
	al.at = at.Round(0) // the wall clock, which is what the caller means and what jumps
	if at.IsZero() {
		al.at = time.Time{}
	}
	a.arrange(al)
	a.poke()
}

// arrange puts an alarm into the queue, moves it there or takes it out; mu is held.
func (a *Alarms) arrange(al *alarm) {
	queued := al.index >= 0
	wanted := !al.at.IsZero() && !al.firing
	switch {
	case queued && wanted:
		heap.Fix(&a.queue, al.index)
	case wanted:
		heap.Push(&a.queue, al)
	case queued:
		heap.Remove(&a.queue, al.index)
	}
	if al.at.IsZero() && !al.firing {
		delete(a.byKey, al.key)
	}
}

// poke makes the loop look again.
func (a *Alarms) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Close ends the clock and the context of the calls that run; it does not wait for these, which
// the runtime does.
func (a *Alarms) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.stop()
	<-a.over
}

// loop waits for the earliest alarm, and looks at the clock now and then meanwhile.
func (a *Alarms) loop(ctx context.Context) {
	defer close(a.over)
	timer := time.NewTimer(clockCheck)
	defer timer.Stop()
	for {
		timer.Reset(a.fireDue(ctx))
		select {
		case <-timer.C:
		case <-a.wake:
		case <-ctx.Done():
			return
		}
	}
}

// fireDue starts what is due and says how long to wait before the next look.
func (a *Alarms) fireDue(ctx context.Context) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.rt.Now().Round(0)
	for len(a.queue) > 0 && a.firing < maxFiring && !a.closed {
		al := a.queue[0]
		if wait := al.at.Sub(now); wait > 0 {
			return min(wait, clockCheck)
		}
		al.at, al.firing = time.Time{}, true
		a.firing++
		a.arrange(al)
		a.rt.Go(func() {
			defer a.fired(al)
			a.fire(ctx, al.key)
		})
	}
	return clockCheck // an end of a call, or Set, wakes the loop before
}

// fired notes the end of a call, also of one that panicked.
func (a *Alarms) fired(al *alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.firing--
	al.firing = false
	a.arrange(al)
	a.poke()
}

// alarmQueue is a heap of alarms by time.
type alarmQueue []*alarm

// Len, Less and Swap implement [sort.Interface], Push and Pop [heap.Interface].
func (q alarmQueue) Len() int           { return len(q) }
func (q alarmQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q alarmQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements [heap.Interface].
func (q *alarmQueue) Push(x any) {
	al := x.(*alarm)
	al.index = len(*q)
	*q = append(*q, al)
}

// Pop implements [heap.Interface].
func (q *alarmQueue) Pop() any {
	last := len(*q) - 1
	al := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	al.index = -1
	return al
}
