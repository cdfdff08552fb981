package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/mcp/sdk"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/skill"
	"github.com/tidemark-ai/tidemark/toolbox"
	"github.com/tidemark-ai/tidemark/wasi"
)

// openTools wires the tools of others, which all sessions share. No server is asked and no process started before
// somebody needs one.
func (n *Node) openTools() (err error) {
	if n.modules, err = wasi.Open(wasi.Config{Home: n.Home, Reserved: BuiltInTools, Logger: n.log}); err != nil {
		return fmt.Errorf("open tools of %s: %w", n.Home, err)
	}
	transport := native.Transport()
	n.tools = setup.Tools(n.Cfg, setup.ToolPorts{Reserved: BuiltInTools, Runtime: n.RT, Transport: transport, Logger: n.log, Version: VersionText(), Lookup: os.LookupEnv,
		Dial: func(s setup.ToolServer) toolbox.Source {
			c := &sdk.Client{Name: s.Name, URL: s.URL, Token: s.Token, Transport: transport, Command: s.Command, Args: s.Args, Env: s.Env,
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
