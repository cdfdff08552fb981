package worker

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// firstTrack names the first track of a client's conversation where the root's own key means the main one.
const firstTrack = "#t1"

// shown returns the session whose history is shown for the path: of the root of a client's conversation its main track,
// for any other key that one itself.
func (c *call) shown() (*session.Session, error) {
	if key, err := tidemark.ParseKey(c.r.PathValue("key")); err == nil && session.Tracked(key) && key == key.Root()+firstTrack {
		return c.rooted()
	}
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
	key, err := tidemark.ParseKey(c.r.PathValue("key"))
	if err != nil || !session.Tracked(key) || key == key.Root() {
		return c.session(false)
	}
	root := key.Root()
	s, err := c.Actors.Session(c.r.Context(), root, false)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", root, err)
	}
	return s, nil
}
