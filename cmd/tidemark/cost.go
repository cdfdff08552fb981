package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
	"github.com/tidemark-ai/tidemark/trim"
)

func costCommand(ctx context.Context, m *cli.Main, c *cli.Costing) error {
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	if err := c.Options(m.Changed); err != nil {
		return err
	}
	if 0 < c.Threshold && c.Threshold < trim.MinThreshold {
		m.Err.Printf("--threshold %d acts as %d\n", c.Threshold, trim.MinThreshold)
	}
	path := strings.Join(m.Args, "")
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
		return cli.Advise(fmt.Errorf("%s is a folder", path), "give one log; `go run ./cmd/bench cost FOLDER` (tidemark-bench) makes the tables of many")
	}
	return costOfLog(ctx, m, c, path)
}

// costLog finds the log of a session of Claude Code.
func costLog(ctx context.Context, m *cli.Main, c *cli.Costing) (string, error) {
	store, err := claudeStore(m)
	if err != nil {
		return "", err
	}
	cwd := ""
	if !c.AllProjects {
		if cwd, err = os.Getwd(); err != nil {
			return "", fmt.Errorf("--claude %s: %w", c.Claude, err)
		}
	}
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
	return cli.Either(m, a, func() {
		printAssumed(m, c, a)
	})
}

func costOfLog(ctx context.Context, m *cli.Main, c *cli.Costing, path string) error {
	r, err := cli.MeasureFile(ctx, path, c.O)
	if err != nil {
		return err
	}
	return cli.Either(m, r, func() {
		printCost(m, c, path, r)
	})
}

// toldCost is what the server tells of a session's cost (docs/http.md).
type toldCost struct {
	Context tidemark.Tokens `json:"contextTokens"`
	Model   string          `json:"model"`
	Models  []string        `json:"models"`
	Why     string          `json:"why"`
	Price   *struct {
		Name   string `json:"name"`
		Date   string `json:"date"`
		Source string `json:"source"`

		Write float64 `json:"cache_write"`
		Read  float64 `json:"cache_read"`
	} `json:"price"`
	HitRate  float64 `json:"hitRate"`
	Measured bool    `json:"measured"`
	Next     *struct {
		Cached   float64 `json:"cached"`
		Uncached float64 `json:"uncached"`
		Likely   float64 `json:"likely"`
	} `json:"next"`
	Spent struct {
		Dollars *float64 `json:"dollars"`
	} `json:"spent"`
	Trim struct {
		Before    tidemark.Tokens `json:"before"`
		After     tidemark.Tokens `json:"after"`
		Reduction float64         `json:"reduction"`
		Penalty   float64         `json:"penalty"`
		Savings   float64         `json:"savings"`
		BreakEven *cost.Turns     `json:"break_even"`
		Verdict   cost.Verdict    `json:"verdict"`
		Live      struct {
			Penalty   float64     `json:"penalty"`
			Savings   float64     `json:"savings"`
			BreakEven *cost.Turns `json:"break_even"`
			Cold      bool        `json:"cold"`
		} `json:"live"`
	} `json:"trim"`
}

// costOfSession asks what the context of a session of Tidemark costs.
func costOfSession(ctx context.Context, m *cli.Main, c *cli.Costing) error {
	changed := m.Changed
	if c.Prices != "" {
		return cli.Usagef("--session: --prices is for logs of Claude Code")
	}
	q := url.Values{}
	if changed("model") {
		q.Set("model", c.Model)
	}
	if changed("hit-rate") {
		q.Set("hitRate", c.HitRate)
	}
	if c.Threshold > 0 {
		q.Set("threshold", strconv.Itoa(c.Threshold))
	}
	return look(ctx, m, cli.SessionPath(c.Session, "/cost")+"?"+q.Encode(), func(told toldCost) {
		printToldCost(m, c.Session, told)
	})
}

// turnsTold writes a break-even as it comes over the wire, where never is null.
func turnsTold(n *cost.Turns) string {
	if n == nil {
		return "never"
	}
	return cli.TurnsOf(*n)
}

func printToldCost(m *cli.Main, key string, t toldCost) {
	m.Out.Printf("%s: the next call is sent %s\n", cli.Safe(key), cli.Count(t.Context))
	m.Out.Printf("  before  %5s\n", cli.Count(t.Trim.Before))
	m.Out.Printf("  after   %5s  %s less on a trimmed branch\n", cli.Count(t.Trim.After), cli.InPercent(t.Trim.Reduction/100))
	if t.Price == nil || t.Next == nil {
		m.Out.Printf("no dollars are told: %s\n", cli.Safe(cmp.Or(t.Why, "no price for "+t.Model)))
		if len(t.Models) > 0 {
			m.Out.Printf("  what to do: reckon at the prices of another: tidemark cost --session %s --model %s\n", shellWord(key), cli.Safe(t.Models[0]))
		}
		return
	}
	basis := "assumed"
	if t.Measured {
		basis = "measured"
	}
	m.Out.Printf("at the prices of %s: $%g cache write (%s), $%g cache read for a million tokens (%s, %s)\n\n", cli.Safe(t.Price.Name), t.Price.Write, cli.LongAgo(cost.ShortTTL), t.Price.Read, cli.Safe(t.Price.Date), cli.Safe(t.Price.Source))
	cli.PrintTable(m.Out, [][]string{
		{"MODEL", "PAPER", "LIVE"},
		{"penalty, once", cli.Dollars(t.Trim.Penalty), cli.Dollars(t.Trim.Live.Penalty)},
		{"savings a turn", cli.Dollars(t.Trim.Savings), cli.Dollars(t.Trim.Live.Savings)},
		{"break-even", turnsTold(t.Trim.BreakEven), turnsTold(t.Trim.Live.BreakEven)},
	})
	m.Out.Printf("\nnext turn: %s from the cache, %s without it, %s at a hit rate of %s (%s)\n", cli.Dollars(t.Next.Cached), cli.Dollars(t.Next.Uncached), cli.Dollars(t.Next.Likely), cli.InPercent(t.HitRate), basis)
	if t.Trim.Live.Cold && t.Trim.Live.BreakEven != nil {
		m.Out.Line("The cache is cold: a trimmed branch costs nothing extra now.")
	}
	if t.Spent.Dollars != nil {
		m.Out.Printf("spent so far: %s, as if all calls had gone to this model\n", cli.Dollars(*t.Spent.Dollars))
	}
}

// printCost prints what a log is made of and what trimming it costs.
func printCost(m *cli.Main, c *cli.Costing, path string, r costlogs.Report) {
	name := cmp.Or(r.Title, r.Session, filepath.Base(path))
	m.Out.Printf("%s: %s; %s of user and model in %s, of which %d in %s are live\n", cli.Safe(cli.OneLine(name, 80)), cli.Plural(r.Built.Calls, "call"),
		cli.Plural(int(r.AllMessages.Messages()), "line"), cli.Size(r.Bytes), r.Messages.Messages(), cli.Size(r.LiveBytes))
	printPrices(m, c)
	if other := otherModel(c, r.Built); other != "" {
		m.Out.Printf("Most of its calls went to another model: --model %s\n", other)
	}
	m.Out.Line()
	printContext(m, r)
	printComposition(m, r)
	printModels(m, c, r)
	printProjections(m, r.Projections)
	printCompactions(m, r.Compactions)
	printBranch(m, r.Branch, r.Built)
	m.Out.Line()
	printVerdict(m, r)
}

func printPrices(m *cli.Main, c *cli.Costing) {
	p := c.O.Model.Price
	m.Out.Printf("%s: $%g in, $%g cache write (%s for an hour), $%g cache read, $%g out for a million tokens (%s, %s)\n", cli.Safe(cmp.Or(p.Name, p.Model)), p.Input, p.CacheWrite, cli.PerMillion(p.HourWrite()), p.CacheRead, p.Output, cli.Safe(c.O.Prices.Date), cli.Safe(c.O.Prices.Source))
}

// otherModel is the model that most calls of a log went to, when its prices are others than those reckoned with.
func otherModel(c *cli.Costing, built costlogs.Built) string {
	most := costlogs.ModelCalls{}
	for _, one := range built.Models {
		if one.Calls > most.Calls {
			most = one
		}
	}
	p, err := c.O.Prices.Find(most.Model)
	if err != nil || p.Model == c.O.Model.Price.Model {
		return ""
	}
	return p.Model
}

// windowOf is the window that a context is drawn in: the usual one, else the long one.
func windowOf(context tidemark.Tokens) tidemark.Tokens {
	const long = 1_000_000
	if context > costlogs.ContextLimit {
		return long
	}
	return costlogs.ContextLimit
}

func printContext(m *cli.Main, r costlogs.Report) {
	l := r.Live
	window := windowOf(l.Pre)
	basis := "estimated"
	switch {
	case l.Measured:
		basis = "as the last call reported, and what came since"
	case l.Lineage:
		basis = "as the session that it was branched from tells"
	}
	m.Out.Printf("CONTEXT of %s, %s\n", cli.Count(window), basis)
	for i, n := range []tidemark.Tokens{l.Pre, l.Post} {
		m.Out.Printf("  %-7s %5s  %s\n", []string{"before", "after"}[i], cli.Count(n), cli.InPercent(float64(n)/float64(window)))
	}
	m.Out.Printf("  %s less; %s of system prompt and tools stay, and %s before the first change\n\n", cli.InPercent(l.Reduction/100), cli.Count(l.Prefix), cli.Count(max(0, l.Same-l.Prefix)))
}

func printComposition(m *cli.Main, r costlogs.Report) {
	rows := [][]string{{"LIVE LOG", "BYTES", "SHARE", "COUNT", "TOKENS", "AFTER"}}
	after := r.After.Parts()
	for i, p := range r.Composition.Parts() {
		if p.Bytes > 0 {
			rows = append(rows, []string{costlogs.PartNames[i], cli.Size(p.Bytes), strconv.Itoa(p.Percent) + " %", strconv.FormatInt(p.Count, 10), cli.Count(p.Tokens), cli.Size(after[i].Bytes)})
		}
	}
	if len(rows) > 1 {
		cli.PrintTable(m.Out, rows)
		m.Out.Line()
	}
}

func printModels(m *cli.Main, c *cli.Costing, r costlogs.Report) {
	p, l := r.Paper, r.Live
	cli.PrintTable(m.Out, [][]string{
		{"MODEL", "PAPER", "LIVE"},
		{"tokens before", cli.Count(p.Pre), cli.Count(l.Pre)},
		{"tokens after", cli.Count(p.Post), cli.Count(l.Post)},
		{"reduction", cli.InPercent(p.Reduction / 100), cli.InPercent(l.Reduction / 100)},
		{"read from the cache", fmt.Sprintf("%g %%", 100*r.HitRate), cli.HitRateOf(l)},
		{"cache write, a million", cli.Writing(c.O.Model.Price.CacheWrite, cost.ShortTTL), cli.Writing(l.Write, time.Duration(l.TTL)*time.Second)},
		{"penalty, once", cli.Dollars(p.Penalty), cli.Dollars(l.Penalty)},
		{"savings a turn", cli.Dollars(p.Savings), cli.Dollars(l.Savings)},
		{"break-even", cli.TurnsOf(p.BreakEven), cli.TurnsOf(l.BreakEven)},
	})
	if l.Warm != nil && r.Built.Calls > 0 {
		m.Out.Printf("The last call was %s ago and the cache lives %s: it is cold anyway. With it warm: penalty %s, break-even: %s.\n",
			cli.LongAgo(time.Duration(l.Pause)*time.Second), cli.LongAgo(time.Duration(l.TTL)*time.Second), cli.Dollars(l.Warm.Penalty), cli.TurnsOf(l.Warm.BreakEven))
	}
	m.Out.Line()
}

func printProjections(m *cli.Main, of []cost.Projection) {
	cli.Columns(m.Out, of, []string{"TURNS (PAPER)", "NO TRIM", "TRIMMED", "SAVED"}, func(p cost.Projection) []string {
		saved := "-"
		if p.Without > 0 {
			saved = cli.FixedPoint(100*(p.Without-p.With)/p.Without, 0) + " %"
		}
		return []string{p.Turns.String(), cli.Dollars(p.Without), cli.Dollars(p.With), saved}
	})
	m.Out.Line()
}

func printCompactions(m *cli.Main, of []costlogs.Compaction) {
	if len(of) == 0 {
		return
	}
	const most = 20
	cli.Columns(m.Out, of[max(0, len(of)-most):], []string{"COMPACTION", "LINE", "BEFORE", "AFTER", "LESS", "MESSAGES"}, func(k costlogs.Compaction) []string {
		return []string{cmp.Or(cli.Safe(cli.OneLine(k.Trigger, 20)), "-") + " " + cli.When(k.At), strconv.FormatInt(k.Line, 10), cli.Count(k.Before) + " (" + k.BeforeBasis + ")", cli.Count(k.After) + " (" + k.AfterBasis + ")", cli.InPercent(k.Reduction / 100),
			cli.Count(k.MessagesBefore) + " to " + cli.Count(k.MessagesAfter)}
	})
	if more := len(of) - most; more > 0 {
		m.Out.Printf("and %s before them; --json has all\n", cli.Plural(more, "compaction"))
	}
	m.Out.Line()
}

func printBranch(m *cli.Main, b costlogs.Branch, built costlogs.Built) {
	m.Out.Printf("BRANCH of the whole context: %s to begin, %s a turn from the cache", cli.Dollars(b.First), cli.Dollars(b.Later))
	if b.Trimmed.Tokens < b.Tokens {
		m.Out.Printf("; trimmed: %s and %s", cli.Dollars(b.Trimmed.First), cli.Dollars(b.Trimmed.Later))
	}
	m.Out.Printf("; cache write at %s", cli.Writing(b.Write, time.Duration(b.TTL)*time.Second))
	m.Out.Line()
	if built.Calls == 0 {
		return
	}
	m.Out.Printf("BUILT with %s for %s or more, as the log reports them", cli.Plural(built.Calls, "call"), cli.Dollars(built.Dollars))
	if built.Unpriced > 0 {
		m.Out.Printf(" (%s of models without a price, counted at this one's)", cli.Plural(built.Unpriced, "call"))
	}
	m.Out.Line()
}

func printVerdict(m *cli.Main, r costlogs.Report) {
	l := r.Live
	at := cli.TurnsOf(l.BreakEven)
	switch l.BreakEven.Verdict() {
	case cost.NotNeeded:
		why := "little to trim; it pays from " + at + " on."
		if l.BreakEven == cost.Never {
			why = "nothing to gain."
		}
		m.Out.Line("Not needed: there is " + why)
	case cost.LongRun:
		m.Out.Line("Worth it in a long session: it pays from " + at + " on.")
	default:
		why := ""
		if l.Cold {
			why = " (the cache is cold, so it costs nothing)"
		}
		m.Out.Line("Worth it: it pays from " + at + " on" + why + ".")
	}
}

// printAssumed prints the cost of a context that there is no log of.
func printAssumed(m *cli.Main, c *cli.Costing, a assumed) {
	printPrices(m, c)
	p := a.Paper
	m.Out.Printf("\n%s of %d tokens leave %d; %g %% of a turn are read from the cache\n", cli.InPercent(p.Reduction/100), p.Pre, p.Post, 100*a.HitRate)
	m.Out.Printf("penalty %s, savings %s a turn, break-even at %s\n\n", cli.Dollars(p.Penalty), cli.Dollars(p.Savings), cli.TurnsOf(p.BreakEven))
	printProjections(m, a.Projections)
	printBranch(m, a.Branch, costlogs.Built{})
	m.Out.Line()
	m.Out.Line(strings.ToUpper(string(a.Verdict[:1])) + string(a.Verdict[1:]) + ".")
}
