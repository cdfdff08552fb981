package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/delegation"
	"github.com/tidemark-ai/tidemark/session"
)

// TestDelegateFails: a child that fails, is refused or cannot be reached is told of in words, and the parent goes on.
func TestDelegateFails(t *testing.T) {
	h, f := parent(t, delegation.Config{})
	h.stop()
	h.rt = &swift{Runtime: h.rt}
	h.open()
	h.model.set(delegating(func(tidemark.Request) (tidemark.Message, error) {
		return tidemark.Message{}, &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no such key"}
	}, assign("count")))
	if got := h.say("please"); !strings.HasPrefix(got, "true [agent:main:delegate:dm:") || !strings.Contains(got, "no such key") {
		t.Errorf("failed: %q", got)
	}
	h.model.set(delegating(obeys, assign("count")))
	for name, want := range map[string]error{"forbidden here": tidemark.ErrForbidden, "500 sessions are in work": tidemark.ErrBusy, "the disk is gone": tidemark.ErrUnavailable} {
		f.asked, f.refuse = 0, func(int) error { return fmt.Errorf("%s: %w", name, want) }
		got := h.say("please")
		if !strings.HasPrefix(got, "true agent:main:delegate:dm:") || !strings.HasSuffix(got, "could not be asked: "+name) {
			t.Errorf("%s: %q", name, got)
		}
		if n := f.asked; (n == 1) != errors.Is(want, tidemark.ErrForbidden) || n > 5 {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
	f.asked, f.refuse = 0, func(n int) error { // cut off, then there again
		if n < 3 {
			return tidemark.ErrDead
		}
		return nil
	}
	if got := h.say("please"); !strings.HasPrefix(got, "false [Answer of") || f.asked != 3 {
		t.Errorf("cut off: %q", got)
	}
}

// swift is a runtime that does not sleep, and whose timeouts end when they are told to.
type swift struct {
	tidemark.Runtime
	late <-chan struct{} // ends the timeout of a length
	of   time.Duration
}

func (s *swift) Sleep(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

func (s *swift) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if s.late == nil || d != s.of {
		return s.Runtime.WithTimeout(ctx, d)
	}
	out, stop := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		select {
		case <-s.late:
			stop(tidemark.ErrTimeout)
		case <-done:
		}
	}()
	return out, sync.OnceFunc(func() { close(done); stop(context.Canceled) })
}

// TestDelegateTooLong: a child that takes too long is stopped, and the parent is told.
func TestDelegateTooLong(t *testing.T) {
	late := make(chan struct{})
	h := newHarness(t, session.Settings{})
	h.stop()
	h.delegation.Timeout = 7 * time.Minute
	f := newFamily(h)
	h.rt = &swift{Runtime: h.rt, late: late, of: 7 * time.Minute}
	h.open()
	held := make(chan struct{})
	h.model.set(delegating(func(req tidemark.Request) (tidemark.Message, error) {
		close(late)
		<-held
		return obeys(req)
	}, assign("count")))
	got := h.say("please")
	close(held)
	key, child := f.only()
	if !strings.HasPrefix(got, "true "+string(key)+" did not answer within 7m0s and was stopped.") {
		t.Errorf("read %q", got)
	}
	if out, err := errands(child).Work(t.Context(), f.begun[key]); err != nil || out.Error != "Stopped." {
		t.Errorf("the child: %+v, %v", out, err)
	}
}

// TestDelegateAborted: who stops the parent stops its children, in this life or, told over a channel, in the next; what
// they said stays.
func TestDelegateAborted(t *testing.T) {
	for _, how := range []string{"abort", "stop", "stop and die"} {
		t.Run(how, func(t *testing.T) {
			h, f := parent(t, delegation.Config{})
			h.model.hold, h.model.entered = make(chan struct{}, 1), make(chan struct{}, 9)
			h.model.hold <- struct{}{} // the parent's call is answered, the child's is not
			h.model.set(delegating(obeys, assign("count")))
			sub, err := h.Subscribe()
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			in := session.Input{ID: "in", Message: tidemark.NewText(tidemark.User, "please")}
			if _, err := h.Post(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			<-h.model.entered
			<-h.model.entered
			stop := session.Input{Kind: session.InputAsk, Text: tidemark.CommandStop}
			switch how {
			case "abort":
				h.Abort()
			case "stop":
				if _, err := h.Post(t.Context(), stop); err != nil {
					t.Fatal(err)
				}
			default:
				h.stop() // its next life finds the mark
				h.exec(`UPDATE runs SET error = 'stop:""' WHERE key = ? AND state = 'tools'`, string(h.Key))
				h.open()
				if sub, err = h.Subscribe(); err != nil {
					t.Fatal(err)
				}
			}
			if how != "stop and die" {
				if got := h.wait(sub, "in"); got != "error: Stopped." {
					t.Errorf("the parent: %q", got)
				}
			} else if got := h.finish(in); got != "" && got != "error: Stopped." {
				t.Errorf("the parent: %q", got)
			}
			key, child := f.only()
			if out, err := errands(child).Work(t.Context(), f.begun[key]); err != nil || out.Error != "Stopped." {
				t.Errorf("the child: %+v, %v", out, err)
			}
			v, err := child.View(t.Context())
			if err != nil || len(v.Items) != 1 || v.Items[0].Message.PlainText() != "count" {
				t.Errorf("its log: %v, %v", v.Items, err)
			}
			h.sent() // no call is left unanswered
		})
	}
}

// TestKillDelegate kills the parent before and after each write of a turn that delegates. The next life has the same
// children, which worked once, and one answer.
func TestKillDelegate(t *testing.T) {
	play := func(t *testing.T, left int, after bool) (writes int) {
		h := newHarness(t, session.Settings{})
		h.stop()
		h.key = "agent:main:local:dm:kill"
		real := h.db
		newFamily(h)
		doomed := &mortal{DB: real, left: left, after: after, dead: make(chan struct{})}
		h.db = doomed
		h.model.usage = tidemark.Usage{Input: 500, Output: 10}
		h.model.set(delegating(obeys, assign("a"), assign("b")))
		e := given("e1", "count", tidemark.Limits{Budget: 50_000})
		if s, err := h.tryOpen(); err == nil {
			ended := make(chan struct{})
			ctx, stop := context.WithCancel(t.Context())
			go func() { defer close(ended); _, _ = errands(s).Work(ctx, e) }()
			select {
			case <-doomed.dead:
			case <-ended:
			}
			stop()
			<-ended
		}
		h.stop()
		h.db = real
		h.open()
		out := h.work(e)
		if out.Error != "" || strings.Count(out.Text, "false [Answer of") != 2 || !strings.Contains(out.Text, "I counted for: b") {
			t.Errorf("%+v", out)
		}
		tasks := map[string]int{}
		for _, req := range h.model.calls {
			if isChild(req) {
				tasks[first(req)]++
			}
		}
		if fmt.Sprint(tasks) != "map[a:1 b:1]" {
			t.Errorf("children were asked %v times", tasks)
		}
		rows, err := real.Query(t.Context(), `SELECT key FROM heads WHERE key LIKE '%:delegate:%' LIMIT 10`)
		if err != nil || len(rows) != 2 {
			t.Errorf("%d children, %v", len(rows), err)
		}
		if out.Spent < 4*510 || out.Spent > 5*510 { // a call of the parent may be made twice
			t.Errorf("spent %d", out.Spent)
		}
		if texts := h.originals(); len(texts) != 4 {
			t.Errorf("log %q", texts)
		}
		h.sent()
		return doomed.writes
	}
	total := play(t, 1<<30, false)
	if total < 10 {
		t.Fatalf("the turn makes only %d writes", total)
	}
	for n := 1; n <= total; n += max(1, killStep(4)/2) {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after=%v", n, after), func(t *testing.T) {
				t.Parallel()
				play(t, n, after)
			})
		}
	}
}

// TestKillChild ends the life of a child in the middle of its work: its next life goes on, and the parent, which asks
// again, has one answer.
func TestKillChild(t *testing.T) {
	h, f := parent(t, delegation.Config{})
	h.stop()
	h.rt = &swift{Runtime: h.rt}
	h.open()
	n := 0
	h.model.set(delegating(func(req tidemark.Request) (tidemark.Message, error) {
		if n++; n == 1 {
			end := f.end // the parent asks again as soon as the old life is over: it must not find that one
			f.open()
			end()
		}
		if len(req.Messages) == 1 {
			return tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("l", "look", nil)}}, nil
		}
		return obeys(req)
	}, assign("count")))
	if got := h.say("please"); !strings.HasPrefix(got, "false [Answer of") {
		t.Errorf("read %q", got)
	}
	_, child := f.only()
	var roles []string
	for e, err := range child.Reader.All(t.Context(), false) {
		m, err2 := e.Message()
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		roles = append(roles, string(m.Role))
	}
	if want := []string{"user", "assistant", "user", "assistant"}; !slices.Equal(roles, want) {
		t.Errorf("its log: %v", roles)
	}
}

// TestDelegateHeartbeat: an alarm that looks after the parent while it waits starts nothing twice.
func TestDelegateHeartbeat(t *testing.T) {
	h, f := parent(t, delegation.Config{})
	h.model.set(delegating(func(req tidemark.Request) (tidemark.Message, error) {
		h.exec(`UPDATE due SET at = 1 WHERE kind = 'run'`)
		child, err := f.at(f.first(), false)
		if err != nil {
			return tidemark.Message{}, err
		}
		for range 3 {
			if err := errors.Join(h.Wake(t.Context()), child.Wake(t.Context())); err != nil {
				return tidemark.Message{}, err
			}
		}
		return obeys(req)
	}, assign("count")))
	if got := h.say("please"); !strings.HasSuffix(got, "I counted for: count") {
		t.Errorf("read %q", got)
	}
	if n := h.model.count(); n != 3 || f.asked != 1 {
		t.Errorf("%d calls of the model, asked %d times", n, f.asked)
	}
}

// first is the only child that was begun.
func (f *family) first() tidemark.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.begun {
		return key
	}
	return ""
}
