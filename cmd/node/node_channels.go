package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/mcp/stdio"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/skill"
	"github.com/tidemark-ai/tidemark/toolbox"
	"github.com/tidemark-ai/tidemark/wasi"
	"github.com/tidemark-ai/tidemark/worker"
)

// sideBySide is how many people's messages are worked off at once: a machine has no bound of its own on
// connections.
const sideBySide = 32

// porch is where an agent's webhooks arrive, and who may come in from there.
type porch struct {
	once sync.Once
	book *channel.Book
	in   *channel.Ingress
	err  error
}

// porch opens that of an agent.
func (n *Node) porch(name string) (*porch, error) {
	o, err := n.Owner(name, true)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	p := n.porches[name]
	if p == nil {
		p = &porch{}
		n.porches[name] = p
	}
	n.mu.Unlock()
	p.once.Do(func() { p.book, p.in, p.err = n.openPorch(name, o) })
	if p.err != nil { // the next one tries again
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.porches[name] == p {
			delete(n.porches, name)
		}
	}
	return p, p.err
}

func (n *Node) openPorch(name string, o *owner) (*channel.Book, *channel.Ingress, error) {
	db := n.store(o.DB)
	book, err := channel.OpenBook(n.life, db, n.RT, setup.Here(n.Session))
	if err != nil {
		return nil, nil, err
	}
	mine := map[string]channel.Channel{}
	for platform, c := range n.channels {
		if c.Rules.Agent == name {
			mine[platform] = c
		}
	}
	in, err := channel.OpenIngress(n.life, channel.Config{DB: db, Blobs: n.blobs, Runtime: n.RT, Logger: n.log, Channels: mine, Width: sideBySide, Count: n.metrics.Arrived,
		Desk: func(string) channel.Desk { return book }, Sessions: setup.Here(n.Session),
		Schedule: func(at time.Time) { n.alarms.Set("ingress/"+name, at) }})
	return book, in, err
}

// People implements worker.People.
func (n *Node) People(_ context.Context, name string) (*channel.Book, error) {
	p, err := n.porch(name)
	if err != nil {
		return nil, err
	}
	return p.book, nil
}

// givenUp implements worker.GivenUp.
func (n *Node) givenUp(ctx context.Context, name string) ([]channel.Stuck, error) {
	o, err := n.Owner(name, false)
	if err != nil {
		return nil, err
	}
	return channel.GivenUp(ctx, o.DB)
}

// ingress is worker.Webhooks: where those of a platform go.
func (n *Node) ingress(_ context.Context, platform string) (worker.Ingress, error) {
	c, ok := n.channels[platform]
	if !ok {
		return nil, fmt.Errorf("channel %.40q is not set up: %w", platform, tidemark.ErrNotFound)
	}
	p, err := n.porch(c.Rules.Agent)
	if err != nil {
		return nil, err
	}
	return p.in, nil
}

// wakeIngress works off what is due of an agent's webhooks; it asks for its next wake by itself.
func (n *Node) wakeIngress(ctx context.Context, name string) error {
	p, err := n.porch(name)
	if err != nil {
		return err
	}
	_, err = p.in.Wake(ctx)
	return err
}

// Working reports whether a turn is in work.
func (n *Node) Working() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, st := range n.live {
		if st.s != nil && (st.s.Working() || st.guest != nil && !st.guest.Idle()) {
			return true
		}
	}
	return false
}

// Drain starts nothing more by itself and waits until no turn is in work.
func (n *Node) Drain(ctx context.Context) {
	n.awake.Store(false)
	n.quiet.Do(n.alarms.Close)
	const look = 20 * time.Millisecond
	for n.Working() && n.RT.Sleep(ctx, look) == nil {
	}
}

// Bounds of closing.
const (
	reportTime = 2 * time.Second // for sessions to tell their agent
	stopTime   = 5 * time.Second // for what was stopped to end
	settleTime = 5 * time.Second // for agents to write what is pending
)

// Close ends what is in work and closes the store. What is unfinished goes on when it is opened
// again; a caller that wants turns to finish drains first.
func (n *Node) Close() error {
	n.awake.Store(false) // agents settle below, and no session is opened any more
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.quiet.Do(n.alarms.Close)
	n.wait(reportTime)
	n.end()
	n.wait(stopTime)
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	errs := n.closeTools()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.agents {
		if o.agent != nil {
			n.settle(ctx, o.agent)
			errs = append(errs, o.DB.Close())
		}
	}
	if c, ok := n.blobs.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (n *Node) wait(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := n.RT.Wait(ctx); err != nil {
		n.log.Debug("stop", "err", err)
	}
}

// settle lets an agent write what is pending; a file is written at most every two seconds.
func (n *Node) settle(ctx context.Context, a *agent.Agent) {
	const tries = 3
	for range tries {
		next, err := a.Wake(ctx)
		if err != nil || time.Until(next) > settleTime || n.RT.Sleep(ctx, time.Until(next)) != nil {
			return
		}
	}
}

// proxied is worker.Config.Proxies: the conversation of a client that keeps its history itself. It lives in the seat of
// its session, and is forgotten with it.
func (n *Node) proxied(ctx context.Context, key tidemark.Key) (*proxy.Conversation, error) {
	s, err := n.Session(ctx, key, true)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	st := n.live[key]
	n.mu.Unlock()
	if st == nil || st.s != s {
		return nil, fmt.Errorf("conversation %s was forgotten in this moment: %w", key, tidemark.ErrBusy)
	}
	o, err := n.Owner(key.Agent(), false)
	if err != nil {
		return nil, err
	}
	st.opening.Lock()
	defer st.opening.Unlock()
	if st.guest != nil {
		return st.guest, nil
	}
	home, err := setup.Home(ctx, s)
	if err != nil {
		return nil, err
	}
	guest, err := proxy.Open(ctx, proxy.Config{Key: key, DB: n.store(o.DB), Home: n.metrics.Home(home), Runtime: n.RT, Logger: n.log, Settings: setup.Proxy(n.Cfg)})
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	st.guest = guest
	return guest, nil
}

// openTools wires the tools of others, which all sessions share. No server is asked and no process started before
// somebody needs one.
func (n *Node) openTools() (err error) {
	if n.modules, err = wasi.Open(wasi.Config{Home: n.Home, Reserved: BuiltInTools, Logger: n.log}); err != nil {
		return fmt.Errorf("open tools of %s: %w", n.Home, err)
	}
	transport := native.Transport()
	n.tools = setup.Tools(n.Cfg, setup.ToolPorts{Reserved: BuiltInTools, Runtime: n.RT, Transport: transport, Logger: n.log, Version: VersionText(), Lookup: os.LookupEnv,
		Start: func(s setup.ToolProcess) toolbox.Source {
			c := &stdio.Client{Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env,
				MaxBytes: s.MaxBytes, Agent: VersionText(), Logger: n.log}
			n.servers = append(n.servers, c)
			return c
		}}, n.modules)
	return nil
}

// toolbox is worker.Config.Tools.
func (n *Node) toolbox(context.Context) (*toolbox.Box, error) { return n.tools, nil }

// closeTools ends connections and processes, side by side: each may take seconds.
func (n *Node) closeTools() []error {
	errs := make([]error, len(n.servers))
	var all sync.WaitGroup
	for i, s := range n.servers {
		all.Go(func() { errs[i] = s.Close() })
	}
	all.Wait()
	return []error{errors.Join(errs...), n.modules.Close()}
}

// BuiltInTools are the names that no module may take.
var BuiltInTools = []string{
	"recall", "task_state", episodes.ToolName, paging.ReleaseTool, paging.FaultTool,
	agent.ToolRead, agent.ToolAppend, agent.ToolSearch, agent.ToolEdit, agent.ToolSchedule, skill.Tool, "delegate",
}
