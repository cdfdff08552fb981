package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/wasi"
)

// served is what a server says of the tools of an agent, which are not all modules of this machine.
type served struct {
	Sources []servedSource `json:"sources"`
	Tools   []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tools"`
}

type servedSource struct {
	Name  string `json:"name"` // empty: modules
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	Tools int    `json:"tools"`

	LeftOut []string `json:"leftOut,omitempty"` // tools that are not used, and why
}

func (m *Main) toolLs() *cobra.Command {
	var agent string
	c := &cobra.Command{Use: "ls", Short: "List tools: modules, and what a running server has from others", Args: cobra.NoArgs,
		Long: `List the modules of this home, and say of broken ones what is wrong. When a server runs,
what it offers an agent from other sources (MCP servers) is listed too.`,
		Example: `  tidemark tool ls
  tidemark tool ls --agent garden --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.listTools(cmd.Context(), agent) }}
	c.Flags().StringVar(&agent, "agent", mainAgent, "whose tools of a running server")
	return m.jsonFlag(c)
}

func (m *Main) listTools(ctx context.Context, agent string) error {
	base, err := m.named()
	if err != nil {
		return err
	}
	list := []wasi.Installed{}
	if base == "" {
		err = m.withTools(ctx, func(ts *wasi.Tools) error {
			found, err := ts.List()
			list = append(list, found...)
			return err
		})
		if err != nil {
			return err
		}
	}
	of, err := m.servedTools(ctx, base, agent)
	if err != nil {
		return err
	}
	if m.json {
		return m.printJSON(map[string]any{"modules": list, "sources": of.Sources, "tools": of.Tools})
	}
	m.printTools(list, of, base)
	return nil
}

// servedTools asks the server that is named, else the one that has this home. One that has no such route, or is
// not there though its file is, offers nothing.
func (m *Main) servedTools(ctx context.Context, base, agent string) (served, error) {
	var out served
	named := base != ""
	if !named {
		home, err := m.homeDir()
		if err != nil {
			return out, err
		}
		base = readServerFile(home).URL
	}
	if base == "" {
		return out, nil
	}
	const patience = 20 * time.Second // the server may have to reach its own sources
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := m.remote(base).get(ctx, agentPath(agent, "/tools"), &out)
	var api *apiError
	if err != nil && (!named || errors.As(err, &api) && api.Status == http.StatusNotFound) {
		return served{}, nil
	}
	return out, err
}

func (m *Main) printTools(list []wasi.Installed, of served, base string) {
	const wide = 60
	modules := map[string]bool{}
	if len(list) > 0 {
		rows := [][]string{{"NAME", "SIZE", "ADDED", "READS", "DESCRIPTION"}}
		for _, t := range list {
			modules[t.Name] = true
			text := oneLine(t.Description, wide)
			if t.Broken != "" {
				text = "broken: " + oneLine(t.Broken, 3*wide)
			}
			added := "-"
			if !t.At.IsZero() {
				added = t.At.Local().Format("2006-01-02 15:04")
			}
			rows = append(rows, []string{t.Name, size(t.Bytes), added, cmp.Or(t.Mount, "-"), text})
		}
		table(m.out, rows)
	}
	rows := [][]string{{"SERVER", "TOOLS", "STATE"}}
	for _, s := range of.Sources {
		state := s.State
		if s.Error != "" {
			state += ": " + oneLine(s.Error, 3*wide)
		}
		if s.Name != "" || s.Error != "" {
			rows = append(rows, []string{cmp.Or(oneLine(s.Name, wide), "(modules)"), fmt.Sprint(s.Tools), state})
		}
	}
	if len(rows) > 1 {
		table(m.out, rows)
	}
	rows = [][]string{{"LEFT OUT", "WHY"}}
	for _, s := range of.Sources {
		for _, left := range s.LeftOut {
			name, why, _ := strings.Cut(left, ": ")
			rows = append(rows, []string{oneLine(cmp.Or(s.Name, "(modules)")+" "+name, wide), oneLine(why, 3*wide)})
		}
	}
	if len(rows) > 1 {
		table(m.out, rows)
	}
	rows = [][]string{{"TOOL OF A SERVER", "DESCRIPTION"}}
	for _, t := range of.Tools {
		if !modules[t.Name] {
			rows = append(rows, []string{oneLine(t.Name, wide), oneLine(t.Description, wide)})
		}
	}
	if len(rows) > 1 {
		table(m.out, rows)
	}
	none := len(of.Tools) == 0 && !slices.ContainsFunc(of.Sources, func(s servedSource) bool { return s.Name != "" })
	if len(list) == 0 && none && base == "" {
		m.out.line("no tools yet; `tidemark tool add FILE.wasm` installs one, docs/modules.md says how to write it")
	} else if none && base != "" {
		m.out.printf("%s offers no tools of others; its modules are listed on its own machine\n", base)
	}
}
