package worker

import (
	"cmp"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/lineage"
	"github.com/tidemark-ai/tidemark/session"
)

// listSessions answers with the directory of an agent.
func listSessions(c *request) (any, error) {
	limit := c.limit()
	q := c.r.URL.Query()
	a, err := c.owner(cmp.Or(q.Get("agent"), "main"))
	if err != nil {
		return nil, err
	}
	page, next, err := a.Sessions(c.r.Context(), q.Get("cursor"), limit)
	return struct {
		Sessions []tidemark.SessionInfo `json:"sessions"`
		Next     string                 `json:"next,omitempty"`
	}{listed(page), next}, err
}

// listed makes an empty list of none, so that clients need not tell null from [].
func listed[T any](page []T) []T {
	if page == nil {
		return []T{}
	}
	return page
}

// wireSession is one session with what is its own.
type wireSession struct {
	tidemark.SessionInfo
	Busy     string           `json:"busy,omitempty"` // the run in work
	Settings session.Override `json:"settings"`
	From     string           `json:"windowFrom,omitempty"` // how the window is known, for people
	Limit    tidemark.Tokens  `json:"limit"`                // over this it is compacted
	Reserve  tidemark.Tokens  `json:"reserve"`
	Keep     tidemark.Tokens  `json:"keep"`
	Track    tidemark.Key     `json:"track,omitempty"`  // of a client's conversation, the one that is shown for this key
	Tracks   []lineage.Track  `json:"tracks,omitempty"` // all there are, the oldest first
}

func getSession(c *request, s *session.Session) (any, error) {
	return showSession(c, s)
}

func showSession(c *request, s *session.Session) (any, error) {
	ctx := c.r.Context()
	info, track, tracks, err := c.rowOf(s)
	if err != nil {
		return nil, err
	}
	own, err := s.Override(ctx)
	if err != nil {
		return nil, err
	}
	busy, err := s.Busy(ctx)
	if err != nil {
		return nil, err
	}
	b, from := s.Budget(), ""
	if info.Key.Channel() != proxyChannel {
		from = s.Window().From.String()
	}
	return wireSession{SessionInfo: info, Busy: busy, Settings: own, From: from, Limit: b.Limit(), Reserve: b.Reserve, Keep: b.Keep, Track: track, Tracks: tracks}, nil
}

// patchSession sets fields of the session's own settings; null takes one back.
func patchSession(c *request) (any, error) {
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	// Held against an empty one before the session is made: a mistake must not leave one behind.
	var alone session.Override
	if err := decodeOverride(raw, &alone); err != nil {
		return nil, err
	}
	if err := alone.Validate(); err != nil {
		return nil, err
	}
	s, err := c.set()
	if err != nil {
		return nil, err
	}
	own, err := s.Override(c.r.Context())
	if err != nil {
		return nil, err
	}
	if err := decodeOverride(raw, &own); err != nil {
		return nil, err
	}
	if err := s.Configure(c.r.Context(), own); err != nil {
		return nil, err
	}
	return showSession(c, s)
}

// decodeOverride changes the settings that a body names.
func decodeOverride(raw []byte, o *session.Override) error {
	const text, tokens = "a string or null", "a number of tokens or null"
	return decodeBody(raw, field{"title", text, nullable[string]{&o.Title}}, field{"model", text, nullable[string]{&o.Model}},
		field{"window", tokens, nullable[tidemark.Tokens]{&o.Window}}, field{"reserveTokens", tokens, nullable[tidemark.Tokens]{&o.Reserve}},
		field{"keepRecentTokens", tokens, nullable[tidemark.Tokens]{&o.Keep}})
}

// nullable decodes null as the zero value, where a decoder would leave what is there.
type nullable[T any] struct{ to *T }

// UnmarshalJSON implements json.Unmarshaler.
func (n nullable[T]) UnmarshalJSON(raw []byte) error {
	var v T
	if string(raw) != "null" {
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
	}
	*n.to = v
	return nil
}

// postAbort stops the turn in work.
func postAbort(_ *request, s *session.Session) (any, error) {
	return struct {
		Aborted bool `json:"aborted"`
	}{s.Abort()}, nil
}

// postUndo lifts an overlay.
func postUndo(c *request) (any, error) {
	var overlay string
	c.decode(field{"overlay", "the id of an overlay", &overlay})
	if overlay == "" {
		wrong(c, "body: \"overlay\" is missing; the view names the overlays")
	}
	s, err := c.session(false)
	if err != nil {
		return nil, err
	}
	changed, err := s.Undo(c.r.Context(), tidemark.EntryID(overlay))
	if err != nil {
		return nil, err
	}
	v, err := s.View(c.r.Context())
	return struct {
		Overlay string          `json:"overlay"`
		Size    tidemark.Tokens `json:"size"`    // of the view now
		Changed bool            `json:"changed"` // false: it was lifted before
	}{overlay, v.Size, changed}, err
}
