package setup

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/mcp"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// ToolPorts are what a host gives for tools of others.
type ToolPorts struct {
	Runtime   tidemark.Runtime
	Transport http.RoundTripper
	Logger    *slog.Logger // nil: no logging
	Version   string       // of this program
	// Lookup is a variable of the environment that may be handed on to a process; nil: there are none.
	Lookup func(name string) (value string, ok bool)
	// Start makes the client of a server that is a process; nil: none can be started here.
	Start func(ToolProcess) toolbox.Source
	// MaxBytes is of a result where nothing is configured; 0: toolbox.DefaultMaxBytes.
	MaxBytes int
	// Reserved are names of our own tools, which modules may not have.
	Reserved []string
}

// ToolProcess is a configured server that is a process, as its client needs it.
type ToolProcess struct {
	Name     string
	Command  string
	Args     []string
	Env      []string // NAME=value
	MaxBytes int
}

// Tools wires the tools of servers, and of further sources, which are modules: their names stand alone, and what they
// say of themselves is trusted. It asks nobody for anything.
func Tools(c *config.Config, p ToolPorts, modules ...toolbox.Source) *toolbox.Box {
	named, err := json.Marshal([]any{c.Tools, c.Agents, p.Version})
	if err != nil { // values of ours always encode
		named = []byte(p.Version)
	}
	box := toolbox.Config{Name: string(named), Runtime: p.Runtime, Logger: p.Logger, SchemaTokens: c.Tools.SchemaTokens, Peers: c.Tools.Peers, Reserved: p.Reserved, Agents: map[string][]string{}}
	if box.SchemaTokens == 0 {
		box.SchemaTokens = -1 // there the zero value is the default
	}
	for _, a := range c.Agents {
		if a.Tools != nil {
			box.Agents[a.ID] = a.Tools
		}
	}
	timeout := milliseconds(c.Timeouts.ToolMs)
	for _, name := range c.ToolServers() {
		s := c.Tools.MCP[name]
		out := toolbox.Server{Name: name, Allow: s.Allow, Idempotent: s.Idempotent, TrustHints: s.TrustHints, Timeout: timeout, Parallel: s.Parallel, MaxBytes: s.MaxBytes}
		if s.TimeoutMs > 0 {
			out.Timeout = milliseconds(s.TimeoutMs)
		}
		if out.MaxBytes == 0 {
			out.MaxBytes = p.MaxBytes
		}
		if gap := toolGap(c, name, p.Start != nil); gap != nil {
			out.Gap = strings.TrimSuffix(gap.Setting+" "+gap.Message+"; "+gap.Fix, "; ")
		} else {
			out.Source = dial(c, name, out.MaxBytes, p)
			out.Hide = hidden(c, name)
		}
		box.Servers = append(box.Servers, out)
	}
	for _, m := range modules {
		box.Servers = append(box.Servers, toolbox.Server{Source: m, TrustHints: true, Timeout: timeout, MaxBytes: p.MaxBytes})
	}
	return toolbox.New(box)
}

func dial(c *config.Config, name string, most int, p ToolPorts) toolbox.Source {
	s := c.Tools.MCP[name]
	if s.Command == "" {
		return &mcp.Client{Name: name, URL: s.URL, Token: c.Secrets.Tools[s.Secret].Reveal(), Transport: p.Transport, Runtime: p.Runtime,
			MaxBytes: cmp.Or(most, toolbox.DefaultMaxBytes), Agent: p.Version}
	}
	server := ToolProcess{Name: name, Command: s.Command, Args: s.Args, MaxBytes: most}
	for _, e := range s.Env {
		to, from, mapped := strings.Cut(e, "=")
		switch {
		case mapped:
			server.Env = append(server.Env, to+"="+c.Secrets.Tools[from].Reveal())
		case p.Lookup != nil:
			if v, ok := p.Lookup(to); ok {
				server.Env = append(server.Env, to+"="+v)
			}
		}
	}
	return p.Start(server)
}

// toolGap is why a server cannot be used as it is configured, nil where it can.
func toolGap(c *config.Config, name string, processes bool) *Gap {
	s, prefix := c.Tools.MCP[name], "tools.mcp."+name+"."
	if s.Command != "" && !processes {
		return &Gap{Setting: prefix + "command", Message: "is a program, and none can be started here", Fix: "run the server elsewhere behind HTTP, and set " + prefix + "url"}
	}
	if s.Secret != "" && c.Secrets.Tools[s.Secret] == "" {
		return &Gap{Setting: s.Secret, Message: "is not set, and " + prefix + "secret names it: the server is not used"}
	}
	for _, e := range s.Env {
		if _, from, mapped := strings.Cut(e, "="); mapped && c.Secrets.Tools[from] == "" {
			return &Gap{Setting: from, Message: "is not set, and " + prefix + "env names it: the server is not used"}
		}
	}
	return nil
}

// ToolGaps lists the servers that cannot be used as they are configured. processes says whether programs can be
// started here.
func ToolGaps(c *config.Config, processes bool) []Gap {
	var out []Gap
	for _, name := range c.ToolServers() {
		if gap := toolGap(c, name, processes); gap != nil {
			out = append(out, *gap)
		}
	}
	return out
}

// hidden are the secrets that a server is given.
func hidden(c *config.Config, name string) []string {
	s := c.Tools.MCP[name]
	out := []string{c.Secrets.Tools[s.Secret].Reveal()}
	for _, e := range s.Env {
		if _, from, mapped := strings.Cut(e, "="); mapped {
			out = append(out, c.Secrets.Tools[from].Reveal())
		}
	}
	return out
}
