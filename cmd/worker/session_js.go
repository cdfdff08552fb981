package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/worker"
)

// conversation is the object of one session and its branches.
type conversation struct {
	in    *instance
	o     *cloudflare.Obj
	clock clock

	mu    sync.Mutex // guards the following; sessions open under it
	seats seats
	box   box
	armed bool // the alarm was set for what an earlier life left
}

var (
	_ worker.Actors = (*conversation)(nil)
	_ worker.Lister = (*conversation)(nil)
)

// openSession serves the object of a session.
func openSession(in *instance, o *cloudflare.Obj) cloudflare.App {
	c := &conversation{in: in, o: o, clock: clock{o: o}}
	door := in.door(o, c)
	door.Sockets, door.Proxies = o.Sockets(), c.proxied
	h := worker.New(door)
	return cloudflare.App{Alarm: c.wake, Sockets: worker.SocketsOf(h), HTTP: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, channel.PeerPath) { // the front lets nobody come here
			channel.Peer(rw, r, setup.Here(c.Session), nil)
			return
		}
		if strings.HasPrefix(r.URL.Path, agent.SessionPath) {
			agent.AnswerSession(rw, r, setup.Here(c.Session))
			return
		}
		h.ServeHTTP(rw, r)
	})}
}

// Agent implements worker.Actors: the front knows better than to ask here.
func (c *conversation) Agent(_ context.Context, name string) (*agent.Agent, error) {
	return nil, fmt.Errorf("agent %s: this object is session %s: %w", name, c.o.Name(), tidemark.ErrForbidden)
}

// Agents implements worker.Lister: the main agent is asked, so it is no matter of every request.
func (c *conversation) Agents(ctx context.Context) ([]string, error) {
	cfg, err := c.in.config(ctx, c.o)
	if err != nil {
		return nil, err
	}
	from := &agent.Remote{Name: mainAgent, Transport: c.o.Peer(agents, mainAgent), Runtime: c.o}
	names, err := from.Names(ctx)
	if err != nil {
		return nil, err
	}
	return everyAgent(cfg, append(names, mainAgent)), nil
}

// Session implements worker.Actors: the front has found the object by the key.
func (c *conversation) Session(ctx context.Context, key tidemark.Key, create bool) (*session.Session, error) {
	if string(key.Root()) != c.o.Name() {
		return nil, fmt.Errorf("session %s: this object is %s: %w", key, c.o.Name(), tidemark.ErrForbidden)
	}
	cfg, err := c.in.config(ctx, c.o)
	if err != nil {
		return nil, err
	}
	s, err := c.seated(ctx, key, create, cfg)
	if err != nil {
		return nil, err
	}
	return s.Session, nil
}

// seated returns the session in memory or opens it.
func (c *conversation) seated(ctx context.Context, key tidemark.Key, create bool, cfg *config.Config) (*seat, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.seats.get(key, cfg); s != nil {
		return s, nil
	}
	if !create {
		there, err := session.Exists(ctx, c.o.DB(), key)
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, fmt.Errorf("there is no such session: %w", tidemark.ErrNotFound)
		}
	}
	if err := c.seats.room(); err != nil {
		return nil, err
	}
	if err := c.rearm(ctx, key); err != nil {
		return nil, fmt.Errorf("set alarm: %w: %w", err, tidemark.ErrUnavailable)
	}
	s, err := c.openSeat(key, cfg)
	if err == nil {
		c.seats.put(key, s)
	}
	return s, err
}

// proxied is worker.Config.Proxies: the front has found the object by the key, and where it was mistaken this one
// shows nothing of its own.
func (c *conversation) proxied(ctx context.Context, key tidemark.Key) (*proxy.Conversation, error) {
	if string(key) != c.o.Name() {
		return nil, fmt.Errorf("conversation %s: this object is %s: %w", key, c.o.Name(), tidemark.ErrForbidden)
	}
	cfg, err := c.in.config(ctx, c.o)
	if err != nil {
		return nil, err
	}
	st, err := c.seated(ctx, key, true, cfg)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.guest != nil {
		return st.guest, nil
	}
	home, err := setup.Home(ctx, st.Session)
	if err != nil {
		return nil, err
	}
	guest, err := proxy.Open(ctx, proxy.Config{Key: key, DB: c.o.DB(), Home: c.in.metrics.Home(home),
		Runtime: c.o, Logger: c.in.logger, Settings: setup.Proxy(cfg)})
	if err != nil {
		return nil, err
	}
	st.guest, st.idle = guest, func() bool { return st.Idle() && guest.Idle() }
	return guest, nil
}

// reportEvery spares the agent's object, which many sessions share.
const reportEvery = time.Minute

func (c *conversation) openSeat(key tidemark.Key, cfg *config.Config) (*seat, error) {
	settings, err := setup.Session(cfg, key)
	if err != nil {
		return nil, err
	}
	settings.ReportEvery, settings.ViewBytes = reportEvery, viewBytes
	life, end := context.WithCancel(c.o.Context())
	probe := c.in.metrics.Probe()
	s, err := session.Open(life, session.Config{
		Key: key, DB: c.o.DB(), Blobs: c.o.Blobs(bucket), Runtime: c.o, Logger: c.in.logger, Settings: settings, Strategies: setup.Strategies(cfg), Rooms: setup.Rooms(cfg, c.o, c.o.Transport(), setup.Courier(setup.Channels(cfg, c.o, c.o.Transport()), c.in.metrics.Sent), &agent.FarSessions{Transport: peers(c.o).Transport}), Stemmer: c.in.stemmer, Alarm: c.clock.set, Admit: c.in.admit,
		Provider: probe.Provider(setup.Provider(cfg, c.o, c.o.Transport())), Observe: probe.Observe,
		Windows: setup.Windows(cfg, c.o.Transport()),
		Agent:   &agent.Remote{Name: key.Agent(), Transport: c.o.Peer(agents, key.Agent()), Runtime: c.o, NoSchedules: !cfg.Schedules.Enabled},
		Tools:   c.box.of(c.in, cfg, c.o),
	})
	if err != nil {
		end()
		return nil, err
	}
	return &seat{Session: s, cfg: cfg, idle: s.Idle, end: end}, nil
}

// rearm sets the alarm in a new life of the object for whatever an earlier one left, before the session
// that is about to be opened sets it: what waits there is taken up by opening.
func (c *conversation) rearm(ctx context.Context, opening tidemark.Key) error {
	if c.armed {
		return nil
	}
	if _, err := session.Migrate(ctx, c.o.DB()); err != nil {
		return err
	}
	due, err := session.Due(ctx, c.o.DB(), c.o.Now())
	for key, at := range due {
		if at.IsZero() && key == opening {
			continue
		}
		if at.IsZero() {
			at = c.o.Now()
		}
		err = errors.Join(err, c.clock.set(ctx, at))
	}
	c.armed = err == nil
	return err
}

// wake does what is due in the session and its branches.
func (c *conversation) wake(ctx context.Context) error {
	c.mu.Lock()
	c.armed = true // behind the wake the alarm is set for all of them
	c.mu.Unlock()
	return c.clock.wake(ctx, c.wakeDue)
}

func (c *conversation) wakeDue(ctx context.Context) (time.Time, error) {
	if _, err := session.Migrate(ctx, c.o.DB()); err != nil {
		return time.Time{}, err
	}
	due, err := session.Due(ctx, c.o.DB(), c.o.Now())
	if err != nil {
		return time.Time{}, err
	}
	for key, at := range due {
		if at.After(c.o.Now()) {
			continue
		}
		s, failed := c.Session(ctx, key, false)
		if failed == nil {
			failed = s.Wake(ctx)
		}
		if failed != nil && !errors.Is(failed, tidemark.ErrNotFound) {
			err = errors.Join(err, fmt.Errorf("%s: %w", key, failed))
		}
	}
	if err != nil {
		return time.Time{}, err
	}
	return session.NextDue(ctx, c.o.DB())
}
