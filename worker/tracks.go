package worker

import (
	"fmt"

	"github.com/tidemark-ai/tidemark/session"
)

// shown returns the session whose history is shown for the path: of the root of a client's conversation its main track,
// for any other key that one itself.
func (c *call) shown() (*session.Session, error) {
	s, err := c.session(false)
	if err != nil {
		return nil, err
	}
	key, _, err := s.Tracks(c.r.Context())
	if err != nil || key == s.Key || key == "" {
		return s, err
	}
	if s, err = c.Actors.Session(c.r.Context(), key, false); err != nil {
		return nil, fmt.Errorf("open session %s: %w", key, err)
	}
	return s, nil
}

// rooted returns the session that the path names, or the root where that is a track of a client's conversation: what is
// looked for, or listened to, is of all of its tracks.
func (c *call) rooted() (*session.Session, error) {
	s, err := c.session(false) // it is there
	if err != nil || !session.Tracked(s.Key) || s.Key == s.Key.Root() {
		return s, err
	}
	root := s.Key.Root()
	if s, err = c.Actors.Session(c.r.Context(), root, false); err != nil {
		return nil, fmt.Errorf("open session %s: %w", root, err)
	}
	return s, nil
}
