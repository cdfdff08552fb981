package session

import (
	"errors"
	"strings"
	"sync"

	"github.com/tidemark-ai/tidemark"
)

// Types of notices, in the order in which a turn sends them.
const (
	NoticeStart      = "start"      // a run begins
	NoticeTaken      = "taken"      // inputs were taken up
	NoticeText       = "text"       // a piece of the answer
	NoticeThinking   = "thinking"   // a piece of thinking
	NoticeTool       = "tool"       // a tool call begins
	NoticeResult     = "result"     // a tool call ended
	NoticeRestart    = "restart"    // the answer begins again; drop the pieces so far
	NoticeCompacting = "compacting" // a compaction begins
	NoticeEvent      = "event"      // an event was logged: compaction, reset, …
	NoticeReply      = "reply"      // a reply is in the log
	NoticeDone       = "done"       // the run has ended
	NoticeError      = "error"      // the run has failed
)

// Notice is what happens in a session, as it happens. Notices are not stored: what matters is in
// the log before its notice is sent.
type Notice struct {
	Type    string            `json:"type"`
	Run     string            `json:"run,omitempty"`
	Inputs  []string          `json:"inputs,omitempty"` // that the run took up
	Text    string            `json:"text,omitempty"`
	Entry   tidemark.EntryID  `json:"entry,omitempty"`
	Message *tidemark.Message `json:"message,omitempty"`
	Call    *tidemark.Call    `json:"call,omitempty"`
	Event   *tidemark.Event   `json:"event,omitempty"`

	err   error
	final bool
}

// Err returns the error of an error notice.
func (n Notice) Err() error { return n.err }

// hub passes notices on to those who listen. Its zero value is ready.
type hub struct {
	observe func(Notice) // may be nil

	mu      sync.Mutex // guards the following fields; never held over a wait
	subs    map[*Subscription]bool
	run     string          // in work
	partial strings.Builder // visible text of the call in work
}

// Subscription receives notices until it is closed or falls behind.
type Subscription struct {
	C       <-chan Notice // closed when the subscriber fell behind or closed it
	Run     string        // the run in work when it began
	Partial string        // the text of its answer so far
	c       chan Notice
	h       *hub
}

// Bounds of the hub.
const (
	maxBehind  = 4096    // notices that a slow reader may be behind
	maxSubs    = 1000    // readers of one session
	maxPartial = 1 << 20 // bytes of text kept for those who come later
)

// Subscribe listens from now on. The caller closes it.
func (s *Session) Subscribe() (*Subscription, error) { return s.hub.subscribe() }

func (h *hub) subscribe() (*Subscription, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subs) >= maxSubs {
		return nil, errors.Join(errors.New("too many listeners on this session"), tidemark.ErrBusy)
	}
	c := make(chan Notice, maxBehind)
	sub := &Subscription{C: c, c: c, h: h, Run: h.run, Partial: h.partial.String()}
	if h.subs == nil {
		h.subs = map[*Subscription]bool{}
	}
	h.subs[sub] = true
	return sub, nil
}

// Close ends the subscription.
func (u *Subscription) Close() {
	u.h.mu.Lock()
	defer u.h.mu.Unlock()
	u.h.drop(u)
}

// drop is called with the lock held.
func (h *hub) drop(u *Subscription) {
	if h.subs[u] {
		delete(h.subs, u)
		close(u.c)
	}
}

// send never waits: who is too far behind is cut off, and reads the log instead.
func (h *hub) send(n Notice) {
	if h.observe != nil {
		h.observe(n)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch n.Type {
	case NoticeStart, NoticeRestart, NoticeReply:
		h.run = n.Run
		h.partial.Reset()
	case NoticeText:
		if h.partial.Len() < maxPartial {
			h.partial.WriteString(n.Text)
		}
	case NoticeDone, NoticeError:
		h.run = ""
		h.partial.Reset()
	}
	for u := range h.subs {
		select {
		case u.c <- n:
		default:
			h.drop(u)
		}
	}
}

// Explain says what went wrong in words for the person in the conversation: no stack of wraps
// where the provider or a bound of ours has said it already.
func Explain(err error) string {
	var api *tidemark.APIError
	switch {
	case err == nil:
		return ""
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
