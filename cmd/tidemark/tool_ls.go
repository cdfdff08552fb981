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

	"github.com/tidemark-ai/tidemark/cmd/cli"
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

func listTools(ctx context.Context, m *cli.Main, agent string) error {
	base, err := m.Named()
	if err != nil {
		return err
	}
	list := []wasi.Installed{}
	if base == "" {
		err = withTools(ctx, m, func(ts *wasi.Tools) error {
			found, err := ts.List()
			list = append(list, found...)
			return err
		})
		if err != nil {
			return err
		}
	}
	of, err := servedTools(ctx, m, base, agent)
	if err != nil {
		return err
	}
	if m.JSON {
		return m.PrintJSON(map[string]any{"modules": list, "sources": of.Sources, "tools": of.Tools})
	}
	printTools(m, list, of, base)
	return nil
}

// servedTools asks the server that is named, else the one that has this home. One that has no such route, or is
// not there though its file is, offers nothing.
func servedTools(ctx context.Context, m *cli.Main, base, agent string) (served, error) {
	var out served
	named := base != ""
	if !named {
		home, err := m.HomeDir()
		if err != nil {
			return out, err
		}
		base = cli.ReadServerFile(home).URL
	}
	if base == "" {
		return out, nil
	}
	const patience = 20 * time.Second // the server may have to reach its own sources
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := serverAt(m, base).Get(ctx, cli.AgentPath(agent, "/tools"), &out)
	var api *cli.APIError
	if err != nil && (!named || errors.As(err, &api) && api.Status == http.StatusNotFound) {
		return served{}, nil
	}
	return out, err
}

func printTools(m *cli.Main, list []wasi.Installed, of served, base string) {
	const wide = 60
	modules := map[string]bool{}
	if len(list) > 0 {
		rows := [][]string{{"NAME", "SIZE", "ADDED", "READS", "DESCRIPTION"}}
		for _, t := range list {
			modules[t.Name] = true
			text := cli.OneLine(t.Description, wide)
			if t.Broken != "" {
				text = "broken: " + cli.OneLine(t.Broken, 3*wide)
			}
			added := "-"
			if !t.At.IsZero() {
				added = t.At.Local().Format("2006-01-02 15:04")
			}
			rows = append(rows, []string{t.Name, cli.Size(t.Bytes), added, cmp.Or(t.Mount, "-"), text})
		}
		cli.PrintTable(m.Out, rows)
	}
	rows := [][]string{{"SERVER", "TOOLS", "STATE"}}
	for _, s := range of.Sources {
		state := s.State
		if s.Error != "" {
			state += ": " + cli.OneLine(s.Error, 3*wide)
		}
		if s.Name != "" || s.Error != "" {
			rows = append(rows, []string{cmp.Or(cli.OneLine(s.Name, wide), "(modules)"), fmt.Sprint(s.Tools), state})
		}
	}
	if len(rows) > 1 {
		cli.PrintTable(m.Out, rows)
	}
	rows = [][]string{{"LEFT OUT", "WHY"}}
	for _, s := range of.Sources {
		for _, left := range s.LeftOut {
			name, why, _ := strings.Cut(left, ": ")
			rows = append(rows, []string{cli.OneLine(cmp.Or(s.Name, "(modules)")+" "+name, wide), cli.OneLine(why, 3*wide)})
		}
	}
	if len(rows) > 1 {
		cli.PrintTable(m.Out, rows)
	}
	rows = [][]string{{"TOOL OF A SERVER", "DESCRIPTION"}}
	for _, t := range of.Tools {
		if !modules[t.Name] {
			rows = append(rows, []string{cli.OneLine(t.Name, wide), cli.OneLine(t.Description, wide)})
		}
	}
	if len(rows) > 1 {
		cli.PrintTable(m.Out, rows)
	}
	none := len(of.Tools) == 0 && !slices.ContainsFunc(of.Sources, func(s servedSource) bool { return s.Name != "" })
	if len(list) == 0 && none && base == "" {
		m.Out.Line("no tools yet; `tidemark tool add FILE.wasm` installs one, docs/modules.md says how to write it")
	} else if none && base != "" {
		m.Out.Printf("%s offers no tools of others; its modules are listed on its own machine\n", base)
	}
}

func toolLs(ctx context.Context, m *cli.Main, f *ofAgent) error { return listTools(ctx, m, f.Agent) }
