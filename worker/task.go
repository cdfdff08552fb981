package worker

import (
	"fmt"
	"net/http"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// getTask tells what a conversation works on, and where each line of it comes from.
func (c *call) getTask() error {
	s, err := c.shown()
	if err != nil {
		return err
	}
	t, err := taskOf(s)
	if err != nil {
		return err
	}
	v, err := t.View(c.r.Context())
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, v)
}

// postTask changes it on behalf of the holder of the token.
func (c *call) postTask() error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	var ch task.Change
	err = decodeBody(raw, field{"new", "true or false", &ch.New}, field{"add", `a list of {"kind", "text"}`, &ch.Add}, field{"close", "a list of names of items", &ch.Close},
		field{"phase", "idle, planning, executing, debugging or reviewing", &ch.Phase}, field{"pin", "a list of ids of entries", &ch.Pin},
		field{"unpin", "a list of ids of entries", &ch.Unpin}, field{"superseded", `a list of {"entry", "by", "reason"}`, &ch.Superseded})
	if err != nil {
		return err
	}
	s, err := c.session(false)
	if err != nil {
		return err
	}
	t, err := taskOf(s)
	if err != nil {
		return err
	}
	v, err := t.Change(c.r.Context(), ch, tidemark.Origin{From: tidemark.FromPerson, Channel: "api", Owner: true})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, v)
}

// taskOf is what a conversation works on.
func taskOf(s *session.Session) (*task.Room, error) {
	t, ok := session.Room[*task.Room](s)
	if !ok {
		return nil, fmt.Errorf("task of %s: its host keeps none: %w", s.Key, tidemark.ErrUnavailable)
	}
	return t, nil
}
