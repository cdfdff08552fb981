package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
)

// Colours of a terminal.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
	purple = "35"
	blue   = "34"
	cyan   = "36"
	grey   = "90"
)

// partColors are those of costlogs.PartNames.
var partColors = []string{red, purple, blue, yellow, green, cyan, grey}

// paint colours a text where a person sees it.
func paint(m *cli.Main, color, s string) string {
	if !m.Terminal || m.Env("NO_COLOR") != "" || cmp.Or(m.Env("TERM"), "dumb") == "dumb" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// bar draws a share with what is left of the whole.
func bar(share float64, cells int) string {
	n := min(max(int(share*float64(cells)+.5), 0), cells)
	return strings.Repeat("█", n) + strings.Repeat("░", cells-n)
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
	const cells = 30
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
	for _, row := range []struct {
		name, color string
		n           tidemark.Tokens
	}{{"before", yellow, l.Pre}, {"after", green, l.Post}} {
		m.Out.Printf("  %-7s %s %5s  %s\n", row.name, paint(m, row.color, bar(float64(row.n)/float64(window), cells)), cli.Count(row.n), cli.InPercent(float64(row.n)/float64(window)))
	}
	m.Out.Printf("  %s less; %s of system prompt and tools stay, and %s before the first change\n\n", cli.InPercent(l.Reduction/100), cli.Count(l.Prefix), cli.Count(max(0, l.Same-l.Prefix)))
}

func printComposition(m *cli.Main, r costlogs.Report) {
	const cells = 40
	var stack strings.Builder
	rows := [][]string{{"LIVE LOG", "BYTES", "SHARE", "COUNT", "TOKENS", "AFTER"}}
	drawn, sum, after := 0, int64(0), r.After.Parts()
	for i, p := range r.Composition.Parts() {
		sum += p.Bytes
		n := int(float64(cells)*float64(sum)/float64(max(r.LiveBytes, 1)) + .5)
		stack.WriteString(paint(m, partColors[i], strings.Repeat("█", max(0, n-drawn))))
		drawn = max(drawn, n)
		if p.Bytes > 0 {
			rows = append(rows, []string{costlogs.PartNames[i], cli.Size(p.Bytes), strconv.Itoa(p.Percent) + " %", strconv.FormatInt(p.Count, 10), cli.Count(p.Tokens), cli.Size(after[i].Bytes)})
		}
	}
	if r.LiveBytes > 0 && m.Terminal {
		m.Out.Line(stack.String())
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
	const cells = 16
	most := 0.0
	for _, p := range of {
		most = max(most, p.Without, p.With)
	}
	rows := [][]string{{"TURNS (PAPER)", "NO TRIM", "TRIMMED", "SAVED", ""}}
	for _, p := range of {
		saved := "-"
		if p.Without > 0 {
			saved = cli.FixedPoint(100*(p.Without-p.With)/p.Without, 0) + " %"
		}
		rows = append(rows, []string{p.Turns.String(), cli.Dollars(p.Without), cli.Dollars(p.With), saved, bar(p.Without/max(most, 1e-9), cells) + " " + bar(p.With/max(most, 1e-9), cells)})
	}
	cli.PrintTable(m.Out, rows)
	m.Out.Line()
}

func printCompactions(m *cli.Main, of []costlogs.Compaction) {
	if len(of) == 0 {
		return
	}
	const most = 20
	rows := [][]string{{"COMPACTION", "LINE", "BEFORE", "AFTER", "LESS", "MESSAGES"}}
	for _, k := range of[max(0, len(of)-most):] {
		rows = append(rows, []string{cmp.Or(cli.Safe(cli.OneLine(k.Trigger, 20)), "-") + " " + cli.When(k.At), strconv.FormatInt(k.Line, 10), cli.Count(k.Before) + " (" + k.BeforeBasis + ")", cli.Count(k.After) + " (" + k.AfterBasis + ")", cli.InPercent(k.Reduction / 100),
			cli.Count(k.MessagesBefore) + " to " + cli.Count(k.MessagesAfter)})
	}
	cli.PrintTable(m.Out, rows)
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
		m.Out.Line(paint(m, red, "Not needed: there is "+why))
	case cost.LongRun:
		m.Out.Line(paint(m, yellow, "Worth it in a long session: it pays from "+at+" on."))
	default:
		why := ""
		if l.Cold {
			why = " (the cache is cold, so it costs nothing)"
		}
		m.Out.Line(paint(m, green, "Worth it: it pays from "+at+" on"+why+"."))
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
	color := map[cost.Verdict]string{cost.Worth: green, cost.LongRun: yellow, cost.NotNeeded: red}[a.Verdict]
	m.Out.Line(paint(m, color, strings.ToUpper(string(a.Verdict[:1]))+string(a.Verdict[1:])+"."))
}
