package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
	"github.com/tidemark-ai/tidemark/trim"
)

func runCost(ctx context.Context, m *cli.Main, c *cli.Costing, args []string) error {
	if err := c.Options(m.Changed); err != nil {
		return err
	}
	if 0 < c.Threshold && c.Threshold < trim.MinThreshold {
		m.Err.Printf("--threshold %d acts as %d\n", c.Threshold, trim.MinThreshold)
	}
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	switch of := cmp.Or(path, c.Claude, c.Session); {
	case path != "" && c.Claude != "", path != "" && c.Session != "", c.Claude != "" && c.Session != "":
		return cli.Usagef("cost: want one of a log, --claude and --session")
	case c.Tokens > 0 && of != "":
		return cli.Usagef("cost: --tokens is for a context without a log")
	case c.Tokens > 0:
		return costOfTokens(m, c)
	case c.Given != nil:
		return cli.Usagef("--reduction: want --tokens with it; of a log it is measured")
	case of == "":
		return cli.Usagef("cost: of what? give a log, --claude latest, --session KEY, or --tokens 84000 --reduction 39")
	case c.Session != "":
		return costOfSession(ctx, m, c)
	case path == "":
		log, err := costLog(ctx, m, c)
		if err != nil {
			return err
		}
		path = log
	}
	info, err := os.Stat(path)
	if err != nil {
		return cli.Advise(err, "check the path; logs of Claude Code lie below ~/.claude/projects")
	}
	if info.IsDir() {
		return cli.Advise(fmt.Errorf("%s is a folder", path), "give one log; `go run ./cmd/bench cost FOLDER` (tidemark-bench) makes the tables and figures of many")
	}
	return costOfLog(ctx, m, c, path)
}

// costLog finds the log of a session of Claude Code.
func costLog(ctx context.Context, m *cli.Main, c *cli.Costing) (string, error) {
	home, err := m.HomeDir()
	if err != nil {
		return "", err
	}
	dir, err := claude.ConfigDir(m.Env)
	if err != nil {
		return "", err
	}
	cwd := ""
	if !c.AllProjects {
		if cwd, err = os.Getwd(); err != nil {
			return "", fmt.Errorf("--claude %s: %w", c.Claude, err)
		}
	}
	store := &claude.Store{Home: home, Dir: dir}
	s, err := store.Finder().Pick(ctx, c.Claude, cwd)
	switch {
	case err != nil && c.Claude == claude.Latest && errors.Is(err, tidemark.ErrNotFound) && !c.AllProjects:
		return "", cli.Advise(err, "--all-projects takes the newest of all projects")
	case err != nil:
		return "", err
	}
	c.O.Context, _ = store.Made(s)
	m.Err.Printf("session %s of %s\n", s.ID, cli.Safe(cmp.Or(s.Project, filepath.Dir(s.Path))))
	return s.Path, nil
}

// assumed is the cost of a context that nobody has a log of.
type assumed struct {
	Model       string            `json:"model"`
	HitRate     float64           `json:"hit_rate"`
	Paper       cost.Trim         `json:"paper"`
	Verdict     cost.Verdict      `json:"verdict"`
	Projections []cost.Projection `json:"projections"`
	Branch      costlogs.Branch   `json:"branch"`
}

func costOfTokens(m *cli.Main, c *cli.Costing) error {
	if c.Given == nil {
		return cli.Usagef("--tokens: want --reduction with it, in percent, such as 39")
	}
	const percent = 100
	pre := tidemark.Tokens(c.Tokens)
	post := pre - tidemark.Tokens(float64(pre)*(*c.Given)/percent+0.5)
	model := c.O.Model
	a := assumed{model.Price.Model, model.HitRate, model.Paper(pre, post), "", model.Project(pre, post), costlogs.BranchOf(model, cost.ShortTTL, pre, post)}
	a.Verdict = a.Paper.BreakEven.Verdict()
	if m.JSON {
		return m.PrintJSON(a)
	}
	printAssumed(m, c, a)
	return nil
}

func costOfLog(ctx context.Context, m *cli.Main, c *cli.Costing, path string) error {
	r, err := cli.MeasureFile(ctx, path, c.O)
	if err != nil {
		return err
	}
	if m.JSON {
		return m.PrintJSON(r)
	}
	printCost(m, c, path, r)
	return nil
}

func costCommand(ctx context.Context, m *cli.Main, c *cli.Costing) error {
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	return runCost(ctx, m, c, m.Args)
}
