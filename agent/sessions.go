package agent

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
)

// Sessions are the conversations of an agent, wherever they live. It may be called at once.
type Sessions interface {
	// Recall searches one conversation. One that is not there is ErrNotFound; without a query nothing is searched,
	// and that is all it tells.
	Recall(ctx context.Context, key tidemark.Key, ask recall.Ask) (recall.Answer, error)
	Errands
	Delegates
	Voices
}

// Errands are conversations that may be given work.
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

// Delegates are conversations that others may delegate to.
type Delegates interface {
	// Drop ends an errand; what was said stays in the log. One that is not there is no error.
	Drop(ctx context.Context, key tidemark.Key, id string) error
	// Read returns a page of the text of a message of a conversation, from an offset in bytes on.
	Read(ctx context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error)
}

// Voices are conversations that an agent may look after and speak in.
type Voices interface {
	// Occupied reports whether a conversation has work. One that is not there has none.
	Occupied(ctx context.Context, key tidemark.Key) (bool, error)
	// Correspondent is where the person who talks there over a channel wrote from last; ErrNotFound when nobody did.
	Correspondent(ctx context.Context, key tidemark.Key) (tidemark.Origin, error)
	// Say sends a text that no model wrote; the same id twice is one.
	Say(ctx context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error
}

// SessionPath is where the object of a session answers its agent, see [AnswerSession]. A host must not let requests
// from outside reach it.
const SessionPath = "/internal/session/"

// FarSessions are sessions that live in objects of their own.
type FarSessions struct {
	Transport func(key tidemark.Key) http.RoundTripper
}

var _ Sessions = (*FarSessions)(nil)

// What the object of a session is asked.
type (
	reading struct {
		Entry  tidemark.EntryID `json:"entry"`
		Offset int              `json:"offset,omitempty"`
	}
	saying struct {
		ID   string           `json:"id"`
		To   tidemark.Address `json:"to"`
		Text string           `json:"text"`
	}
)

// AnswerSession answers another object for the sessions that live here. It checks no token: the host must not let requests
// from outside come here.
func AnswerSession(w http.ResponseWriter, r *http.Request, here Sessions) {
	host.Serve(w, r, strings.TrimPrefix(r.URL.Path, SessionPath), map[string]host.Answer{
		"recall": host.AnsweringTo(here.Recall), "start": host.ObeyingTo(here.Start), "work": host.AnsweringTo(here.Work),
		"decide": host.ObeyingTo(here.Decide), "relay": host.ObeyingTo(here.Relay), "drop": host.ObeyingTo(here.Drop),
		"read": host.AnsweringTo(func(ctx context.Context, key tidemark.Key, q reading) (string, error) {
			return here.Read(ctx, key, q.Entry, q.Offset)
		}),
		"occupied": host.AnsweringTo(func(ctx context.Context, key tidemark.Key, _ any) (bool, error) { return here.Occupied(ctx, key) }),
		"where": host.AnsweringTo(func(ctx context.Context, key tidemark.Key, _ any) (tidemark.Origin, error) {
			return here.Correspondent(ctx, key)
		}),
		"say": host.ObeyingTo(func(ctx context.Context, key tidemark.Key, q saying) error {
			return here.Say(ctx, key, q.ID, q.To, q.Text)
		}),
	})
}

func send[A any](ctx context.Context, s *FarSessions, what string, key tidemark.Key, q any) (A, error) {
	out, err := host.Call[A](ctx, s.Transport(key), "http://session"+SessionPath+what, host.Keyed[any]{Key: key, Ask: q})
	if err != nil && what != "recall" { // which says by itself whom it asked
		err = fmt.Errorf("ask session %s to %s: %w", key, what, err)
	}
	return out, err
}

func (s *FarSessions) tell(ctx context.Context, what string, key tidemark.Key, q any) error {
	_, err := send[any](ctx, s, what, key, q)
	return err
}

// Recall implements [Sessions].
func (s *FarSessions) Recall(ctx context.Context, key tidemark.Key, q recall.Ask) (recall.Answer, error) {
	return send[recall.Answer](ctx, s, "recall", key, q)
}

// Start implements [Errands].
func (s *FarSessions) Start(ctx context.Context, key tidemark.Key, e tidemark.Errand) error {
	return s.tell(ctx, "start", key, e)
}

// Work implements [Errands].
func (s *FarSessions) Work(ctx context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error) {
	return send[tidemark.Outcome](ctx, s, "work", key, e)
}

// Decide implements [Errands].
func (s *FarSessions) Decide(ctx context.Context, key tidemark.Key, d tidemark.Decision) error {
	return s.tell(ctx, "decide", key, d)
}

// Relay implements [Errands].
func (s *FarSessions) Relay(ctx context.Context, key tidemark.Key, q tidemark.Question) error {
	return s.tell(ctx, "relay", key, q)
}

// Drop implements [Delegates].
func (s *FarSessions) Drop(ctx context.Context, key tidemark.Key, id string) error {
	return s.tell(ctx, "drop", key, id)
}

// Read implements [Delegates].
func (s *FarSessions) Read(ctx context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error) {
	return send[string](ctx, s, "read", key, reading{entry, offset})
}

// Occupied implements [Voices].
func (s *FarSessions) Occupied(ctx context.Context, key tidemark.Key) (bool, error) {
	return send[bool](ctx, s, "occupied", key, nil)
}

// Correspondent implements [Voices].
func (s *FarSessions) Correspondent(ctx context.Context, key tidemark.Key) (tidemark.Origin, error) {
	return send[tidemark.Origin](ctx, s, "where", key, nil)
}

// Say implements [Voices].
func (s *FarSessions) Say(ctx context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error {
	return s.tell(ctx, "say", key, saying{id, to, text})
}
