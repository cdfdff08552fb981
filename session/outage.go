package session

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// outage is what a session knows of not getting on: its storage does not take what it writes, or what it has to
// read is damaged. It is of this life, since what cannot be written down cannot be kept. Its zero value is none.
type outage struct {
	tries int                // in a row that came to nothing
	since time.Time          // the first of them
	until time.Time          // the next
	why   string             // what was told of them, empty for nothing
	wake  context.CancelFunc // ends waiting for the next
}

// Pauses between tries, each twice the one before.
const (
	outageFirst = 5 * time.Second
	outageMost  = 10 * time.Minute
)

// retryLater tries to go on after a pause. Who writes meanwhile tries at once, see Post.
func (s *Session) retryLater(why error) {
	now := s.Runtime.Now()
	ctx, cancel := context.WithCancelCause(s.life)
	s.mu.Lock()
	st := &s.outage
	pause := min(outageFirst<<min(st.tries, 7), outageMost)
	if st.tries == 0 {
		st.since = now
	} else {
		st.wake()
		st.why = Explain(why) // the first may be a hiccup
	}
	st.tries++
	st.until, st.wake = now.Add(pause), func() { cancel(nil) }
	n := Notice{Type: NoticeStalled, Text: st.why, Count: int(pause / time.Second)}
	s.mu.Unlock()
	if n.Text != "" {
		s.hub.send(n)
	}
	s.Runtime.Go(func() {
		if s.Runtime.Sleep(ctx, pause) == nil {
			s.goOn()
		}
	})
}

// goOn tries to go on now.
func (s *Session) goOn() {
	if err := s.resume(s.life); err != nil {
		s.failed("resume", nil, err)
		s.retryLater(err)
	}
}

// retries returns how many tries came to nothing, 0 when the session gets on, and when the next one is.
func (s *Session) retries() (tries int, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outage.tries, s.outage.until
}

// recovered ends an outage. The log says of one that was told how long it was, and why.
func (s *Session) recovered(log string) {
	s.mu.Lock()
	st := s.outage
	s.outage = outage{}
	s.mu.Unlock()
	if st.tries > 0 {
		st.wake()
	}
	if st.why == "" {
		return
	}
	s.hub.send(Notice{Type: NoticeStalled})
	told := s.eventStmt(log, tidemark.Event{Type: "notice", Text: fmt.Sprintf("This conversation waited for %.0f s, nothing is lost: %s", s.Runtime.Now().Sub(st.since).Seconds(), st.why)})
	if err := s.DB.Tx(s.life, []tidemark.Stmt{told}); err != nil {
		s.warn("record an outage", err)
	}
}
