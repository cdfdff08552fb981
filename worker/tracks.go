package worker

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/lineage"
	"github.com/tidemark-ai/tidemark/session"
)

// track reads a path that names a track of a client's conversation. The root's own key means the main one.
func (c *request) track() (key tidemark.Key, ok bool) {
	key, err := tidemark.ParseKey(c.r.PathValue("key"))
	return key, err == nil && lineage.Tracked(key) && key != key.Root()
}

// shown returns the session whose history is shown for the path: of the root of a client's conversation its main track,
// for any other key that one itself.
func (c *request) shown() (*session.Session, error) {
	if key, ok := c.track(); ok && key == key.Root()+lineage.FirstTrack {
		return c.rooted()
	}
	s, err := c.session(false)
	if err != nil {
		return nil, err
	}
	key, _, err := lineage.Shown(c.r.Context(), s.DB, s.Key)
	if err != nil || key == "" || key == s.Key || key == s.Key+lineage.FirstTrack {
		return s, err
	}
	if s, err = c.Actors.Session(c.r.Context(), key, false); err != nil {
		return nil, fmt.Errorf("open session %s: %w", key, err)
	}
	return s, nil
}

// set returns the session whose own settings are changed, which is made if it is not there; a track only its client makes.
func (c *request) set() (*session.Session, error) {
	key, ok := c.track()
	switch {
	case !ok:
		return c.session(true)
	case key == key.Root()+lineage.FirstTrack:
		return c.rooted()
	}
	return c.session(false)
}

// rooted returns the session that the path names, or the root where that is a track of a client's conversation: what is
// looked for, or listened to, is of all of its tracks.
func (c *request) rooted() (*session.Session, error) {
	key, ok := c.track()
	if !ok || c.bad != nil {
		return c.session(false)
	}
	s, err := c.Actors.Session(c.r.Context(), key.Root(), false)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", key.Root(), err)
	}
	return s, nil
}

// rowOf returns what there is to tell of the session that the path names, where that is a track of the track alone, and
// the tracks beside it.
func (c *request) rowOf(s *session.Session) (info tidemark.SessionInfo, shown tidemark.Key, list []lineage.Track, err error) {
	if info, err = s.Info(c.r.Context()); err != nil {
		return info, "", nil, err
	}
	if shown, list, err = lineage.Shown(c.r.Context(), s.DB, s.Key); err != nil {
		return info, "", nil, err
	}
	key, ok := c.track()
	if !ok {
		return info, shown, list, nil
	}
	for _, t := range list {
		if t.Key == key {
			return t.Of(info), key, list, nil
		}
	}
	return info, "", nil, fmt.Errorf("session %s: there is no such track: %w", key, tidemark.ErrNotFound)
}
