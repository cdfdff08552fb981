package worker

import (
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/proxy"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
	"github.com/tidemark-ai/tidemark/session"
)

// getEpisodes tells what an agent's work is divided into, the newest of it, oldest first.
func getEpisodes(c *request) (any, error) {
	const most = 1 << 30
	before := c.number("before", most, 1, most)
	limit := c.limit()
	s, err := c.shown()
	if err != nil {
		return nil, err
	}
	v, err := episodesOf(c, s)
	if err != nil {
		return nil, err
	}
	out := struct {
		episodic.Overview
		Counts map[episodic.State]int `json:"counts"` // of all
		Total  int                    `json:"total"`
		Next   int                    `json:"next,omitempty"`
	}{v, map[episodic.State]int{}, len(v.Episodes), 0}
	for _, e := range v.Episodes {
		out.Counts[e.State]++
	}
	list := listed(v.Episodes)
	if n := int(before) - 1; n < len(list) { // the number of one is its place
		list = list[:n]
	}
	if n := len(list) - limit; n > 0 {
		list = list[n:]
		out.Next = list[0].N
	}
	out.Episodes = list
	return out, nil
}

// readEpisode reads a page of an episode by its name, as it stands in the log.
func readEpisode(c *request) (any, error) {
	const longest = 200 // bytes of a name
	values := c.r.URL.Query()
	for name := range values {
		if name != "episode" && name != "offset" {
			return nil, fmt.Errorf("%s: an episode is read whole, want episode and offset alone: %w", name, tidemark.ErrInvalid)
		}
	}
	name := values.Get("episode")
	if strings.TrimSpace(name) == "" || len(name) > longest || invalidUTF8([]byte(name)) >= 0 {
		return nil, fmt.Errorf("episode: want its name, up to %d bytes of UTF-8: %w", longest, tidemark.ErrInvalid)
	}
	offset := c.number("offset", 0, 0, 1<<40)
	s, err := c.shown()
	if err != nil {
		return nil, err
	}
	v, of, err := clientsEpisodes(c, s)
	if err != nil {
		return nil, err
	}
	r, err := dividedOf(s)
	switch {
	case err != nil:
		return nil, err
	case !of:
		return r.Read(c.r.Context(), name, int(offset))
	}
	all := make([]*episodes.Episode, len(v.States))
	for i := range all {
		all[i] = v.States[i].Episode
	}
	return r.ReadOf(c.r.Context(), v.Log, all, name, int(offset))
}

// dividedOf is what knows the episodes of a conversation.
func dividedOf(s *session.Session) (*episodic.Room, error) {
	r, ok := session.Room[*episodic.Room](s)
	if !ok {
		return nil, fmt.Errorf("episodes of %s: its host keeps none: %w", s.Key, tidemark.ErrUnavailable)
	}
	return r, nil
}

// clientsEpisodes are those of a client's conversation; of is false for one of our own.
func clientsEpisodes(c *request, s *session.Session) (v proxy.EpisodesTold, of bool, err error) {
	if s.Key.Channel() != proxyChannel || c.Proxies == nil {
		return v, false, nil
	}
	ctx := c.r.Context()
	conv, err := c.Proxies(ctx, s.Key.Root())
	if err != nil {
		return v, true, fmt.Errorf("open conversation %s: %w", s.Key, err)
	}
	_, track, _ := strings.Cut(string(s.Key), "#")
	v, err = conv.Episodes(ctx, track)
	return v, true, err
}

// episodesOf are the episodes of a session. Those of a client's conversation only the proxy knows, since what the model marks
// there never reaches the client, nor its log.
func episodesOf(c *request, s *session.Session) (episodic.Overview, error) {
	ctx := c.r.Context()
	v, of, err := clientsEpisodes(c, s)
	if err != nil {
		return episodic.Overview{}, err
	}
	r, err := dividedOf(s)
	switch {
	case err != nil:
		return episodic.Overview{}, err
	case !of:
		return r.Overview(ctx)
	}
	out := episodic.Overview{Session: v.Log, Enabled: v.Enabled, Budget: v.Budget, LowWater: v.LowWater, Size: v.Size, Short: v.Short, Active: v.Open,
		Episodes: episodic.List(v.States, v.Part, v.Prologue)}
	return out, r.TellTimes(ctx, out.Episodes)
}
