package worker

import (
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/approvals"
	"github.com/tidemark-ai/tidemark/session"
)

// getApprovals lists the tool calls of a conversation that wait for the owner's decision.
func getApprovals(c *request) (any, error) {
	list := []tidemark.Question{}
	s, err := c.session(false)
	if err == nil {
		if r, ok := session.Room[*approvals.Room](s); ok {
			list, err = r.Waiting(c.r.Context())
		}
	}
	if err != nil && !errors.Is(err, tidemark.ErrNotFound) { // nothing waits where nobody has said anything
		return nil, err
	}
	return struct {
		Approvals []tidemark.Question `json:"approvals"`
	}{list}, nil
}

// wireDecision is what became of a decision.
type wireDecision struct {
	Code  string       `json:"code"`
	Allow bool         `json:"allow"`
	Key   tidemark.Key `json:"session"`
	Tool  string       `json:"tool,omitempty"`
}

// decision reads one from the body: who holds the token is the owner.
func (c *request) decision() (tidemark.Decision, error) {
	d := tidemark.Decision{By: tidemark.Origin{From: tidemark.FromPerson, Channel: "api", Owner: true}}
	raw, err := c.body()
	if err != nil {
		return d, err
	}
	if err := decodeBody(raw, field{"code", "a string", &d.Code}, field{"allow", "true or false", &d.Allow}); err != nil {
		return d, err
	}
	var said struct {
		Allow *bool `json:"allow"`
	}
	if json.Unmarshal(raw, &said) != nil || said.Allow == nil || d.Code == "" {
		return d, fmt.Errorf("want {\"code\":\"…\",\"allow\":true or false}: %w", tidemark.ErrInvalid)
	}
	return d, nil
}

// postApproval decides about a call of a conversation. The turn goes on by itself; its answer is had as that of its input.
func postApproval(c *request, s *session.Session) (any, error) {
	d, err := c.decision()
	if err != nil {
		return nil, err
	}
	r, ok := session.Room[*approvals.Room](s)
	if !ok {
		return nil, fmt.Errorf("nothing is asked here: %w", tidemark.ErrNotFound)
	}
	if err := r.Decide(c.r.Context(), d); err != nil {
		return nil, err
	}
	return wireDecision{Code: d.Code, Allow: d.Allow, Key: s.Key}, nil
}

// listApprovals lists what waits in all conversations of an agent.
func listApprovals(c *request, a *agent.Agent) (any, error) {
	list, err := a.Questions(c.r.Context())
	return struct {
		Approvals []tidemark.Question `json:"approvals"`
	}{list}, err
}

// decideApproval decides about a call of whichever conversation of the agent asked.
func decideApproval(c *request, a *agent.Agent) (any, error) {
	d, err := c.decision()
	if err != nil {
		return nil, err
	}
	q, err := a.Answer(c.r.Context(), d)
	return wireDecision{Code: q.Code, Allow: d.Allow, Key: q.Session, Tool: q.Tool}, err
}
