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
	r, err := roomOf[*snapshots.Merges](s, "snapshots")
	if err != nil {
		return nil, err
	}
	return r.Compare(c.r.Context(), sides[0], sides[1])
}

// roomOf is a room of a session; what names what it keeps.
func roomOf[T any](s *session.Session, what string) (T, error) {
	r, ok := session.Room[T](s)
	if !ok {
		return r, fmt.Errorf("%s of %s: its host keeps none: %w", what, s.Key, tidemark.ErrUnavailable)
	}
	return r, nil
}

// entered opens the session that the path names, and returns a room of it.
func entered[T any](c *request) (r T, err error) {
	s, err := c.session(false)
	if err != nil {
		return r, err
	}
	return roomOf[T](s, "snapshots")
}
