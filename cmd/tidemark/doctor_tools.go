package main

import (
	"context"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/wasi"
)

// toolServers looks whether servers of tools can be used as they are configured, with the secrets of this shell. One that
// has the home and answered has its own.
func (d *doctor) toolServers() {
	if d.asked {
		return
	}
	for _, g := range setup.ToolGaps(d.cfg, true) {
		d.add("tools", bad, node.GapFix(g), "%s %s", g.Setting, g.Message)
	}
}

// servedTools tells how the servers of tools are that a server uses, and reports whether it said so. What cannot be used
// as it is configured stands among its problems.
func (d *doctor) servedTools(ctx context.Context, c *client) bool {
	var out served
	if c.Get(ctx, cli.AgentPath(node.MainAgent, "/tools"), &out) != nil {
		return false // it is too old, or lets nobody in, which is told above
	}
	good := 0
	for _, s := range out.Sources {
		for _, left := range s.LeftOut {
			d.add("tools", odd, "mend its definition where it comes from, or leave it out yourself: tools.mcp."+cli.Safe(s.Name)+".allow (docs/tools.md)", "server %s: left out is %s", cli.Safe(s.Name), cli.Safe(left))
		}
		switch {
		case s.Name == "":
		case s.State == "error":
			d.add("tools", odd, "bring it up, or set tools.mcp."+cli.Safe(s.Name)+".enabled to false (docs/tools.md)", "server %s: %s", cli.Safe(s.Name), cli.Safe(s.Error))
		case s.State == "reachable":
			good++
		}
	}
	if good > 0 {
		d.add("tools", fine, "", "%s reached", cli.Plural(good, "server"))
	}
	return true
}

// modules looks at the tools that are installed. None is the usual case, and nothing to say.
func (d *doctor) modules() {
	ts, err := wasi.Open(wasi.Config{Home: d.home, Reserved: node.BuiltInTools})
	if err != nil {
		d.add("tools", bad, "make the folder readable", "%s", err)
		return
	}
	defer ts.Close()
	list, err := ts.List()
	if err != nil {
		d.add("tools", bad, "make the folder readable, or correct what is named", "%s", err)
		return
	}
	broken := 0
	for _, t := range list {
		if t.Broken != "" {
			broken++
			d.add("tools", odd, "mend it, add it again with --force, or take it away with `tidemark tool rm "+cli.Safe(t.Name)+"`", "%s is left out: %s", cli.Safe(t.Name), cli.Safe(t.Broken))
		}
	}
	if n := len(list) - broken; n > 0 {
		d.add("tools", fine, "", "%s installed", cli.Plural(n, "module"))
	}
}
