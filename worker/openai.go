package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// ownModel names, to clients that must name a model, the one that is configured; "tidemark:work" names
// the agent work.
const ownModel = "tidemark"

// agentOf returns the agent that a model's name names, if it does, and whether the name is one of ours.
func agentOf(model string) (agent string, own bool) {
	if model == "" || model == ownModel {
		return "", true
	}
	if agent, own = strings.CutPrefix(model, ownModel+":"); !own {
		return "", false
	}
	return agent, true
}

// postChat is chat completions. With a session, or a user, the conversation is kept here; without, the
// model is called and nothing is stored, or the request is one to OpenAI's API, and goes on to it.
func postChat(c *request) (any, error) {
	header := c.r.Header.Get(headerSession)
	if header == "" && c.elsewhere() {
		return pass(c, chatPath)
	}
	raw, err := c.body()
	if errors.Is(err, errCoded) && header == "" && c.ownKey() {
		return pass(c, chatPath) // its API may know it
	}
	if err != nil {
		return nil, err
	}
	if header == "" && c.ownKey() && userOf(raw) == "" {
		p, err := c.passage(chatPath)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		return nil, p.through(raw)
	}
	f, err := readChat(raw, header != "")
	if err != nil {
		return nil, err
	}
	if f.model == "" {
		f.model = ownModel
	}
	if !f.kept {
		return complete(c, f)
	}
	if err := f.settle(takesNone); err != nil {
		return nil, err
	}
	t := talk{channel: "api", messages: f.messages, ignored: append(named(f.rest), f.limits...)}
	if f.system != "" {
		t.ignored = append(t.ignored, "system")
	}
	if header != "" {
		t.key, err = tidemark.ParseKey(header)
	} else {
		agent, _ := agentOf(f.model)
		t.byModel = agent != ""
		t.key, err = keyOf(agent, userChannel, f.user)
	}
	if err != nil {
		return nil, err
	}
	return converse(c, t, c.completion(f))
}

// complete calls the model with what the client sent and nothing else.
func complete(c *request, f chatForm) (any, error) {
	if f.system == "" && len(f.messages) == 0 {
		return nil, fmt.Errorf("messages: there are none: %w", tidemark.ErrInvalid)
	}
	if err := tidemark.CheckCalls(f.messages); err != nil { // what else an API demands its provider brings about
		return nil, fmt.Errorf("messages: %w: %w", err, tidemark.ErrInvalid)
	}
	model, err := c.model(c.r.Context())
	if err != nil {
		return nil, err
	}
	if err := f.settle(takesOf(model.Provider)); err != nil {
		return nil, err
	}
	req := tidemark.Request{Model: model.ID, System: f.system, Tools: f.tools, Messages: f.messages, MaxTokens: f.limit, Options: f.options}
	agent, own := agentOf(f.model)
	if all, ok := c.Actors.(Lister); ok && agent != "" {
		if err := isThere(c.r.Context(), all, agent); err != nil {
			return nil, err
		}
	}
	if !own {
		req.Model = f.model
	}
	c.ignore(named(f.rest))
	ctx, cancel := c.Runtime.WithTimeout(c.r.Context(), c.Wait)
	defer cancel()
	out := c.completion(f)
	ended := false
	err = attend(c, c.Metrics.Probe().Provider(model.Provider).Stream(ctx, req), cancel, func(d tidemark.Delta, err error) (bool, error) {
		switch {
		case err != nil:
			return false, err
		case d.Reply == nil:
			return false, out.say(out.piece(d.Text))
		}
		ended = true
		calls := callsOf(d.Reply.Message)
		if err := out.say(out.whole(flat(&d.Reply.Message))); err != nil {
			return true, err
		}
		return true, out.finish(finishOf(d.Reply.Call.Stop, len(calls) > 0), calls, d.Reply.Call.Usage)
	}, func() bool { return true }, out.ping)
	if err == nil && !ended {
		err = fmt.Errorf("the model's answer ended without a reply: %w", tidemark.ErrUnavailable)
	}
	if err == nil || errors.Is(err, errLeft) {
		return nil, err
	}
	return nil, out.fail(err)
}

// model returns what answers calls without a conversation.
func (c *request) model(ctx context.Context) (Model, error) {
	if c.Model == nil {
		return Model{}, &refused{http.StatusNotImplemented, "not_implemented", "this host calls models in conversations only; name one in " + headerSession}
	}
	return c.Config.Model(ctx)
}

// modelsSince is given as the age of a model, which clients of both APIs expect: the first of Tidemark.
const modelsSince, modelsDay = 1767225600, "2026-01-01T00:00:00Z"

type (
	wireModel struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		Owner   string `json:"owned_by"`
	}
	wireModelOther struct {
		Type    string `json:"type"`
		ID      string `json:"id"`
		Name    string `json:"display_name"`
		Created string `json:"created_at"`
	}
)

// names lists what a client may call a model: the configured one as tidemark, each agent, and the
// configured one by its own name.
func (c *request) names() ([]string, error) {
	out := []string{ownModel}
	if l, ok := c.Actors.(Lister); ok {
		agents, err := l.Agents(c.r.Context())
		if err != nil {
			return nil, fmt.Errorf("list agents: %w", err)
		}
		for _, a := range agents {
			out = append(out, ownModel+":"+a)
		}
	}
	if c.Model == nil {
		return out, nil
	}
	m, err := c.Config.Model(c.r.Context())
	if err != nil {
		return nil, err
	}
	if m.ID != "" && !slices.Contains(out, m.ID) {
		out = append(out, m.ID)
	}
	return out, nil
}

// listModels lists models in the form of whom asks.
func listModels(c *request) (any, error) {
	names, err := c.names()
	if err != nil {
		return nil, err
	}
	if errorFormOf(c.r) == anthropic {
		list := make([]wireModelOther, len(names))
		for i, n := range names {
			list[i] = wireModelOther{"model", n, n, modelsDay}
		}
		return map[string]any{"data": list, "has_more": false, "first_id": names[0], "last_id": names[len(names)-1]}, nil
	}
	list := make([]wireModel, len(names))
	for i, n := range names {
		list[i] = wireModel{n, "model", modelsSince, ownModel}
	}
	return map[string]any{"object": "list", "data": list}, nil
}

// getModel tells of one model; names of some have slashes.
func getModel(c *request) (any, error) {
	names, err := c.names()
	if err != nil {
		return nil, err
	}
	id := c.r.PathValue("id")
	switch {
	case !slices.Contains(names, id):
		return nil, noModel(id)
	case errorFormOf(c.r) == anthropic:
		return wireModelOther{"model", id, id, modelsDay}, nil
	}
	return wireModel{id, "model", modelsSince, ownModel}, nil
}
