package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/mcp/sdk"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/toolbox"
	"github.com/tidemark-ai/tidemark/wasi"
)

// openTools wires the tools of others, which all sessions share. No server is asked and no process started before
// somebody needs one.
func (n *node) openTools() (err error) {
	if n.modules, err = wasi.Open(wasi.Config{Home: n.home, Reserved: builtInTools, Logger: n.log}); err != nil {
		return fmt.Errorf("open tools of %s: %w", n.home, err)
	}
	transport := native.Transport()
	n.tools = setup.Tools(n.cfg, setup.ToolPorts{Reserved: builtInTools, Runtime: n.rt, Transport: transport, Logger: n.log, Version: versionText(), Lookup: os.LookupEnv,
		Dial: func(s setup.ToolServer) toolbox.Source {
			c := &sdk.Client{Name: s.Name, URL: s.URL, Token: s.Token, Transport: transport, Command: s.Command, Args: s.Args, Env: s.Env,
				MaxBytes: s.MaxBytes, Agent: versionText(), Logger: n.log}
			n.servers = append(n.servers, c)
			return c
		}}, n.modules)
	return nil
}

// toolbox is worker.Config.Tools.
func (n *node) toolbox(context.Context) (*toolbox.Box, error) { return n.tools, nil }

// closeTools ends connections and processes, side by side: each may take seconds.
func (n *node) closeTools() []error {
	errs := make([]error, len(n.servers))
	var all sync.WaitGroup
	for i, s := range n.servers {
		all.Go(func() { errs[i] = s.Close() })
	}
	all.Wait()
	return []error{errors.Join(errs...), n.modules.Close()}
}
