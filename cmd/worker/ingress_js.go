package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/worker"
)

const (
	sessions = "SESSION"
	// shards begins the names of objects of the agents' class that take webhooks: see build/webhook.mjs.
	shards = "in:"
	// maxShown is what a model is shown of a file: it passes through three objects of one memory.
	maxShown = 2 << 20
)

// shard is one of the objects that take an agent's webhooks.
type shard struct {
	in    *instance
	o     *cloudflare.Obj
	clock clock

	mu      sync.Mutex // guards the following; the ingress opens under it
	ingress *channel.Ingress
	cfg     *config.Config // that it was opened with
	end     context.CancelFunc
	desks   map[string]*channel.FarDesk
}

var _ worker.Actors = (*shard)(nil)

// openShard serves an object that takes webhooks, and nothing else.
func openShard(in *instance, o *cloudflare.Obj) cloudflare.App {
	s := &shard{in: in, o: o, clock: clock{o: o}, desks: map[string]*channel.FarDesk{}}
	c := in.door(o, s)
	c.Webhooks = func(ctx context.Context, _ string) (worker.Ingress, error) { return s.get(ctx) }
	door := worker.New(c)
	return cloudflare.App{Alarm: s.wake, HTTP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == kick { // the front lets nobody come here
			s.kick(w, r)
			return
		}
		if r.URL.Path == channel.GivenUpPath {
			channel.ServeGivenUp(w, r, o.DB())
			return
		}
		door.ServeHTTP(w, r)
	})}
}

// kick is where build/webhook.mjs tells that bodies were stored.
const kick = channel.PeerPath + "kick"

func (s *shard) kick(w http.ResponseWriter, r *http.Request) {
	in, err := s.get(r.Context())
	if err != nil { // the alarm tries again
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	in.Kick()
	w.WriteHeader(http.StatusNoContent)
}

// Session implements worker.Actors.
func (s *shard) Session(context.Context, tidemark.Key, bool) (*session.Session, error) {
	return nil, fmt.Errorf("this object takes webhooks: %w", tidemark.ErrForbidden)
}

// Agent implements worker.Actors.
func (s *shard) Agent(context.Context, string) (*agent.Agent, error) {
	return nil, fmt.Errorf("this object takes webhooks: %w", tidemark.ErrForbidden)
}

// get returns the ingress, opened anew when the settings have changed and nothing is at hand.
func (s *shard) get(ctx context.Context) (*channel.Ingress, error) {
	cfg, err := s.in.config(ctx, s.o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ingress != nil && (s.cfg == cfg || !s.ingress.Idle()) {
		return s.ingress, nil
	}
	life, end := context.WithCancel(s.o.Context())
	in, err := channel.OpenIngress(life, channel.Config{
		DB: s.o.DB(), Blobs: s.o.Blobs(bucket), Runtime: s.o, Logger: s.in.logger, MaxShown: maxShown,
		Channels: setup.Channels(cfg, s.o, s.o.Transport()), Desk: s.desk, Schedule: s.in.scheduler(s.o, &s.clock), Count: s.in.metrics.Arrived,
		Sessions: peers(s.o),
	})
	if err != nil {
		end()
		return nil, err
	}
	if s.end != nil {
		s.end()
	}
	s.ingress, s.cfg, s.end = in, cfg, end
	return in, nil
}

// shardCount is SHARDS of build/webhook.mjs.
const shardCount = 16

// givenUp implements worker.GivenUp: each object that takes webhooks is asked.
func (w *owner) givenUp(ctx context.Context, name string) ([]channel.Stuck, error) {
	if name != w.o.Name() {
		return nil, fmt.Errorf("agent %s: this object is agent %s: %w", name, w.o.Name(), tidemark.ErrForbidden)
	}
	var all []channel.Stuck
	for n := range shardCount {
		list, err := channel.AskGivenUp(ctx, w.o, w.o.Peer(agents, fmt.Sprintf("%s%s:%d", shards, name, n)))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b channel.Stuck) int { return b.At.Compare(a.At) })
	return all, nil
}

// peers are the sessions, each in its object.
func peers(o *cloudflare.Obj) *channel.Peers {
	return &channel.Peers{Runtime: o, Transport: func(key tidemark.Key) http.RoundTripper { return o.Peer(sessions, string(key.Root())) }}
}

// desk reaches that of an agent.
func (s *shard) desk(name string) channel.Desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.desks[name]
	if d == nil {
		d = &channel.FarDesk{Transport: s.o.Peer(agents, name), Runtime: s.o}
		s.desks[name] = d
	}
	return d
}

// wake works off what is due.
func (s *shard) wake(ctx context.Context) error {
	return s.clock.wake(ctx, func(ctx context.Context) (time.Time, error) {
		in, err := s.get(ctx)
		if err != nil {
			return time.Time{}, err
		}
		return in.Wake(ctx)
	})
}
