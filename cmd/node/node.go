// Package node is the native host of agents and sessions: a database for each agent, the sessions in memory, their alarms,
// channels and tools, and the handler of the API.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/toolbox"
	"github.com/tidemark-ai/tidemark/wasi"
	"github.com/tidemark-ai/tidemark/worker"
)

var _ worker.Actors = (*Node)(nil)

// MainAgent is the agent whose database says who owns the store: it is always there.
const MainAgent = "main"

// Node is the native host of agents and sessions: one database for each agent, the sessions that
// are in use in memory, an alarm for each actor.
type Node struct {
	Home     string
	Cfg      *config.Config
	blobs    tidemark.Blobs
	Provider tidemark.Provider
	metrics  *worker.Metrics
	stemmer  *recall.Stemmer
	RT       *native.Runtime
	log      *slog.Logger
	alarms   *native.Alarms
	sockets  *native.Sockets
	stopping chan struct{} // closed when streams are to say goodbye
	life     context.Context
	end      context.CancelFunc
	quiet    sync.Once                  // closes alarms
	awake    atomic.Bool                // it serves, so schedules run by themselves
	fault    fault                      // for tests
	channels map[string]channel.Channel // by name
	courier  tidemark.Courier           // nil without any channel
	tools    *toolbox.Box
	servers  []io.Closer // of tools, which may be processes
	modules  *wasi.Tools // in the tools folder of the home

	mu      sync.Mutex // guards the following; never held while one opens
	agents  map[string]*owner
	live    map[tidemark.Key]*seat
	porches map[string]*porch
	closed  bool
}

// fault stands between actors and what they write, for tests.
type fault interface {
	DB(db tidemark.DB) tidemark.DB
	Blobs(b tidemark.Blobs) tidemark.Blobs
}

// none is no fault.
type none struct{}

func (none) DB(db tidemark.DB) tidemark.DB         { return db }
func (none) Blobs(b tidemark.Blobs) tidemark.Blobs { return b }

// owner is an agent with its database. Its fields are written once, under node.mu.
type owner struct {
	once  sync.Once
	DB    *native.DB
	agent *agent.Agent
	err   error
}

// seat is a session in memory. Its fields are written under node.mu.
type seat struct {
	once sync.Once
	s    *session.Session
	end  context.CancelFunc // ends the life of the object, when it is forgotten
	err  error
	used time.Time

	opening sync.Mutex          // held while guest opens
	guest   *proxy.Conversation // of a client that keeps the history itself, nil while none came
}

// quiet reports that nothing is in work. It is called with the lock of the node held, once s is there.
func (st *seat) idle() bool { return st.s.Idle() && (st.guest == nil || st.guest.Idle()) }

// NewNode opens a store. It wakes nothing: see start.
//
// # Errors
//
// A *native.LockedError when another process has the store.
func NewNode(home string, cfg *config.Config, log *slog.Logger) (*Node, error) {
	cfg.Resolve()
	n := &Node{Home: home, Cfg: cfg, log: log, RT: native.NewRuntime(log), agents: map[string]*owner{}, live: map[tidemark.Key]*seat{}, porches: map[string]*porch{}}
	n.life, n.end = context.WithCancel(context.Background())
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("make home folder: %w", err)
	}
	var err error
	if n.fault, err = newFault(log); err != nil {
		return nil, err
	}
	if n.blobs, err = cli.OpenBucket(home, cfg); err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	n.blobs = n.fault.Blobs(n.blobs)
	n.Provider = setup.Provider(cfg, n.RT, native.Transport())
	n.channels = setup.Channels(cfg, n.RT, native.Transport())
	n.metrics, n.stemmer = worker.NewMetrics(n.RT.Now), &recall.Stemmer{}
	n.courier = setup.Courier(n.channels, n.metrics.Sent)
	if err := n.openTools(); err != nil {
		return nil, err
	}
	n.stopping = make(chan struct{})
	n.alarms, n.sockets = native.NewAlarms(n.RT, n.fire), native.NewSockets(n.RT)
	if _, err := n.Agent(n.life, MainAgent); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Agent implements worker.Actors. An agent is there when it is the main one, is configured or has a
// database.
func (n *Node) Agent(_ context.Context, name string) (*agent.Agent, error) {
	o, err := n.Owner(name, false)
	if err != nil {
		return nil, err
	}
	return o.agent, nil
}

// Agents names the agents that are there: the main one, those that are configured, and those that
// have a database.
func (n *Node) Agents(context.Context) ([]string, error) {
	found, err := filepath.Glob(cli.Database(n.Home, "*"))
	if err != nil {
		return nil, err
	}
	names := []string{MainAgent}
	for _, path := range found {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	for _, a := range n.Cfg.Agents {
		names = append(names, a.ID)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Owner returns an agent; with create, one that is not there yet is made.
func (n *Node) Owner(name string, create bool) (*owner, error) {
	n.mu.Lock()
	o := n.agents[name]
	if o == nil && !create && !n.known(name) {
		n.mu.Unlock()
		return nil, fmt.Errorf("there is no such agent: %w", tidemark.ErrNotFound)
	}
	if n.closed {
		n.mu.Unlock()
		return nil, fmt.Errorf("the server is stopping: %w", tidemark.ErrUnavailable)
	}
	if o == nil {
		o = &owner{}
		n.agents[name] = o
	}
	n.mu.Unlock()
	o.once.Do(func() {
		db, a, err := n.openOwner(name)
		n.mu.Lock()
		defer n.mu.Unlock()
		if o.DB, o.agent, o.err = db, a, err; err != nil {
			delete(n.agents, name)
		}
	})
	return o, o.err
}

// known reports whether an agent is there without having been opened.
func (n *Node) known(name string) bool {
	if name == MainAgent || slices.ContainsFunc(n.Cfg.Agents, func(a config.Agent) bool { return a.ID == name }) {
		return true
	}
	_, err := os.Stat(cli.Database(n.Home, name))
	return err == nil
}

func (n *Node) openOwner(name string) (*native.DB, *agent.Agent, error) {
	c, err := setup.Agent(n.Cfg, name)
	if err != nil {
		return nil, nil, err
	}
	db, err := native.OpenDB(cli.Database(n.Home, name))
	if err != nil {
		if errors.Is(err, tidemark.ErrUnavailable) {
			n.metrics.Refused(err)
		}
		return nil, nil, err
	}
	c.DB, c.Blobs, c.Runtime, c.Logger, c.FlushEvery = n.store(db), n.blobs, n.RT, n.log, n.flushEvery()
	c.Model = n.Provider
	c.Schedule = func(at time.Time) { n.alarms.Set("agent/"+name, at) }
	c.Resting = func() bool { return !n.awake.Load() }
	c.Sessions, c.Address = setup.Here(n.Session), setup.Addressee(name, n.channels, n.People)
	a, err := agent.New(c)
	if err == nil {
		_, err = session.Migrate(n.life, db)
	}
	if err != nil {
		return nil, nil, errors.Join(unopened(cli.Database(n.Home, name), err), db.Close())
	}
	n.alarms.Set("agent/"+name, n.RT.Now())
	return db, a, nil
}

// store is a database as its actors have it.
func (n *Node) store(db *native.DB) tidemark.DB { return n.fault.DB(n.metrics.DB(db, host.TryWrite)) }

// unopened says which database it is, and what to do about one that is ahead of this program.
func unopened(path string, err error) error {
	err = fmt.Errorf("open %s: %w", path, err)
	if newer := (*host.NewerError)(nil); errors.As(err, &newer) {
		return cli.Advise(err, "install the newer tidemark, or give --home another folder; nothing was changed")
	}
	return err
}

// flushEvery is how often an agent may write one object: a folder takes it as it comes, a bucket
// behind S3 gets the agent's default.
func (n *Node) flushEvery() time.Duration {
	const folder = 100 * time.Millisecond
	if _, ok := n.blobs.(*native.Dir); ok {
		return folder
	}
	return 0
}

// Session implements worker.Actors.
func (n *Node) Session(ctx context.Context, key tidemark.Key, create bool) (*session.Session, error) {
	if s, err := n.seated(key, nil); s != nil || err != nil {
		return s, err
	}
	o, err := n.Owner(key.Agent(), create)
	if err != nil {
		return nil, err
	}
	if !create {
		there, err := session.Exists(ctx, o.DB, key)
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, fmt.Errorf("there is no such session: %w", tidemark.ErrNotFound)
		}
	}
	return n.seated(key, o)
}

// seated returns a session that is in memory, or opens it when the agent is given.
func (n *Node) seated(key tidemark.Key, o *owner) (*session.Session, error) {
	n.mu.Lock()
	st := n.live[key]
	if st == nil && o == nil {
		n.mu.Unlock()
		return nil, nil
	}
	if n.closed {
		n.mu.Unlock()
		return nil, fmt.Errorf("the server is stopping: %w", tidemark.ErrUnavailable)
	}
	if st == nil {
		if err := n.makeRoom(); err != nil {
			n.mu.Unlock()
			return nil, err
		}
		st = &seat{}
		n.live[key] = st
	}
	st.used = n.RT.Now()
	n.mu.Unlock()
	st.once.Do(func() {
		life, end := context.WithCancel(n.life)
		s, err := n.openSession(life, key, o)
		n.mu.Lock()
		defer n.mu.Unlock()
		if st.s, st.end, st.err = s, end, err; err != nil {
			delete(n.live, key)
			end()
		}
	})
	return st.s, st.err
}

func (n *Node) openSession(life context.Context, key tidemark.Key, o *owner) (*session.Session, error) {
	if o == nil { // another request made the seat and has not opened it yet
		var err error
		if o, err = n.Owner(key.Agent(), false); err != nil {
			return nil, err
		}
	}
	settings, err := setup.Session(n.Cfg, key)
	if err != nil {
		return nil, err
	}
	probe := n.metrics.Probe()
	return session.Open(life, session.Config{
		Key: key, DB: n.store(o.DB), Blobs: n.blobs, Provider: probe.Provider(n.Provider), Observe: probe.Observe, Agent: o.agent, Tools: n.tools, Runtime: n.RT, Logger: n.log, Settings: settings, Strategies: setup.Strategies(n.Cfg), Rooms: setup.Rooms(n.Cfg, n.RT, native.Transport(), n.courier, setup.Here(n.Session)), Stemmer: n.stemmer, Windows: setup.Windows(n.Cfg, native.Transport()),
		Alarm: func(_ context.Context, at time.Time) error {
			n.alarms.Set("session/"+string(key), at)
			return nil
		},
	})
}

// makeRoom forgets the quiet sessions that were used least lately when there are too many. It is
// called with the lock held.
func (n *Node) makeRoom() error {
	if len(n.live) < n.Cfg.Server.MaxSessions {
		return nil
	}
	n.forget(time.Time{}, 1+n.Cfg.Server.MaxSessions/10)
	if len(n.live) >= n.Cfg.Server.MaxSessions {
		return fmt.Errorf("%d sessions are in work; raise server.maxSessions: %w", len(n.live), tidemark.ErrBusy)
	}
	return nil
}

// forget drops up to limit quiet sessions, longest unused first, that were used before a time (zero:
// any). All of them that matters is in the database. It is called with the lock held.
func (n *Node) forget(before time.Time, limit int) {
	var keys []tidemark.Key
	for key, st := range n.live {
		if (before.IsZero() || st.used.Before(before)) && st.s != nil && st.idle() {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b tidemark.Key) int { return n.live[a].used.Compare(n.live[b].used) })
	for _, key := range keys[:min(limit, len(keys))] {
		n.live[key].end() // what it still reports is in its outbox, for the next life
		delete(n.live, key)
	}
}

// fire carries out what is due for an actor.
func (n *Node) fire(ctx context.Context, what string) {
	kind, name, _ := strings.Cut(what, "/")
	again, err := time.Time{}, error(nil)
	switch kind {
	case "agent":
		var a *agent.Agent
		if a, err = n.Agent(ctx, name); err == nil {
			defer func() { // what came up between the end of the wake and the alarm
				if at := a.Soonest(again); !at.Equal(again) {
					n.alarms.Set(what, at)
				}
			}()
			again, err = a.Wake(ctx)
		}
	case "ingress":
		err = n.wakeIngress(ctx, name)
	case "session":
		var s *session.Session
		if s, err = n.Session(ctx, tidemark.Key(name), false); err == nil {
			err = s.Wake(ctx)
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, tidemark.ErrNotFound) {
		n.log.Warn("wake", "actor", what, "err", err)
		again = n.RT.Now().Add(wakeAgain)
	}
	if !again.IsZero() {
		n.alarms.Set(what, again)
	}
}

// wakeAgain is when a wake that failed is tried again.
const wakeAgain = time.Minute

// start wakes what an earlier process left, in all agents, and then looks after idle sessions until
// the node ends.
func (n *Node) start(ctx context.Context) error {
	found, err := filepath.Glob(cli.Database(n.Home, "*"))
	if err != nil {
		return err
	}
	waiting := 0
	n.awake.Store(true)
	for _, path := range found {
		name := filepath.Base(filepath.Dir(path))
		o, err := n.Owner(name, false)
		if err != nil {
			return err
		}
		n.alarms.Set("agent/"+name, n.RT.Now()) // for its schedules
		due, err := session.Due(ctx, o.DB, n.RT.Now())
		if err != nil {
			return fmt.Errorf("agent %s: %w", name, err)
		}
		for key, at := range due {
			if at.IsZero() {
				at = n.RT.Now()
			}
			n.alarms.Set("session/"+string(key), at)
			waiting++
		}
		at, err := channel.Left(ctx, o.DB, n.RT.Now()) // of all agents: a channel may have had another one then
		if err != nil {
			return fmt.Errorf("agent %s: %w", name, err)
		}
		if !at.IsZero() {
			n.alarms.Set("ingress/"+name, at)
		}
	}
	if waiting > 0 {
		n.log.Info("take up what an earlier process left", "sessions", waiting)
	}
	go n.sweep()
	return nil
}

// sweep forgets idle sessions until the node ends. It is not counted by the runtime: nobody waits
// for it.
func (n *Node) sweep() {
	idle := time.Duration(n.Cfg.Server.IdleMinutes) * time.Minute
	for n.RT.Sleep(n.life, time.Minute) == nil {
		n.mu.Lock()
		n.forget(n.RT.Now().Add(-idle), len(n.live))
		n.mu.Unlock()
	}
}
