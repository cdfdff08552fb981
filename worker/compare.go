package worker

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
)

// getCompare puts two branches or snapshots of a conversation side by side.
func getCompare(c *request) (any, error) {
	var sides [2]string
	for i, name := range []string{"a", "b"} {
		s := c.r.URL.Query().Get(name)
		if isSnapshotID(s) {
			sides[i] = s
			continue
		}
		if s == "" {
			return nil, fmt.Errorf("%s: want the key of a session, or the id of a snapshot: %w", name, tidemark.ErrInvalid)
		}
		key, err := tidemark.ParseKey(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sides[i] = string(key)
	}
	s, err := homeSession(c)
	if err != nil {
		return nil, err
	}
	r, err := placesOf[*snapshots.Merges](s)
	if err != nil {
		return nil, err
	}
	return r.Compare(c.r.Context(), sides[0], sides[1])
}

// placesOf is a room of a session that has to do with snapshots and branches.
func placesOf[T any](s *session.Session) (T, error) {
	r, ok := session.Room[T](s)
	if !ok {
		return r, fmt.Errorf("snapshots of %s: its host keeps none: %w", s.Key, tidemark.ErrUnavailable)
	}
	return r, nil
}

// entered opens the session that the path names, and returns a room of it.
func entered[T any](c *request) (r T, err error) {
	s, err := c.session(false)
	if err != nil {
		return r, err
	}
	return placesOf[T](s)
}
