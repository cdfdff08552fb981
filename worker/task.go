package worker

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// getTask tells what a conversation works on, and where each line of it comes from.
func getTask(c *request, s *session.Session) (any, error) {
	t, err := taskOf(s)
	if err != nil {
		return nil, err
	}
	return t.View(c.r.Context())
}

// postTask changes it on behalf of the holder of the token.
func postTask(c *request) (any, error) {
	var ch task.Change
	c.decode(field{"new", "true or false", &ch.New}, field{"add", `a list of {"kind", "text"}`, &ch.Add}, field{"close", "a list of names of items", &ch.Close},
		field{"phase", "idle, planning, executing, debugging or reviewing", &ch.Phase}, field{"pin", "a list of ids of entries", &ch.Pin},
		field{"unpin", "a list of ids of entries", &ch.Unpin}, field{"superseded", `a list of {"entry", "by", "reason"}`, &ch.Superseded})
	s, err := c.session(false)
	if err != nil {
		return nil, err
	}
	t, err := taskOf(s)
	if err != nil {
		return nil, err
	}
	return t.Change(c.r.Context(), ch, tidemark.Origin{From: tidemark.FromPerson, Channel: "api", Owner: true})
}

// taskOf is what a conversation works on.
func taskOf(s *session.Session) (*task.Room, error) {
	t, ok := session.Room[*task.Room](s)
	if !ok {
		return nil, fmt.Errorf("task of %s: its host keeps none: %w", s.Key, tidemark.ErrUnavailable)
	}
	return t, nil
}
