package main

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
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/reset"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/worker"
)

var _ worker.Actors = (*node)(nil)

// mainAgent is the agent whose database says who owns the store: it is always there.
const mainAgent = "main"

// node is the native host of agents and sessions: one database for each agent, the sessions that
// are in use in memory, an alarm for each actor.
type node struct {
	home     string
	cfg      *config.Config
	blobs    tidemark.Blobs
	provider tidemark.Provider
	metrics  *worker.Metrics
	rt       *native.Runtime
	log      *slog.Logger
	alarms   *native.Alarms
	life     context.Context
	end      context.CancelFunc
	quiet    sync.Once // closes alarms
	crash    *crash    // for tests, else nil

	mu     sync.Mutex // guards the following; never held while one opens
	agents map[string]*owner
	live   map[tidemark.Key]*seat
	closed bool
}

// owner is an agent with its database. Its fields are written once, under node.mu.
type owner struct {
	once  sync.Once
	db    *native.DB
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
}

// newNode opens a store. It wakes nothing: see start.
//
// # Errors
//
// A *native.LockedError when another process has the store.
func newNode(home string, cfg *config.Config, log *slog.Logger) (*node, error) {
	cfg.Resolve()
	n := &node{home: home, cfg: cfg, log: log, rt: native.NewRuntime(log), agents: map[string]*owner{}, live: map[tidemark.Key]*seat{}}
	n.life, n.end = context.WithCancel(context.Background())
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("make home folder: %w", err)
	}
	var err error
	if n.crash, err = crashAsked(log); err != nil {
		return nil, err
	}
	if n.blobs, err = openBucket(home, cfg); err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	n.blobs = n.crash.blobs(n.blobs)
	n.provider = newProvider(cfg, n.rt)
	n.metrics = worker.NewMetrics(n.rt)
	n.alarms = native.NewAlarms(n.rt, n.fire)
	if _, err := n.Agent(n.life, mainAgent); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// newProvider wires the model. Retry only bounds a call in time: the session itself tries again.
func newProvider(cfg *config.Config, rt tidemark.Runtime) tidemark.Provider {
	var p tidemark.Provider
	switch m := cfg.Model; m.Provider {
	case config.Anthropic:
		p = &provider.Anthropic{Key: cfg.Secrets.Anthropic.Reveal(), BaseURL: m.BaseURL, Model: m.ID, Transport: native.Transport(), Runtime: rt, MaxTokens: m.MaxTokens}
	case config.OpenAI:
		p = &provider.OpenAI{Key: cfg.Secrets.OpenAI.Reveal(), BaseURL: m.BaseURL, Model: m.ID, Transport: native.Transport(), Runtime: rt, MaxTokens: m.MaxTokens}
	default:
		return provider.Offline{}
	}
	return &provider.Retry{Provider: p, Runtime: rt, Tries: 1, Total: time.Duration(cfg.Timeouts.LLMMs) * time.Millisecond}
}

// Agent implements worker.Actors. An agent is there when it is the main one, is configured or has a
// database.
func (n *node) Agent(_ context.Context, name string) (*agent.Agent, error) {
	o, err := n.owner(name, false)
	if err != nil {
		return nil, err
	}
	return o.agent, nil
}

// Agents names the agents that are there: the main one, those that are configured, and those that
// have a database.
func (n *node) Agents(context.Context) ([]string, error) {
	found, err := filepath.Glob(database(n.home, "*"))
	if err != nil {
		return nil, err
	}
	names := []string{mainAgent}
	for _, path := range found {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	for _, a := range n.cfg.Agents {
		names = append(names, a.ID)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// owner returns an agent; with create, one that is not there yet is made.
func (n *node) owner(name string, create bool) (*owner, error) {
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
		if o.db, o.agent, o.err = db, a, err; err != nil {
			delete(n.agents, name)
		}
	})
	return o, o.err
}

// known reports whether an agent is there without having been opened.
func (n *node) known(name string) bool {
	if name == mainAgent || slices.ContainsFunc(n.cfg.Agents, func(a config.Agent) bool { return a.ID == name }) {
		return true
	}
	_, err := os.Stat(database(n.home, name))
	return err == nil
}

func (n *node) openOwner(name string) (*native.DB, *agent.Agent, error) {
	zone, err := n.cfg.Agent(name).Zone()
	if err != nil {
		return nil, nil, err
	}
	db, err := native.OpenDB(database(n.home, name))
	if err != nil {
		return nil, nil, err
	}
	a, err := agent.New(agent.Config{
		Name: name, DB: n.crash.db(db), Blobs: n.blobs, Runtime: n.rt, Zone: zone, Sharing: memory.Sharing(n.cfg.Memory.Sharing),
		Budget: min(n.cfg.Memory.PromptTokens, n.cfg.Model.ContextWindow/memoryShare), Logger: n.log, FlushEvery: n.flushEvery(),
		Schedule: func(at time.Time) { n.alarms.Set("agent/"+name, at) },
	})
	if err == nil {
		_, err = session.Migrate(n.life, db)
	}
	if err != nil {
		return nil, nil, errors.Join(unopened(database(n.home, name), err), db.Close())
	}
	n.alarms.Set("agent/"+name, n.rt.Now())
	return db, a, nil
}

// memoryShare bounds what memory takes of a prompt when the window is too small for
// memory.promptTokens: a quarter.
const memoryShare = 4

// unopened says which database it is, and what to do about one that is ahead of this program.
func unopened(path string, err error) error {
	err = fmt.Errorf("open %s: %w", path, err)
	if newer := (*host.NewerError)(nil); errors.As(err, &newer) {
		return &fixed{err, "install the newer tidemark, or give --home another folder; nothing was changed"}
	}
	return err
}

// flushEvery is how often an agent may write one object: a folder takes it as it comes, a bucket
// behind S3 gets the agent's default.
func (n *node) flushEvery() time.Duration {
	const folder = 100 * time.Millisecond
	if _, ok := n.blobs.(*native.Dir); ok {
		return folder
	}
	return 0
}

// Session implements worker.Actors.
func (n *node) Session(ctx context.Context, key tidemark.Key, create bool) (*session.Session, error) {
	if s, err := n.seated(key, nil); s != nil || err != nil {
		return s, err
	}
	o, err := n.owner(key.Agent(), create)
	if err != nil {
		return nil, err
	}
	if !create {
		there, err := session.Exists(ctx, o.db, key)
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
func (n *node) seated(key tidemark.Key, o *owner) (*session.Session, error) {
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
	st.used = n.rt.Now()
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

func (n *node) openSession(life context.Context, key tidemark.Key, o *owner) (*session.Session, error) {
	if o == nil { // another request made the seat and has not opened it yet
		var err error
		if o, err = n.owner(key.Agent(), false); err != nil {
			return nil, err
		}
	}
	settings, err := n.settings(key)
	if err != nil {
		return nil, err
	}
	probe := n.metrics.Probe()
	return session.Open(life, session.Config{
		Key: key, DB: n.crash.db(o.db), Blobs: n.blobs, Provider: probe.Provider(n.provider), Observe: probe.Observe, Agent: o.agent, Runtime: n.rt, Logger: n.log, Settings: settings,
		Alarm: func(_ context.Context, at time.Time) error {
			n.alarms.Set("session/"+string(key), at)
			return nil
		},
	})
}

// settings returns what is configured for a session.
func (n *node) settings(key tidemark.Key) (session.Settings, error) {
	c, a := n.cfg, n.cfg.Agent(key.Agent())
	zone, err := a.Zone()
	if err != nil {
		return session.Settings{}, err
	}
	p := c.Reset(key)
	policy, err := reset.Parse(reset.Settings{Mode: p.Mode, AtHour: p.AtHour, IdleMinutes: p.IdleMinutes, Zone: p.Zone}, zone)
	if err != nil {
		return session.Settings{}, err
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return session.Settings{
		Model: c.Model.ID, Window: c.Model.ContextWindow, MaxTokens: c.Model.MaxTokens, System: a.SystemPrompt,
		Reserve: c.Compaction.ReserveTokens, Keep: c.Compaction.KeepRecent,
		NoCompaction: !c.Compaction.Enabled, NoMemories: !c.Compaction.ExtractMemories, SummaryModel: c.Compaction.Model,
		Reset: policy, Zone: zone, MaxRounds: c.Session.MaxRounds,
		ToolTimeout: ms(c.Timeouts.ToolMs), TurnTimeout: ms(c.Timeouts.TurnMs),
	}, nil
}

// makeRoom forgets the quiet sessions that were used least lately when there are too many. It is
// called with the lock held.
func (n *node) makeRoom() error {
	if len(n.live) < n.cfg.Server.MaxSessions {
		return nil
	}
	n.forget(time.Time{}, 1+n.cfg.Server.MaxSessions/10)
	if len(n.live) >= n.cfg.Server.MaxSessions {
		return fmt.Errorf("%d sessions are in work; raise server.maxSessions: %w", len(n.live), tidemark.ErrBusy)
	}
	return nil
}

// forget drops up to limit quiet sessions, longest unused first, that were used before a time (zero:
// any). All of them that matters is in the database. It is called with the lock held.
func (n *node) forget(before time.Time, limit int) {
	var keys []tidemark.Key
	for key, st := range n.live {
		if (before.IsZero() || st.used.Before(before)) && st.s != nil && st.s.Quiet() {
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
func (n *node) fire(ctx context.Context, what string) {
	kind, name, _ := strings.Cut(what, "/")
	again, err := time.Time{}, error(nil)
	switch kind {
	case "agent":
		var a *agent.Agent
		if a, err = n.Agent(ctx, name); err == nil {
			again, err = a.Wake(ctx)
		}
	case "session":
		var s *session.Session
		if s, err = n.Session(ctx, tidemark.Key(name), false); err == nil {
			err = s.Wake(ctx)
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, tidemark.ErrNotFound) {
		n.log.Warn("wake", "actor", what, "err", err)
		again = n.rt.Now().Add(wakeAgain)
	}
	if !again.IsZero() {
		n.alarms.Set(what, again)
	}
}

// wakeAgain is when a wake that failed is tried again.
const wakeAgain = time.Minute

// start wakes what an earlier process left, in all agents, and then looks after idle sessions until
// the node ends.
func (n *node) start(ctx context.Context) error {
	found, err := filepath.Glob(database(n.home, "*"))
	if err != nil {
		return err
	}
	waiting := 0
	for _, path := range found {
		o, err := n.owner(filepath.Base(filepath.Dir(path)), false)
		if err != nil {
			return err
		}
		due, err := session.Due(ctx, o.db)
		if err != nil {
			return fmt.Errorf("agent %s: %w", filepath.Base(filepath.Dir(path)), err)
		}
		for key, at := range due {
			if at.IsZero() {
				at = n.rt.Now()
			}
			n.alarms.Set("session/"+string(key), at)
			waiting++
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
func (n *node) sweep() {
	idle := time.Duration(n.cfg.Server.IdleMinutes) * time.Minute
	for n.rt.Sleep(n.life, time.Minute) == nil {
		n.mu.Lock()
		n.forget(n.rt.Now().Add(-idle), len(n.live))
		n.mu.Unlock()
	}
}

// working reports whether a turn is in work.
func (n *node) working() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, st := range n.live {
		if st.s != nil && st.s.Working() {
			return true
		}
	}
	return false
}

// drain starts nothing more by itself and waits until no turn is in work.
func (n *node) drain(ctx context.Context) {
	n.quiet.Do(n.alarms.Close)
	const look = 20 * time.Millisecond
	for n.working() && n.rt.Sleep(ctx, look) == nil {
	}
}

// Bounds of closing.
const (
	reportTime = 2 * time.Second // for sessions to tell their agent
	stopTime   = 5 * time.Second // for what was stopped to end
	settleTime = 5 * time.Second // for agents to write what is pending
)

// close ends what is in work and closes the store. What is unfinished goes on when it is opened
// again; a caller that wants turns to finish drains first.
func (n *node) close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.quiet.Do(n.alarms.Close)
	n.wait(reportTime)
	n.end()
	n.wait(stopTime)
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	var errs []error
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.agents {
		if o.agent != nil {
			n.settle(ctx, o.agent)
			errs = append(errs, o.db.Close())
		}
	}
	if c, ok := n.blobs.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (n *node) wait(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := n.rt.Wait(ctx); err != nil {
		n.log.Debug("stop", "err", err)
	}
}

// settle lets an agent write what is pending; a file is written at most every two seconds.
func (n *node) settle(ctx context.Context, a *agent.Agent) {
	const tries = 3
	for range tries {
		next, err := a.Wake(ctx)
		if err != nil || next.IsZero() || n.rt.Sleep(ctx, time.Until(next)) != nil {
			return
		}
	}
}
