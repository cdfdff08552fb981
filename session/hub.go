package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Types of notices, in the order in which a turn sends them.
const (
	NoticeQueued     = "queued"     // an input waits behind the run in work; it is no part of a run
	NoticeStart      = "start"      // a run begins
	NoticeTaken      = "taken"      // inputs were taken up
	NoticeText       = "text"       // a piece of the answer
	NoticeThinking   = "thinking"   // a piece of thinking
	NoticeTool       = "tool"       // a tool call begins
	NoticeResult     = "result"     // the result of a tool call is in the log
	NoticeRestart    = "restart"    // the answer begins again; drop the pieces so far
	NoticeCompacting = "compacting" // a compaction begins
	NoticeEvent      = "event"      // an event was logged: compaction, reset, …
	NoticeReply      = "reply"      // a reply is in the log
	NoticeApproval   = "approval"   // what waits for the owner's decision is Approvals now: a run rests, or a decision was taken
	NoticeDone       = "done"       // the run has ended
	NoticeError      = "error"      // the run has failed
	NoticeStalled    = "stalled"    // it cannot go on, as Text says, and is tried again in Count seconds; without a text it goes on
	NoticeRecalled   = "recalled"   // a recall went as Verdict says; for Config.Observe alone
	NoticeChecked    = "checked"    // a compaction was checked; for Config.Observe alone
	NoticeRoom       = "room"       // a Room counted Count things, which went as Text says; for Config.Observe alone
)

// RoomVectors is the Room of a [NoticeRoom] of vectors that an endpoint was asked for.
const RoomVectors = room.NoticeVectors

// Notice is what happens in a session, as it happens. Notices are not stored: what matters is in
// the log before its notice is sent.
type Notice struct {
	Type    string            `json:"type"`
	Run     string            `json:"run,omitempty"`
	Inputs  []string          `json:"inputs,omitempty"` // that the run took up, or that wait
	Text    string            `json:"text,omitempty"`
	Entry   tidemark.EntryID  `json:"entry,omitempty"`
	Message *tidemark.Message `json:"message,omitempty"`
	Call    *tidemark.Call    `json:"call,omitempty"`
	Event   *tidemark.Event   `json:"event,omitempty"`
	// Approvals is all that waits in the conversation, of an approval; Text is what the owner is asked.
	Approvals []tidemark.Question `json:"approvals,omitzero"`

	Room    string         `json:"-"`
	Checked *room.Checked  `json:"-"`
	Verdict recall.Verdict `json:"-"`
	Count   int            `json:"-"`

	err error
}

// Err returns the error of an error notice.
func (n Notice) Err() error { return n.err }

// hub passes notices on to those who listen. Its zero value is ready.
type hub struct {
	observe func(Notice) // may be nil

	mu    sync.Mutex // guards the following fields; never held over a wait
	subs  map[*Subscription]bool
	said  Said
	reply tidemark.EntryID // that was told of last
}

// Said is what is known of the run in work, for those who come later. Its zero value is none.
type Said struct {
	Run string

	text strings.Builder // visible text of the call in work
	over bool            // it is the beginning of more
}

// Late is of somebody who came when the text of a call was too long to be kept: they have the beginning of
// it, are not told what follows, and find the rest in the log.
type Late bool

// Misses reports whether they are not told a notice; being late ends with the call.
func (l *Late) Misses(n Notice) bool {
	*l = *l && !Late(slices.Contains([]string{NoticeStart, NoticeRestart, NoticeReply, NoticeDone, NoticeError}, n.Type))
	return bool(*l) && n.Type == NoticeText
}

// Take brings it up to date.
func (s *Said) Take(n Notice) {
	switch n.Type {
	case NoticeStart, NoticeRestart, NoticeReply:
		s.Set(n.Run, "")
	case NoticeText:
		if s.over = s.over || s.text.Len()+len(n.Text) > maxPartial; !s.over {
			s.text.WriteString(n.Text)
		}
	case NoticeDone, NoticeError:
		s.Set("", "")
	}
}

// Set begins with what is known from elsewhere.
func (s *Said) Set(run, text string) {
	s.Run, s.over = run, false
	s.text.Reset()
	s.text.WriteString(text)
}

// Text returns the text so far, and whether it is the beginning of one that is too long to be kept.
func (s *Said) Text() (string, Late) { return s.text.String(), Late(s.over) }

// Subscription receives notices until it is closed or falls behind. It is read by one goroutine:
// when Ready gives, take what Next has.
type Subscription struct {
	Ready   <-chan struct{}  // there are notices, or the subscriber fell behind
	Run     string           // the run in work when it began
	Reply   tidemark.EntryID // the reply that was told of last; all later ones are told to this subscription
	Partial string           // the text of its answer behind that one, so far

	joined Late
	h      *hub
	ready  chan struct{}
	queue  []Notice // guarded by h.mu
	bytes  int      // of text in the queue
	behind bool     // cut off because it read too slowly
}

// Bounds of the hub.
const (
	maxBehind  = 4096    // notices that a slow reader may be behind
	maxUnread  = 4 << 20 // bytes of their text
	maxSubs    = 1000    // readers of one session
	maxPartial = 1 << 20 // bytes of text kept for those who come later
)

// Subscribe listens from now on. The caller closes it.
func (s *Session) Subscribe() (*Subscription, error) { return s.hub.subscribe() }

func (h *hub) subscribe() (*Subscription, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subs) >= maxSubs {
		return nil, fmt.Errorf("%d readers listen to this session already: %w", maxSubs, tidemark.ErrBusy)
	}
	ready := make(chan struct{}, 1)
	text, late := h.said.Text()
	u := &Subscription{Ready: ready, ready: ready, h: h, Run: h.said.Run, Reply: h.reply, Partial: text, joined: late}
	if h.subs == nil {
		h.subs = map[*Subscription]bool{}
	}
	h.subs[u] = true
	return u, nil
}

// Next returns the oldest notice that was not read; ok is false when there is none.
func (u *Subscription) Next() (n Notice, ok bool) {
	u.h.mu.Lock()
	defer u.h.mu.Unlock()
	if len(u.queue) == 0 {
		return Notice{}, false
	}
	n = u.queue[0]
	u.bytes -= len(n.Text)
	if u.queue = u.queue[1:]; len(u.queue) == 0 {
		u.queue = nil
	}
	return n, true
}

// Behind reports that the reader was cut off because it read too slowly: the log has the rest.
func (u *Subscription) Behind() bool {
	u.h.mu.Lock()
	defer u.h.mu.Unlock()
	return u.behind && len(u.queue) == 0
}

// Close ends the subscription.
func (u *Subscription) Close() {
	u.h.mu.Lock()
	defer u.h.mu.Unlock()
	delete(u.h.subs, u)
}

// push is called with the lock held. Pieces of one text that were not read become one, and so do inputs
// that wait: ten thousand of them must not cut off who reads a little slower.
func (u *Subscription) push(n Notice) {
	if u.joined.Misses(n) {
		return
	}
	last := len(u.queue) - 1
	if last >= 0 && n.Type == NoticeQueued && u.queue[last].Type == NoticeQueued && len(u.queue[last].Inputs) < maxTaken {
		u.queue[last].Inputs = slices.Concat(u.queue[last].Inputs, n.Inputs)
	} else if last > 0 && (n.Type == NoticeText || n.Type == NoticeThinking) && u.queue[last].Type == n.Type &&
		u.queue[last].Run == n.Run && len(u.queue[last].Text) < mergeText {
		u.queue[last].Text += n.Text
	} else {
		u.queue = append(u.queue, n)
	}
	if u.bytes += len(n.Text); len(u.queue) > maxBehind || u.bytes > maxUnread {
		u.behind = true
		delete(u.h.subs, u)
	}
	select {
	case u.ready <- struct{}{}:
	default:
	}
}

// mergeText bounds the text that unread pieces are joined to, so that joining stays linear.
const mergeText = 4096

// send never waits: who is too far behind is cut off, and reads the log instead.
func (h *hub) send(n Notice) {
	if h.observe != nil {
		h.observe(n)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said.Take(n)
	if n.Type == NoticeReply {
		h.reply = n.Entry
	}
	for u := range h.subs {
		u.push(n)
	}
}

// told says which reply a run had committed before this life took it over.
func (h *hub) told(reply tidemark.EntryID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reply = reply
}

// Explain says what went wrong in words for the person in the conversation: no stack of wraps
// where the provider or a bound of ours has said it already.
func Explain(err error) string {
	var api *tidemark.APIError
	var large tooLargeError
	var over *overBudgetError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &large):
		return fmt.Sprintf("The newest message alone is too large: about %d tokens, and %d may be sent. Send it in parts, or less of it.", large.size, large.limit)
	case errors.As(err, &over):
		return fmt.Sprintf("The budget of this turn is used up: it spent %d tokens and may spend %d. What its tools brought is kept.", over.spent, over.budget)
	case errors.Is(err, tidemark.ErrAborted):
		return "Stopped."
	case errors.Is(err, tidemark.ErrOverflow):
		return "Context window exceeded even after compaction. Try resetting the session with /reset."
	case errors.As(err, &api):
		return explainAPI(api)
	case errors.Is(err, tidemark.ErrTimeout):
		return "The turn took too long and was stopped."
	}
	return err.Error()
}

func explainAPI(e *tidemark.APIError) string {
	if e.Type == tidemark.EmptyReply {
		return "The model answered with nothing. Try again. (" + e.Message + ")"
	}
	switch e.Class {
	case tidemark.ClassAuth:
		return "The model provider refused the key: " + e.Message + ". Set the right one and try again."
	case tidemark.ClassRate:
		return "The model provider is limiting requests. Try again in a moment. (" + e.Message + ")"
	case tidemark.ClassOverloaded:
		return "The model provider is overloaded. Try again in a moment. (" + e.Message + ")"
	case tidemark.ClassNetwork:
		return "The model provider could not be reached. (" + e.Message + ")"
	case tidemark.ClassOverflow:
		return "Context window exceeded even after compaction. Try resetting the session with /reset."
	}
	return e.Error()
}

// endings tell of turns that end, by a subscription, which is renewed when that fell behind.
type endings struct {
	s       *Session
	sub     *Subscription
	longest time.Duration
}

// Close implements room.Ends.
func (e *endings) Close() { e.sub.Close() }

// Next implements room.Ends. Nobody tells of what another life of the object does, so it waits no longer than a run may be
// silent.
func (e *endings) Next(ctx context.Context) error {
	pause, stop := e.s.Runtime.WithTimeout(ctx, e.longest)
	defer stop()
	for {
		select {
		case <-e.sub.Ready:
		case <-e.s.life.Done():
			return tidemark.ErrDead
		case <-pause.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return nil
		}
		over := false
		for n, more := e.sub.Next(); more; n, more = e.sub.Next() {
			over = over || n.Type == NoticeDone || n.Type == NoticeError
		}
		if e.sub.Behind() {
			next, err := e.s.Subscribe()
			if err != nil {
				return err
			}
			e.sub = next // the hub has let go of the other
			return nil
		}
		if over {
			return nil
		}
	}
}
