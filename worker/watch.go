package worker

import (
	"errors"
	"net/http"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// outcome is what a turn came to: the answer, and the last event of its stream.
type outcome struct {
	Type      string            `json:"type"` // done
	ID        string            `json:"id"`   // of the input
	Session   string            `json:"sessionId"`
	Duplicate bool              `json:"duplicate,omitempty"`
	Entry     tidemark.EntryID  `json:"entry,omitempty"`
	Reply     *tidemark.Message `json:"reply,omitempty"`
	Text      string            `json:"text"`
	Stop      string            `json:"stop,omitempty"` // of the last call; "approval" for a turn that rests until the owner decides
	Usage     tidemark.Usage    `json:"usage"`          // of all calls of the turn
	Context   tidemark.Tokens   `json:"contextTokens"`
	Events    []tidemark.Event  `json:"events"`

	Approvals []tidemark.Question `json:"approvals,omitempty"` // what waits; Text is the question then
}

// maxEvents bounds what an outcome lists.
const maxEvents = 1000

// watch follows one input through the notices of its session, among those of other turns. It is
// pure: notices in, notices to pass on out.
type watch struct {
	id  string // of the input
	run string // that took it, once known
	cur string // in work
	out outcome

	events []tidemark.Event // of the run in work
	start  *session.Notice  // of the run in work, until it is known to be ours
	ended  bool
	err    error
}

func newWatch(id string) *watch {
	return &watch{id: id, out: outcome{Type: "done", ID: id, Events: []tidemark.Event{}}}
}

// see takes the next notice and returns what concerns this input: all of its own run, and of other
// runs what concerns the whole session.
func (t *watch) see(n session.Notice) []session.Notice {
	switch n.Type { // of no run, so they end none
	case session.NoticeQueued: // who said it has a receipt
		return nil
	case session.NoticeStalled:
		return []session.Notice{n}
	}
	if n.Run != t.cur {
		t.cur, t.events, t.start = n.Run, nil, nil
	}
	var pass []session.Notice
	if t.run == "" && slices.Contains(n.Inputs, t.id) {
		t.run = n.Run
		if t.start != nil {
			pass = append(pass, *t.start)
		}
	}
	ours := n.Run == t.run && t.run != ""
	switch n.Type {
	case session.NoticeStart:
		if !ours {
			t.start = &n
			return nil
		}
	case session.NoticeEvent, session.NoticeCompacting:
		if n.Event != nil && len(t.events) < maxEvents {
			t.events = append(t.events, *n.Event)
		}
		return append(pass, n)
	case session.NoticeReply:
		if ours {
			t.answered(n)
		}
	case session.NoticeApproval:
		if ours && len(n.Approvals) > 0 {
			t.rests(n.Approvals, n.Text)
		}
	case session.NoticeDone:
		t.ended = ours
		return pass // the outcome stands for it
	case session.NoticeError:
		if t.ended = ours; ours {
			t.err = n.Err()
			if t.err == nil {
				t.err = errors.New(n.Text)
			}
		}
		return pass
	}
	if !ours {
		return nil
	}
	return append(pass, n)
}

func (t *watch) answered(n session.Notice) {
	t.out.Entry, t.out.Reply = n.Entry, n.Message
	if n.Message != nil {
		t.out.Text = session.Answer(*n.Message)
	}
	if n.Call != nil {
		t.out.Stop = n.Call.Stop
		t.out.Usage = t.out.Usage.Add(n.Call.Usage)
	}
}

// rests ends the following of a turn that goes on when the owner has decided: who asks for the same input later has its
// answer.
func (t *watch) rests(list []tidemark.Question, question string) {
	t.ended = true
	t.out.Stop, t.out.Approvals, t.out.Text, t.out.Reply = stopApproval, list, question, nil
}

// stopApproval is why an answer ends that is a question to the owner.
const stopApproval = "approval"

// outcome completes what the turn came to with what the session is now.
func (t *watch) outcome(info tidemark.SessionInfo) outcome {
	out := t.out
	out.Session, out.Context = info.ID, info.ContextTokens
	if out.Events = append(out.Events, t.events...); out.Reply == nil && out.Approvals == nil && len(out.Events) > 0 {
		out.Text = out.Events[len(out.Events)-1].Text // of a command
	}
	return out
}

// stored takes how the input's turn has ended, as the log says.
func (t *watch) stored(failure string) {
	t.ended = true
	if failure != "" {
		t.err = &refused{http.StatusBadGateway, "failed", failure}
	}
}
