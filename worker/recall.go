package worker

import (
	"fmt"
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/session"
)

// maxRecallBudget bounds ?budget of a recall, in tokens.
const maxRecallBudget = 1 << 20

// recallWide finds messages in many conversations, on behalf of the owner or of the session that is named. A
// host whose sessions are elsewhere comes here in the object of the agent, with scope session in that of the
// session: build/route.mjs does the same.
func (c *call) recallWide() error {
	ask, err := c.recallAsk()
	if err != nil {
		return err
	}
	values := c.r.URL.Query()
	scope, err := recall.ParseScope(values.Get("scope"), recall.ScopeAgent)
	if err != nil {
		return err
	}
	asker, err := c.asker(scope)
	if err != nil {
		return err
	}
	if values.Get("peer") != "" && scope != recall.ScopePeer {
		return fmt.Errorf("peer=%s is for scope=peer: want that, or no peer: %w", clip.To(values.Get("peer"), 80), tidemark.ErrInvalid)
	}
	ask.Scope, ask.Peer = scope, values.Get("peer")
	var found recall.Answer
	if scope == recall.ScopeSession {
		var s *session.Session
		if s, err = c.Actors.Session(c.r.Context(), asker, false); err != nil {
			return fmt.Errorf("open session %s: %w", asker, err)
		}
		if ask.Since, ask.Until, err = s.Between(values.Get("since"), values.Get("until")); err != nil {
			return err
		}
		if found, err = s.Answer(c.r.Context(), ask); err == nil {
			s.NoteAnswer(c.r.Context(), session.ByPerson, found)
		}
	} else {
		a, _, failed := c.owner(asker.Agent())
		if failed != nil {
			return failed
		}
		if values.Get("session") != "" {
			if err = a.There(c.r.Context(), asker); err != nil {
				return fmt.Errorf("session=%s: %w", clip.To(string(asker), 80), err)
			}
		}
		if ask.Since, ask.Until, err = session.Between(values.Get("since"), values.Get("until"), a.Zone()); err != nil {
			return err
		}
		found, err = a.Recall(c.r.Context(), asker.Scope(), ask)
	}
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, found)
}

// recallAsk reads what a recall looks for, but when and where.
func (c *call) recallAsk() (a recall.Ask, err error) {
	if a.Query, err = c.query(); err != nil {
		return a, err
	}
	k, err := c.number("k", session.DefaultK, 1, session.MaxK)
	if err != nil {
		return a, err
	}
	budget, err := c.number("budget", 0, 1, maxRecallBudget)
	if err != nil {
		return a, err
	}
	a.K, a.Budget = int(k), tidemark.Tokens(budget)
	a.All, err = c.flag("all", false)
	return a, err
}

// asker is the key of the conversation on whose behalf is asked: the one that ?session names, else the main
// session of ?agent, which is the owner's.
func (c *call) asker(scope recall.Scope) (tidemark.Key, error) {
	values := c.r.URL.Query()
	name, key := values.Get("agent"), values.Get("session")
	if key != "" {
		k, err := tidemark.ParseKey(key)
		if err == nil && name != "" && k.Agent() != name {
			err = fmt.Errorf("session=%s is not of agent=%s: name one of them: %w", clip.To(key, 80), clip.To(name, 80), tidemark.ErrInvalid)
		}
		return k, err
	}
	if scope == recall.ScopeSession {
		return "", fmt.Errorf("scope=session: want session=KEY, the one to look in: %w", tidemark.ErrInvalid)
	}
	if name == "" {
		name = "main"
	}
	return tidemark.Key("agent:" + name + ":main"), nil
}
