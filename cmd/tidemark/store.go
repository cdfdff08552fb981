package main

import (
	"context"
	"errors"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/host/native"
)

// client is a caller with what it stands on.
type client struct {
	*cli.Caller
	local *node.Node   // nil when a server has the store
	end   func() error // gives up what the client stands on
}

// serverAt is a client of a server that runs.
func serverAt(m *cli.Main, base string) *client {
	return &client{Caller: m.Remote(base), end: func() error { return nil }}
}

// connect finds the store: a server that is named, the local store, or the server that has it.
func connect(ctx context.Context, m *cli.Main) (*client, error) {
	base, err := m.Named()
	if err != nil {
		return nil, err
	}
	if base != "" {
		return serverAt(m, base), nil
	}
	home, err := m.HomeDir()
	if err != nil {
		return nil, err
	}
	cfg, _, err := m.Load(ctx, home)
	if err != nil {
		return nil, err
	}
	n, err := node.OpenStore(ctx, home, cfg, m.Logger(cfg, true), false)
	var locked *native.LockedError
	if s := cli.ReadServerFile(home); errors.As(err, &locked) && s.PID == locked.PID && s.URL != "" {
		return serverAt(m, s.URL), nil
	}
	if err != nil {
		return nil, err
	}
	return inProcess(n), nil
}

// inProcess speaks to a node of this process.
func inProcess(n *node.Node) *client {
	return &client{&cli.Caller{Base: "http://localhost", RT: node.InThisProcess(n.Handler("")), Where: n.Home}, n, n.Close}
}

// ready refuses what needs the model when this process would call it without a key. A server has
// looked at its start.
func (c *client) ready() error {
	if c.local == nil {
		return nil
	}
	return cli.NeedKey(c.local.Cfg)
}

// with connects, carries f out and gives the store up again. A turn that the store had in work
// before, or that f left in work, may end first.
func with(ctx context.Context, m *cli.Main, f func(*client) error) error {
	c, err := connect(ctx, m)
	if err != nil {
		return err
	}
	err = f(c)
	if c.local != nil && err == nil && c.local.Working() {
		if m.Progress {
			m.Err.Line("(a turn is in work here; waiting for its end, Ctrl-C leaves it for the next command)")
		}
		c.local.Drain(ctx)
	}
	return errors.Join(err, c.end())
}
