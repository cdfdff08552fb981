package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
	"github.com/tidemark-ai/tidemark/trim"
)

// costing is the command of that name.
type costing struct {
	model, hitRate, prices string
	tokens                 int64
	reduction, report      string
	force                  bool // replaces a report
	threshold              int
	claude, session        string
	allProjects            bool

	o     costlogs.Options
	given *float64 // --reduction
}

func (m *Main) costCommand() *cobra.Command {
	c := &costing{}
	cmd := &cobra.Command{Use: "cost [LOG | FOLDER]", Short: "Say what trimming a session log costs, and from which turn on it pays", Args: cobra.MaximumNArgs(1),
		Long: `Say what a session log of Claude Code is made of, what trimming it would cost and save,
and from which turn on that pays (papers: Contextual Memory Virtualisation, section 4).
Nothing is written but --report, and nothing is sent.

Two models stand side by side. PAPER is the paper's: the context by what the last call
reported and a quarter of the characters since (without a report a quarter of all, and
20,000), the reduction by bytes of the log, the hit rate by --hit-rate, and the whole
cache lost by a trim. LIVE is what is known of the session: tokens that really go, with
images by their pixels; what stands before the first change stays in the cache; the hit
rate is the session's own, or the one given; a write has the price of the cache that the
session writes to; and a cache that nobody used for as long as it lives is cold anyway,
so that a trim costs nothing.

Of a FOLDER all logs below it count that are no subagent's, have 10 messages and 5,000
tokens: Tables 2 and 3 of the paper, and with --report its figures 2 to 5. A session is
mixed when results of tools are 15 % of its bytes or more, else conversational; a
break-even behind turn 60 counts as 60.`,
		Example: `  tidemark cost ~/.claude/projects/x/0a1b2c3d.jsonl
  tidemark cost --claude latest --model sonnet
  tidemark cost ~/.claude/projects --report cost.html
  tidemark cost --tokens 84000 --reduction 39
  tidemark cost --session main`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			return m.runCost(ctx, cmd, c, args)
		}}
	f := cmd.Flags()
	f.StringVar(&c.model, "model", cost.DefaultModel, "whose prices: a name of the table or the id of a model")
	f.StringVar(&c.hitRate, "hit-rate", strconv.FormatFloat(cost.DefaultHitRate, 'g', -1, 64), "share of a turn that is read from the cache, 0 to 1; given, it is used for both models")
	f.StringVar(&c.prices, "prices", "", "file with prices (JSON) instead of those of the program")
	f.Int64Var(&c.tokens, "tokens", 0, "without a log: tokens of a context")
	f.StringVar(&c.reduction, "reduction", "", "with --tokens: by how many percent a trim makes it smaller")
	f.IntVar(&c.threshold, "threshold", 0, "characters of an output or input of a tool over which it is trimmed (default 500)")
	f.StringVar(&c.report, "report", "", "write a page (HTML) with tables and figures into this file")
	f.BoolVar(&c.force, "force", false, "replace a report that is there")
	f.StringVar(&c.claude, "claude", "", "a session of Claude Code by its id, the beginning of it, or latest")
	f.StringVar(&c.session, "session", "", "a session of Tidemark by its key: what its context costs")
	f.BoolVar(&c.allProjects, "all-projects", false, "with --claude latest: of all projects, not of this folder's")
	return m.jsonFlag(cmd)
}

// options reads the flags.
func (c *costing) options(cmd *cobra.Command) error {
	h, err := strconv.ParseFloat(c.hitRate, 64)
	if err != nil || !(h >= 0 && h <= 1) {
		return usagef("--hit-rate %s: want a share from 0 to 1, such as 0.9", c.hitRate)
	}
	changed := cmd.Flags().Changed
	if changed("threshold") && c.threshold <= 0 {
		return usagef("--threshold %d: want a number of characters, such as %d", c.threshold, trim.DefaultThreshold)
	}
	if changed("tokens") && c.tokens <= 0 {
		return usagef("--tokens %d: want the size of a context, such as 84000", c.tokens)
	}
	if c.reduction != "" {
		p, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(c.reduction), "%"), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return usagef("--reduction %s: want percent, from 0 to 100, such as 39", c.reduction)
		}
		c.given = &p
	}
	c.o = costlogs.Options{Prices: cost.DefaultPrices(), Trim: trim.Options{Threshold: c.threshold}, Now: time.Now(), Given: changed("hit-rate")}
	if c.prices != "" {
		if c.o.Prices, err = readPrices(c.prices); err != nil {
			return &fixed{fmt.Errorf("--prices: %w", err), "give a table as docs/cost.md shows one: date, source and models"}
		}
	}
	price, err := c.o.Prices.Find(c.model)
	if err != nil {
		return usagef("--model %s: no price for it; known are %s, and the ids of such models; --prices FILE gives others", c.model, strings.Join(c.o.Prices.Names(), ", "))
	}
	c.o.Model = cost.Model{Price: price, HitRate: h}
	return c.o.Model.Check()
}

// readPrices reads a table of prices.
func readPrices(file string) (cost.Prices, error) {
	const most = 1 << 20
	if err := noPipe(file); err != nil {
		return cost.Prices{}, err
	}
	f, err := os.Open(file)
	if err != nil {
		return cost.Prices{}, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(raw) > most {
		err = fmt.Errorf("read %s: more than %s: %w", file, size(most), tidemark.ErrTooLarge)
	}
	if err != nil {
		return cost.Prices{}, err
	}
	return cost.ParsePrices(raw)
}

func (m *Main) runCost(ctx context.Context, cmd *cobra.Command, c *costing, args []string) error {
	if err := c.options(cmd); err != nil {
		return err
	}
	if 0 < c.threshold && c.threshold < trim.MinThreshold {
		m.err.printf("--threshold %d acts as %d\n", c.threshold, trim.MinThreshold)
	}
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	switch of := cmp.Or(path, c.claude, c.session); {
	case path != "" && c.claude != "", path != "" && c.session != "", c.claude != "" && c.session != "":
		return usagef("cost: want one of a log, --claude and --session")
	case c.tokens > 0 && of != "":
		return usagef("cost: --tokens is for a context without a log")
	case c.tokens > 0:
		return m.costOfTokens(c)
	case c.given != nil:
		return usagef("--reduction: want --tokens with it; of a log it is measured")
	case of == "":
		return usagef("cost: of what? give a log or a folder of logs, --claude latest, --session KEY, or --tokens 84000 --reduction 39")
	case c.session != "":
		return m.costOfSession(ctx, cmd, c)
	case path == "":
		log, err := m.claudeLog(ctx, c)
		if err != nil {
			return err
		}
		path = log
	}
	info, err := os.Stat(path)
	if err != nil {
		return &fixed{err, "check the path; logs of Claude Code lie below ~/.claude/projects"}
	}
	if info.IsDir() {
		return m.costOfFolder(ctx, c, path)
	}
	return m.costOfLog(ctx, c, path)
}

// claudeLog finds the log of a session of Claude Code.
func (m *Main) claudeLog(ctx context.Context, c *costing) (string, error) {
	home, err := m.homeDir()
	if err != nil {
		return "", err
	}
	dir, err := claude.ConfigDir(m.env)
	if err != nil {
		return "", err
	}
	cwd := ""
	if !c.allProjects {
		if cwd, err = os.Getwd(); err != nil {
			return "", fmt.Errorf("--claude %s: %w", c.claude, err)
		}
	}
	store := &claude.Store{Home: home, Dir: dir}
	s, err := store.Finder().Pick(ctx, c.claude, cwd)
	switch {
	case err != nil && c.claude == claude.Latest && errors.Is(err, tidemark.ErrNotFound) && !c.allProjects:
		return "", &fixed{err, "--all-projects takes the newest of all projects"}
	case err != nil:
		return "", err
	}
	c.o.Context, _ = store.Made(s)
	m.err.printf("session %s of %s\n", s.ID, safe(cmp.Or(s.Project, filepath.Dir(s.Path))))
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

func (m *Main) costOfTokens(c *costing) error {
	if c.given == nil {
		return usagef("--tokens: want --reduction with it, in percent, such as 39")
	}
	if c.report != "" {
		return usagef("--report: want a log or a folder of logs")
	}
	const percent = 100
	pre := tidemark.Tokens(c.tokens)
	post := pre - tidemark.Tokens(float64(pre)*(*c.given)/percent+0.5)
	model := c.o.Model
	a := assumed{model.Price.Model, model.HitRate, model.Paper(pre, post), "", model.Project(pre, post), costlogs.BranchOf(model, cost.ShortTTL, pre, post)}
	a.Verdict = a.Paper.BreakEven.Verdict()
	if m.json {
		return m.printJSON(a)
	}
	m.printAssumed(c, a)
	return nil
}

func (m *Main) costOfLog(ctx context.Context, c *costing, path string) error {
	if err := c.spareReport([]string{path, c.prices}); err != nil {
		return err
	}
	r, err := measureFile(ctx, path, c.o)
	if err != nil {
		return err
	}
	if c.report != "" {
		s := costlogs.Session{Path: path, Report: r}
		if err := m.writeReport(c.report, func(w io.Writer) error { return pageLog(w, s, c.o) }); err != nil {
			return err
		}
	}
	if m.json {
		return m.printJSON(r)
	}
	m.printCost(c, path, r)
	return nil
}

// measureFile measures the log that a file holds now; what is appended meanwhile is left out.
func measureFile(ctx context.Context, path string, o costlogs.Options) (costlogs.Report, error) {
	f, size, err := openLog(path)
	if err != nil {
		return costlogs.Report{}, err
	}
	defer func() { _ = f.Close() }()
	r, err := costlogs.Measure(ctx, f, size, o)
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if r.AllMessages.Messages() == 0 {
		return r, &fixed{fmt.Errorf("no message stands in %s: %w", path, tidemark.ErrInvalid), "give a session log of Claude Code; a subagent's own is none"}
	}
	return r, nil
}

// openLog opens a log, and refuses what is none.
func openLog(path string) (*os.File, int64, error) {
	if err := noPipe(path); err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fixed{fmt.Errorf("%s is no file: %w", path, tidemark.ErrInvalid), "give a log (.jsonl)"}
	}
	head := make([]byte, len(packed))
	if n, _ := f.ReadAt(head, 0); err == nil && string(head[:n]) == packed {
		err = fmt.Errorf("%s is packed (gzip), unpack it first: %w", path, tidemark.ErrInvalid)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func (m *Main) costOfFolder(ctx context.Context, c *costing, folder string) error {
	files, err := logs([]string{folder})
	if err != nil {
		return err
	}
	if err := c.spareReport(append(files, c.prices)); err != nil {
		return err
	}
	study, told := costlogs.NewStudy(c.o), m.telling()
	for i, file := range files {
		if told != nil {
			told("logs", i, len(files))
		}
		if err := addToStudy(ctx, study, folder, file); err != nil {
			m.progressEnd()
			return err
		}
	}
	m.progressEnd()
	found := study.Findings()
	for _, f := range found.Skipped.Failures {
		m.err.printf("passed over: %s: %s\n", safe(f.Path), safe(f.Error))
	}
	if c.report != "" {
		if err := m.writeReport(c.report, func(w io.Writer) error { return pageStudy(w, found) }); err != nil {
			return err
		}
	}
	if m.json {
		return m.printJSON(found)
	}
	m.printStudy(found)
	return nil
}

func addToStudy(ctx context.Context, study *costlogs.Study, folder, file string) error {
	name, err := filepath.Rel(folder, file)
	if err != nil {
		name = file
	}
	f, size, err := openLog(file)
	if err != nil {
		study.Fail(name, err)
		return ctx.Err()
	}
	defer func() { _ = f.Close() }()
	return study.Add(ctx, name, f, size)
}

// spareReport refuses a report in the place of what it is of, and of what is there.
func (c *costing) spareReport(inputs []string) error {
	if err := spare("--report", c.report, inputs); err != nil {
		return err
	}
	if c.report != "" && !c.force && there(c.report) {
		return &fixed{fmt.Errorf("%s is there already", c.report), "choose another --report, or replace it with --force"}
	}
	return nil
}

func (m *Main) writeReport(file string, fill func(io.Writer) error) error {
	if err := toFile(file, fill); err != nil {
		return err
	}
	m.err.line("wrote " + file)
	return nil
}
