package agent

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
)

// Errands is what [Sessions] are beside, where conversations may be given work.
type Errands interface {
	// Start gives a conversation an errand, and makes one that is not there. It returns when that is durable;
	// the same twice is one.
	Start(ctx context.Context, key tidemark.Key, e tidemark.Errand) error
	// Work is Start, and waits for what comes of it. A failed turn is an Outcome with an Error.
	Work(ctx context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error)
	// Decide tells a conversation what the owner decided. A code that waits for nothing there is ErrNotFound.
	Decide(ctx context.Context, key tidemark.Key, d tidemark.Decision) error
	// Relay asks the owner in a conversation of theirs what another one asks; the same twice is one.
	Relay(ctx context.Context, key tidemark.Key, q tidemark.Question) error
}

// Delegates is what [Errands] are beside, where one conversation may delegate to others.
type Delegates interface {
	// Drop ends an errand; what was said stays in the log. One that is not there is no error.
	Drop(ctx context.Context, key tidemark.Key, id string) error
	// Read returns a page of the text of a message of a conversation, from an offset in bytes on.
	Read(ctx context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error)
}

// ErrandPath is where the object of a session takes errands, see [AnswerErrand]. A host must not let requests
// from outside reach it.
const ErrandPath = "/internal/errand/"

// What is asked behind ErrandPath.
const (
	askStart  = "start"
	askWork   = "work"
	askDecide = "decide"
	askRelay  = "relay"
	askDrop   = "drop"
	askRead   = "read"
)

// sent is an errand or a decision on its way to the object of a session, come is what that one answers.
type (
	sent struct {
		Key      tidemark.Key       `json:"key"`
		Errand   *tidemark.Errand   `json:"errand,omitempty"`
		Decision *tidemark.Decision `json:"decision,omitempty"`
		Question *tidemark.Question `json:"question,omitempty"`
		Say      *saying            `json:"say,omitempty"`
		ID       string             `json:"id,omitempty"` // of an errand to be dropped, or an entry to be read
		Offset   int                `json:"offset,omitempty"`
	}
	come struct {
		Outcome  tidemark.Outcome `json:"outcome"`
		Occupied bool             `json:"occupied,omitempty"`
		Origin   tidemark.Origin  `json:"origin,omitzero"`
		Text     string           `json:"text,omitempty"`
		host.Refusal
	}
)

var (
	_ Errands   = (*FarSessions)(nil)
	_ Delegates = (*FarSessions)(nil)
)

// Start implements [Errands].
func (s *FarSessions) Start(ctx context.Context, key tidemark.Key, e tidemark.Errand) error {
	_, err := s.send(ctx, askStart, sent{Key: key, Errand: &e})
	return err
}

// Work implements [Errands].
func (s *FarSessions) Work(ctx context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error) {
	out, err := s.send(ctx, askWork, sent{Key: key, Errand: &e})
	return out.Outcome, err
}

// Drop implements [Delegates].
func (s *FarSessions) Drop(ctx context.Context, key tidemark.Key, id string) error {
	_, err := s.send(ctx, askDrop, sent{Key: key, ID: id})
	return err
}

// Read implements [Delegates].
func (s *FarSessions) Read(ctx context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error) {
	out, err := s.send(ctx, askRead, sent{Key: key, ID: string(entry), Offset: offset})
	return out.Text, err
}

// Decide implements [Errands].
func (s *FarSessions) Decide(ctx context.Context, key tidemark.Key, d tidemark.Decision) error {
	_, err := s.send(ctx, askDecide, sent{Key: key, Decision: &d})
	return err
}

// Relay implements [Errands].
func (s *FarSessions) Relay(ctx context.Context, key tidemark.Key, q tidemark.Question) error {
	_, err := s.send(ctx, askRelay, sent{Key: key, Question: &q})
	return err
}

func (s *FarSessions) send(ctx context.Context, what string, q sent) (come, error) {
	var out come
	err := host.Exchange(ctx, s.Transport(q.Key), "http://session"+ErrandPath+what, q, &out)
	if err == nil {
		err = out.Err()
	}
	if err != nil {
		return out, fmt.Errorf("ask session %s to %s: %w", q.Key, what, err)
	}
	return out, nil
}

// AnswerErrand answers another object for the sessions that live here. It checks no token: the host must not
// let requests from outside come here.
func AnswerErrand(w http.ResponseWriter, r *http.Request, here Errands) {
	var q sent
	var out come
	err := host.ReadQuestion(r, &q)
	if err == nil {
		err = errand(r.Context(), strings.TrimPrefix(r.URL.Path, ErrandPath), q, here, &out)
	}
	out.Refusal = host.Refuse(err)
	host.WriteAnswer(w, out)
}

func errand(ctx context.Context, what string, q sent, here Errands, out *come) (err error) {
	far, _ := here.(Delegates)
	switch {
	case what == askStart && q.Errand != nil:
		return here.Start(ctx, q.Key, *q.Errand)
	case what == askWork && q.Errand != nil:
		out.Outcome, err = here.Work(ctx, q.Key, *q.Errand)
		return err
	case what == askDecide && q.Decision != nil:
		return here.Decide(ctx, q.Key, *q.Decision)
	case what == askRelay && q.Question != nil:
		return here.Relay(ctx, q.Key, *q.Question)
	case what == askDrop && far != nil:
		return far.Drop(ctx, q.Key, q.ID)
	case what == askRead && far != nil:
		out.Text, err = far.Read(ctx, q.Key, tidemark.EntryID(q.ID), q.Offset)
		return err
	}
	return voice(ctx, what, q, here, out)
}
