package agent

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/recall"
)

// RecallPath is where the object of a session answers its agent, see [AnswerRecall]. A host must not let
// requests from outside reach it.
const RecallPath = "/internal/recall"

// recallTime bounds a session's question to its agent, which waits for others.
const recallTime = askTime + 4*time.Second

// Digests tells of digests, see [Agent.Digests].
func (r *Remote) Digests(ctx context.Context, report recall.DigestReport) (next int64, err error) {
	a, err := r.ask(ctx, askDigests, question{Digests: &report})
	return a.Next, err
}

// Recall searches other conversations, see [Agent.Recall].
func (r *Remote) Recall(ctx context.Context, scope tidemark.Scope, ask recall.Ask) (recall.Answer, error) {
	ctx, cancel := r.Runtime.WithTimeout(ctx, recallTime)
	defer cancel()
	a, err := r.ask(ctx, askRecall, question{Scope: scope, Ask: &ask})
	if err == nil && a.Found == nil {
		err = fmt.Errorf("agent %s: answered without a result: %w", r.Name, tidemark.ErrUnavailable)
	}
	if err != nil {
		return recall.Answer{}, err
	}
	return *a.Found, nil
}

// FarSessions are sessions that live in objects of their own.
type FarSessions struct {
	Transport func(key tidemark.Key) http.RoundTripper
}

var _ Sessions = (*FarSessions)(nil)

// far is what an agent asks a session, and answered what that one says.
type (
	far struct {
		Key tidemark.Key `json:"key"`
		Ask recall.Ask   `json:"ask"`
	}
	answered struct {
		Answer recall.Answer `json:"answer"`
		host.Refusal
	}
)

// Recall implements [Sessions].
func (s *FarSessions) Recall(ctx context.Context, key tidemark.Key, ask recall.Ask) (recall.Answer, error) {
	var out answered
	err := host.Exchange(ctx, s.Transport(key), "http://session"+RecallPath, far{key, ask}, &out)
	if err == nil {
		err = out.Err()
	}
	return out.Answer, err
}

// AnswerRecall answers the object of an agent for the sessions that live here. It checks no token: the host
// must not let requests from outside come here.
func AnswerRecall(w http.ResponseWriter, r *http.Request, here Sessions) {
	var q far
	var out answered
	err := host.ReadQuestion(r, &q)
	if err == nil {
		out.Answer, err = here.Recall(r.Context(), q.Key, q.Ask)
	}
	out.Refusal = host.Refuse(err)
	host.WriteAnswer(w, out)
}
