package node

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/worker"
)

var _ worker.Webhooks = (*Node)(nil)

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

// ingress returns where the webhooks of a platform go.
func (n *Node) ingress(platform string) (*channel.Ingress, error) {
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

// Handshake implements worker.Webhooks.
func (n *Node) Handshake(_ context.Context, platform string, query url.Values) (string, error) {
	in, err := n.ingress(platform)
	if err != nil {
		return "", err
	}
	return in.Handshake(platform, query)
}

// Expect implements worker.Webhooks.
func (n *Node) Expect(_ context.Context, platform string, h http.Header) error {
	in, err := n.ingress(platform)
	if err != nil {
		return err
	}
	return in.Expect(platform, h)
}

// Receive implements worker.Webhooks.
func (n *Node) Receive(ctx context.Context, platform string, h http.Header, body []byte) error {
	in, err := n.ingress(platform)
	if err != nil {
		return err
	}
	return in.Receive(ctx, platform, h, body)
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

// startIngress wakes what an earlier process received and did not work off, in all agents: a channel may have
// had another one then, and what waits in vain is to be seen.
func (n *Node) startIngress(ctx context.Context) error {
	found, err := filepath.Glob(cli.Database(n.Home, "*"))
	if err != nil {
		return err
	}
	for _, path := range found {
		name := filepath.Base(filepath.Dir(path))
		o, err := n.Owner(name, false)
		if err != nil {
			return err
		}
		at, err := channel.Left(ctx, o.DB, n.RT.Now())
		if err != nil {
			return fmt.Errorf("agent %s: %w", name, err)
		}
		if !at.IsZero() {
			n.alarms.Set("ingress/"+name, at)
		}
	}
	return nil
}
