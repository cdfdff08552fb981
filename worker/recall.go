package worker

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// maxRecallBudget bounds ?budget of a recall, in tokens.
const maxRecallBudget = 1 << 20

// recallWide finds messages in many conversations, on behalf of the owner or of the session that is named. A
// host whose sessions are elsewhere comes here in the object of the agent, with scope session in that of the
// session: build/route.mjs does the same.
func recallWide(c *request) (any, error) {
	ask, err := c.recallAsk()
	if err != nil {
		return nil, err
	}
	values := c.r.URL.Query()
	scope, err := recall.ParseScope(values.Get("scope"), recall.ScopeAgent)
	if err != nil {
		return nil, err
	}
	asker, err := c.asker(scope)
	if err != nil {
		return nil, err
	}
	if values.Get("peer") != "" && scope != recall.ScopePeer {
		return nil, fmt.Errorf("peer=%s is for scope=peer: want that, or no peer: %w", clip.To(values.Get("peer"), 80), tidemark.ErrInvalid)
	}
	ask.Scope, ask.Peer = scope, values.Get("peer")
	var found recall.Answer
	if scope == recall.ScopeSession {
		var s *session.Session
		if s, err = c.Actors.Session(c.r.Context(), asker, false); err != nil {
			return nil, fmt.Errorf("open session %s: %w", asker, err)
		}
		r, failed := searchOf(s)
		if failed != nil {
			return nil, failed
		}
		if ask.Since, ask.Until, err = r.Between(values.Get("since"), values.Get("until")); err != nil {
			return nil, err
		}
		if found, err = r.Answer(c.r.Context(), ask); err == nil {
			r.NoteAnswer(c.r.Context(), session.ByPerson, found)
		}
	} else {
		a, failed := c.owner(asker.Agent())
		if failed != nil {
			return nil, failed
		}
		if values.Get("session") != "" {
			if err = a.There(c.r.Context(), asker); err != nil {
				return nil, fmt.Errorf("session=%s: %w", clip.To(string(asker), 80), err)
			}
		}
		if ask.Since, ask.Until, err = search.Between(values.Get("since"), values.Get("until"), a.Zone()); err != nil {
			return nil, err
		}
		found, err = a.Recall(c.r.Context(), asker.Scope(), ask)
	}
	return found, err
}

// searchOf is what finds in a conversation.
func searchOf(s *session.Session) (*search.Room, error) {
	r, ok := session.Room[*search.Room](s)
	if !ok {
		return nil, fmt.Errorf("recall in %s: its host finds nothing again: %w", s.Key, tidemark.ErrUnavailable)
	}
	return r, nil
}

// recallAsk reads what a recall looks for, but when and where.
func (c *request) recallAsk() (recall.Ask, error) {
	return recall.Ask{Query: c.query(), K: int(c.number("k", search.DefaultK, 1, search.MaxK)),
		Budget: tidemark.Tokens(c.number("budget", 0, 1, maxRecallBudget)), All: c.flag("all", false)}, c.bad
}

// asker is the key of the conversation on whose behalf is asked: the one that ?session names, else the main
// session of ?agent, which is the owner's.
func (c *request) asker(scope recall.Scope) (tidemark.Key, error) {
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
