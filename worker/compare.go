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
	r, err := branchesOf(s)
	if err != nil {
		return nil, err
	}
	return r.Compare(c.r.Context(), sides[0], sides[1])
}

// branchesOf is the room that compares and merges the branches of a conversation.
func branchesOf(s *session.Session) (*snapshots.Room, error) {
	r, ok := session.Room[*snapshots.Room](s)
	if !ok {
		return nil, fmt.Errorf("branches of %s: its host compares none: %w", s.Key, tidemark.ErrUnavailable)
	}
	return r, nil
}
