package setup

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/session"
)

// Upstream is an API that requests of clients go on to: its base URL, empty for the vendor's own, and our
// key there, empty where only those of clients count.
type Upstream struct{ Base, Key string }

// Upstreams are those of the Messages API and of chat completions. A key of ours goes where the model is that it is
// for, and nowhere else.
func Upstreams(c *config.Config) (messages, chat Upstream) {
	m := c.Model
	if messages.Base = c.Proxy.Upstream; messages.Base == "" && m.Provider == config.Anthropic {
		messages = Upstream{m.BaseURL, c.Secrets.Anthropic.Reveal()}
	}
	if chat.Base = c.Proxy.Chat; chat.Base == "" && m.Provider == config.OpenAI {
		chat = Upstream{m.BaseURL, c.Secrets.OpenAI.Reveal()}
	}
	return messages, chat
}

// clients is the channel of conversations whose clients keep the history themselves.
const clients = "proxy"

// Off is the treatment of requests that are passed on, of which nothing is kept.
const Off = "off"

// Proxy returns what is done with requests of clients that keep their history themselves.
func Proxy(c *config.Config) proxy.Settings {
	p := c.Compaction.Paging
	s := proxy.Settings{Treatment: c.Proxy.Treatment, Window: c.Proxy.Window, Alone: !c.Proxy.Cooperate,
		Paging: paging.Options{Policy: p.Policy, Tau: p.Tau, MinBytes: cmp.Or(p.MinBytes, -1), Zones: p.Percents()}} // there the zero value is the default
	if s.Treatment == Off { // a request may ask for another one
		s.Treatment = ""
	}
	if rows, err := p.Rows(); err == nil && len(rows) > 0 {
		s.Tools = paging.DefaultTools().With(rows)
	}
	e := evictor(c.Compaction)
	s.Episodes = proxy.EpisodeSettings{Budget: e.Budget, LowWater: e.LowWater, Tools: e.Tools}
	return s
}

// Home gives a client's conversation its place among those of a session's agent.
func Home(ctx context.Context, s *session.Session) (proxy.Home, error) {
	records, ok := session.Room[*anatomy.Room](s)
	if !ok {
		return nil, fmt.Errorf("%s has no room for records: %w", s.Key, tidemark.ErrInvalid)
	}
	return home{s.Guest()}, records.Open(ctx)
}

type home struct{ session.Guest }

// Called implements [proxy.Home]: a call of a client's conversation is recorded like one of a session.
func (h home) Called(name, log, title string, messages int, r proxy.Record) []tidemark.Stmt {
	a := anatomyOf(r)
	a.Session = log
	return append(h.Guest.Called(name, title, messages, a.Usage, a.Context), anatomy.Stmt(h.Branched(name), log, a))
}

// anatomyOf gives a record of the proxy in the form of a session's.
func anatomyOf(r proxy.Record) anatomy.Record {
	paged := r.Account
	paged.Fill = percentOf(r.Size, r.Window)
	a := anatomy.Record{Turn: string(r.LastID), Run: string(r.LastID), Until: r.Last, Anchored: r.Call.Reported, Parts: map[string]anatomy.Portion{},
		Proxy: &anatomy.Proxied{Treatment: r.Treatment, Untouched: r.Untouched, Legs: r.Legs, First: int64(r.First.Context() - r.First.Output), Phantom: r.Phantom, Trimmed: r.Trimmed, Episodes: r.Episodes},
		At:    r.At.UnixMilli(), Model: r.Call.Model, Requested: r.Requested, Stop: r.Call.Stop, Error: r.Error, Usage: r.Call.Usage,
		Events: r.Messages, Attempt: 1, Window: r.Window, Limit: r.Window, Size: r.Size, Full: paged.Fill, Markers: r.Stubs, Last: r.Last, Paging: &paged,
		Context: r.Newest.Context()}
	return a
}

// percentOf is a share of the whole in percent, with one place.
func percentOf(n, of tidemark.Tokens) float64 {
	if of <= 0 {
		return 0
	}
	return math.Round(float64(n)*1000/float64(of)) / 10
}
