package session

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// stall is what a session knows of not getting on: its storage does not take what it writes, or what it has to
// read is damaged. It is of this life, since what cannot be written down cannot be kept. Its zero value is none.
type stall struct {
	tries int                // in a row that came to nothing
	since time.Time          // the first of them
	until time.Time          // the next
	told  string             // what who listens was told of
	wake  context.CancelFunc // ends waiting for the next
}

// Pauses between tries, each twice the one before.
const (
	stallFirst = 5 * time.Second
	stallMost  = 10 * time.Minute
	stallTold  = 2 // tries from which it is worth a word: the first may be a hiccup
)

// retryLater tries to go on after a pause. Who writes meanwhile tries at once, see Post.
func (s *Session) retryLater(why error) {
	now := s.Runtime.Now()
	ctx, cancel := context.WithCancel(s.life)
	s.mu.Lock()
	st := &s.stall
	if st.tries == 0 {
		st.since = now
	} else {
		st.wake()
	}
	pause := min(stallFirst<<min(st.tries, 7), stallMost)
	st.tries++
	st.until, st.wake = now.Add(pause), cancel
	tell, text := st.tries >= stallTold, Explain(why)
	fresh := tell && st.told != text
	if fresh {
		st.told = text
	}
	s.mu.Unlock()
	if tell && s.Observe != nil {
		s.Observe(Notice{Type: NoticeStalled, Text: text, Count: int(pause.Seconds())})
	}
	if fresh {
		s.hub.send(Notice{Type: NoticeEvent, Event: &tidemark.Event{Type: "notice", Text: "This conversation waits: " + text +
			". Nothing of it is lost. It is tried again by itself, and at once when somebody writes."}})
	}
	s.Runtime.Go(func() {
		defer cancel()
		if s.Runtime.Sleep(ctx, pause) == nil {
			s.goOn()
		}
	})
}

// goOn tries to go on now.
func (s *Session) goOn() {
	if err := s.resume(s.life); err != nil {
		s.Logger.Error("resume", "session", s.Key, "err", err)
		s.retryLater(err)
	}
}

// stalled returns when the next try is, the zero time when the session gets on, and how many came to nothing.
// A clock that was set back puts nothing off.
func (s *Session) stalled() (until time.Time, tries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.stall.until.Sub(s.Runtime.Now()); left > 0 && left <= stallMost {
		until = s.stall.until
	}
	return until, s.stall.tries
}

// eased ends a stall. The log says of one that was told how long it was, and why.
func (s *Session) eased(log string) {
	s.mu.Lock()
	st := s.stall
	s.stall = stall{}
	s.mu.Unlock()
	if st.tries == 0 {
		return
	}
	st.wake()
	if st.told == "" {
		return
	}
	if s.Observe != nil {
		s.Observe(Notice{Type: NoticeStalled})
	}
	stmts, err := s.eventStmts(log, tidemark.Event{Type: "notice", Text: fmt.Sprintf("This conversation waited %s, and %d tries came to nothing: %s. Nothing of it is lost.",
		s.Runtime.Now().Sub(st.since).Round(time.Second), st.tries, st.told)})
	if err == nil {
		err = s.DB.Tx(s.life, stmts)
	}
	if err != nil {
		s.Logger.Warn("record a stall", "session", s.Key, "err", err)
	}
}
