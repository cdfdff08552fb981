package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/toolbox"
	"github.com/tidemark-ai/tidemark/worker"
)

// owner is the object of one agent.
type owner struct {
	in    *instance
	o     *cloudflare.Obj
	clock clock

	mu         sync.Mutex // guards the following; the agent opens under it, nothing waits
	agent      *agent.Agent
	cfg        *config.Config // that it was opened with
	introduced bool           // the main agent knows of it
	book       *channel.Book  // nil until somebody asks
	box        box
}

var (
	_ worker.Actors = (*owner)(nil)
	_ worker.Lister = (*owner)(nil)
)

// openAgent serves the object of an agent: the doors, and what the objects of its sessions ask.
func openAgent(in *instance, o *cloudflare.Obj) cloudflare.App {
	w := &owner{in: in, o: o, clock: clock{o: o}}
	c := in.door(o, w)
	c.People, c.GivenUp, c.Tools = w.people, w.givenUp, w.tools
	door := worker.New(c)
	onward := worker.OnwardOf(door)
	return cloudflare.App{Alarm: w.wake, HTTP: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, agent.PeerPath) { // the front lets nobody come here
			w.peer(rw, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, channel.PeerPath) {
			w.desk(rw, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, worker.OnwardPath) {
			onward.ServeHTTP(rw, r)
			return
		}
		door.ServeHTTP(rw, r)
	})}
}

// tools are those of others, as its sessions have them, for people to look at.
func (w *owner) tools(ctx context.Context) (*toolbox.Box, error) {
	cfg, err := w.in.config(ctx, w.o)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.box.of(w.in, cfg, w.o), nil
}

// Session implements worker.Actors: sessions have objects of their own.
func (w *owner) Session(_ context.Context, key tidemark.Key, _ bool) (*session.Session, error) {
	return nil, fmt.Errorf("session %s: this object is agent %s: %w", key, w.o.Name(), tidemark.ErrForbidden)
}

// Agent implements worker.Actors. An agent is there when it is the main one, is configured or was told
// something by a session.
func (w *owner) Agent(ctx context.Context, name string) (*agent.Agent, error) {
	if name != w.o.Name() {
		return nil, fmt.Errorf("agent %s: this object is agent %s: %w", name, w.o.Name(), tidemark.ErrForbidden)
	}
	return w.get(ctx, false)
}

// Agents implements worker.Lister.
func (w *owner) Agents(ctx context.Context) ([]string, error) {
	a, err := w.get(ctx, true)
	if err != nil {
		return nil, err
	}
	names, err := a.Names(ctx)
	if err != nil {
		return nil, err
	}
	cfg, err := w.in.config(ctx, w.o)
	if err != nil {
		return nil, err
	}
	return everyAgent(cfg, append(names, mainAgent, w.o.Name())), nil
}

// everyAgent adds to names those that are configured, and gives them in order.
func everyAgent(cfg *config.Config, names []string) []string {
	for _, c := range cfg.Agents {
		names = append(names, c.ID)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// get returns the agent; with create, one that nobody has told anything yet is made.
func (w *owner) get(ctx context.Context, create bool) (*agent.Agent, error) {
	cfg, err := w.in.config(ctx, w.o)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.agent != nil && w.cfg == cfg {
		return w.agent, nil
	}
	name := w.o.Name()
	if !create && name != mainAgent && !slices.ContainsFunc(cfg.Agents, func(a config.Agent) bool { return a.ID == name }) {
		there, err := agent.Exists(ctx, w.o.DB())
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, fmt.Errorf("there is no such agent: %w", tidemark.ErrNotFound)
		}
	}
	c, err := setup.Agent(cfg, name)
	if err != nil {
		return nil, err
	}
	c.DB, c.Blobs, c.Runtime, c.Logger, c.Schedule = w.o.DB(), w.o.Blobs(bucket), w.o, w.in.logger, w.in.scheduler(w.o, &w.clock)
	c.Sessions = &agent.FarSessions{Transport: peers(w.o).Transport}
	c.Address = setup.Addressee(name, setup.Channels(cfg, w.o, w.o.Transport()), w.people)
	c.Model = setup.Provider(cfg, w.o, w.o.Transport())
	a, err := agent.New(c)
	if err != nil {
		return nil, err
	}
	if w.agent == nil { // what an earlier life of the object left is due
		c.Schedule(w.o.Now())
	}
	w.agent, w.cfg = a, cfg
	return a, nil
}

// peer answers the object of a session.
func (w *owner) peer(rw http.ResponseWriter, r *http.Request) {
	a, err := w.get(r.Context(), true)
	if err != nil {
		w.in.logger.Warn("open agent", "object", w.o.Name(), "err", err)
		http.Error(rw, "agent", http.StatusServiceUnavailable)
		return
	}
	w.introduce()
	a.Peer(rw, r)
}

// people implements worker.People.
func (w *owner) people(ctx context.Context, name string) (*channel.Book, error) {
	if name != w.o.Name() {
		return nil, fmt.Errorf("agent %s: this object is agent %s: %w", name, w.o.Name(), tidemark.ErrForbidden)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.book != nil {
		return w.book, nil
	}
	b, err := channel.OpenBook(ctx, w.o.DB(), w.o, peers(w.o))
	if err == nil {
		w.book = b
	}
	return b, err
}

// desk answers an object that takes webhooks.
func (w *owner) desk(rw http.ResponseWriter, r *http.Request) {
	book, err := w.people(r.Context(), w.o.Name())
	if err != nil {
		w.in.logger.Warn("open desk", "object", w.o.Name(), "err", err)
		http.Error(rw, "desk", http.StatusServiceUnavailable)
		return
	}
	channel.Peer(rw, r, nil, book)
}

// introduce tells the main agent, once a life, that this one is there.
func (w *owner) introduce() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.introduced || w.o.Name() == mainAgent {
		return
	}
	w.introduced = true
	w.o.Go(func() {
		to := &agent.Remote{Name: mainAgent, Transport: w.o.Peer(agents, mainAgent), Runtime: w.o}
		if err := to.Introduce(w.o.Context(), w.o.Name()); err != nil {
			w.in.logger.Warn("introduce", "object", w.o.Name(), "err", err)
			w.mu.Lock()
			w.introduced = false
			w.mu.Unlock()
		}
	})
}

// wake carries out what is pending.
func (w *owner) wake(ctx context.Context) error {
	return w.clock.wake(ctx, func(ctx context.Context) (time.Time, error) {
		a, err := w.get(ctx, true)
		if err != nil {
			return time.Time{}, err
		}
		return a.Wake(ctx)
	})
}
