package main

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
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
func (m *Main) paint(color, s string) string {
	if !m.Terminal || m.env("NO_COLOR") != "" || cmp.Or(m.env("TERM"), "dumb") == "dumb" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// bar draws a share with what is left of the whole.
func bar(share float64, cells int) string {
	n := min(max(int(share*float64(cells)+.5), 0), cells)
	return strings.Repeat("█", n) + strings.Repeat("░", cells-n)
}

// dollars writes an amount; small ones with more places.
func dollars(v float64) string {
	const cent, dollar = 0.01, 1
	switch abs := max(v, -v); {
	case abs < cent/2 && abs > 0:
		return fmt.Sprintf("$%.5f", v)
	case abs < dollar:
		return fmt.Sprintf("$%.4f", v)
	}
	return fmt.Sprintf("$%.2f", v)
}

// turnsOf writes a break-even.
func turnsOf(n cost.Turns) string {
	switch n {
	case cost.Never:
		return "never"
	case 1:
		return "turn 1"
	}
	return "turn " + n.String()
}

// printCost prints what a log is made of and what trimming it costs.
func (m *Main) printCost(c *costing, path string, r costlogs.Report) {
	name := cmp.Or(r.Title, r.Session, filepath.Base(path))
	m.out.printf("%s: %s; %s of user and model in %s, of which %d in %s are live\n", safe(oneLine(name, 80)), plural(r.Built.Calls, "call"),
		plural(int(r.AllMessages.Messages()), "line"), size(r.Bytes), r.Messages.Messages(), size(r.LiveBytes))
	m.printPrices(c)
	if other := otherModel(c, r.Built); other != "" {
		m.out.printf("Most of its calls went to another model: --model %s\n", other)
	}
	m.out.line()
	m.printContext(r)
	m.printComposition(r)
	m.printModels(c, r)
	m.printProjections(r.Projections)
	m.printCompactions(r.Compactions)
	m.printBranch(r.Branch, r.Built)
	m.out.line()
	m.printVerdict(r)
}

func (m *Main) printPrices(c *costing) {
	p := c.o.Model.Price
	m.out.printf("%s: $%g in, $%g cache write (%s for an hour), $%g cache read, $%g out for a million tokens (%s, %s)\n", safe(cmp.Or(p.Name, p.Model)), p.Input, p.CacheWrite, perMillion(p.HourWrite()), p.CacheRead, p.Output, safe(c.o.Prices.Date), safe(c.o.Prices.Source))
}

// perMillion writes a price.
func perMillion(v float64) string { return fmt.Sprintf("$%g", v) }

// writing is a price of writing to the cache, and how long that cache lives.
func writing(price float64, ttl time.Duration) string {
	return perMillion(price) + " (" + longAgo(ttl) + ")"
}

// hitRateOf is the live model's hit rate, and where it is from.
func hitRateOf(l costlogs.Live) string {
	hit := inPercent(l.HitRate)
	switch {
	case l.Given:
		return hit + " (given)"
	case !l.Known:
		return hit + " (assumed)"
	}
	return hit
}

// otherModel is the model that most calls of a log went to, when its prices are others than those reckoned with.
func otherModel(c *costing, built costlogs.Built) string {
	most := costlogs.ModelCalls{}
	for _, one := range built.Models {
		if one.Calls > most.Calls {
			most = one
		}
	}
	p, err := c.o.Prices.Find(most.Model)
	if err != nil || p.Model == c.o.Model.Price.Model {
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

func (m *Main) printContext(r costlogs.Report) {
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
	m.out.printf("CONTEXT of %s, %s\n", count(window), basis)
	for _, row := range []struct {
		name, color string
		n           tidemark.Tokens
	}{{"before", yellow, l.Pre}, {"after", green, l.Post}} {
		m.out.printf("  %-7s %s %5s  %s\n", row.name, m.paint(row.color, bar(float64(row.n)/float64(window), cells)), count(row.n), inPercent(float64(row.n)/float64(window)))
	}
	m.out.printf("  %s less; %s of system prompt and tools stay, and %s before the first change\n\n", inPercent(l.Reduction/100), count(l.Prefix), count(max(0, l.Same-l.Prefix)))
}

func (m *Main) printComposition(r costlogs.Report) {
	const cells = 40
	var stack strings.Builder
	rows := [][]string{{"LIVE LOG", "BYTES", "SHARE", "COUNT", "TOKENS", "AFTER"}}
	drawn, sum, after := 0, int64(0), r.After.Parts()
	for i, p := range r.Composition.Parts() {
		sum += p.Bytes
		n := int(float64(cells)*float64(sum)/float64(max(r.LiveBytes, 1)) + .5)
		stack.WriteString(m.paint(partColors[i], strings.Repeat("█", max(0, n-drawn))))
		drawn = max(drawn, n)
		if p.Bytes > 0 {
			rows = append(rows, []string{costlogs.PartNames[i], size(p.Bytes), strconv.Itoa(p.Percent) + " %", strconv.FormatInt(p.Count, 10), count(p.Tokens), size(after[i].Bytes)})
		}
	}
	if r.LiveBytes > 0 && m.Terminal {
		m.out.line(stack.String())
	}
	if len(rows) > 1 {
		table(m.out, rows)
		m.out.line()
	}
}

func (m *Main) printModels(c *costing, r costlogs.Report) {
	p, l := r.Paper, r.Live
	table(m.out, [][]string{
		{"MODEL", "PAPER", "LIVE"},
		{"tokens before", count(p.Pre), count(l.Pre)},
		{"tokens after", count(p.Post), count(l.Post)},
		{"reduction", inPercent(p.Reduction / 100), inPercent(l.Reduction / 100)},
		{"read from the cache", fmt.Sprintf("%g %%", 100*r.HitRate), hitRateOf(l)},
		{"cache write, a million", writing(c.o.Model.Price.CacheWrite, cost.ShortTTL), writing(l.Write, time.Duration(l.TTL)*time.Second)},
		{"penalty, once", dollars(p.Penalty), dollars(l.Penalty)},
		{"savings a turn", dollars(p.Savings), dollars(l.Savings)},
		{"break-even", turnsOf(p.BreakEven), turnsOf(l.BreakEven)},
	})
	if l.Warm != nil && r.Built.Calls > 0 {
		m.out.printf("The last call was %s ago and the cache lives %s: it is cold anyway. With it warm: penalty %s, break-even: %s.\n",
			longAgo(time.Duration(l.Pause)*time.Second), longAgo(time.Duration(l.TTL)*time.Second), dollars(l.Warm.Penalty), turnsOf(l.Warm.BreakEven))
	}
	m.out.line()
}

// longAgo writes a span in its largest unit.
func longAgo(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return plural(int(d/day), "day")
	case d >= 2*time.Hour:
		return plural(int(d/time.Hour), "hour")
	case d == time.Hour:
		return "an hour"
	}
	return plural(int(d/time.Minute), "minute")
}

func (m *Main) printProjections(of []cost.Projection) {
	const cells = 16
	most := 0.0
	for _, p := range of {
		most = max(most, p.Without, p.With)
	}
	rows := [][]string{{"TURNS (PAPER)", "NO TRIM", "TRIMMED", "SAVED", ""}}
	for _, p := range of {
		saved := "-"
		if p.Without > 0 {
			saved = fixedPoint(100*(p.Without-p.With)/p.Without, 0) + " %"
		}
		rows = append(rows, []string{p.Turns.String(), dollars(p.Without), dollars(p.With), saved, bar(p.Without/max(most, 1e-9), cells) + " " + bar(p.With/max(most, 1e-9), cells)})
	}
	table(m.out, rows)
	m.out.line()
}

func (m *Main) printCompactions(of []costlogs.Compaction) {
	if len(of) == 0 {
		return
	}
	const most = 20
	rows := [][]string{{"COMPACTION", "LINE", "BEFORE", "AFTER", "LESS", "MESSAGES"}}
	for _, k := range of[max(0, len(of)-most):] {
		rows = append(rows, []string{cmp.Or(safe(oneLine(k.Trigger, 20)), "-") + " " + when(k.At), strconv.FormatInt(k.Line, 10), count(k.Before) + " (" + k.BeforeBasis + ")", count(k.After) + " (" + k.AfterBasis + ")", inPercent(k.Reduction / 100),
			count(k.MessagesBefore) + " to " + count(k.MessagesAfter)})
	}
	table(m.out, rows)
	if more := len(of) - most; more > 0 {
		m.out.printf("and %s before them; --json has all\n", plural(more, "compaction"))
	}
	m.out.line()
}

func (m *Main) printBranch(b costlogs.Branch, built costlogs.Built) {
	m.out.printf("BRANCH of the whole context: %s to begin, %s a turn from the cache", dollars(b.First), dollars(b.Later))
	if b.Trimmed.Tokens < b.Tokens {
		m.out.printf("; trimmed: %s and %s", dollars(b.Trimmed.First), dollars(b.Trimmed.Later))
	}
	m.out.printf("; cache write at %s", writing(b.Write, time.Duration(b.TTL)*time.Second))
	m.out.line()
	if built.Calls == 0 {
		return
	}
	m.out.printf("BUILT with %s for %s or more, as the log reports them", plural(built.Calls, "call"), dollars(built.Dollars))
	if built.Unpriced > 0 {
		m.out.printf(" (%s of models without a price, counted at this one's)", plural(built.Unpriced, "call"))
	}
	m.out.line()
}

func (m *Main) printVerdict(r costlogs.Report) {
	l := r.Live
	at := turnsOf(l.BreakEven)
	switch l.BreakEven.Verdict() {
	case cost.NotNeeded:
		why := "little to trim; it pays from " + at + " on."
		if l.BreakEven == cost.Never {
			why = "nothing to gain."
		}
		m.out.line(m.paint(red, "Not needed: there is "+why))
	case cost.LongRun:
		m.out.line(m.paint(yellow, "Worth it in a long session: it pays from "+at+" on."))
	default:
		why := ""
		if l.Cold {
			why = " (the cache is cold, so it costs nothing)"
		}
		m.out.line(m.paint(green, "Worth it: it pays from "+at+" on"+why+"."))
	}
}

// printAssumed prints the cost of a context that there is no log of.
func (m *Main) printAssumed(c *costing, a assumed) {
	m.printPrices(c)
	p := a.Paper
	m.out.printf("\n%s of %d tokens leave %d; %g %% of a turn are read from the cache\n", inPercent(p.Reduction/100), p.Pre, p.Post, 100*a.HitRate)
	m.out.printf("penalty %s, savings %s a turn, break-even at %s\n\n", dollars(p.Penalty), dollars(p.Savings), turnsOf(p.BreakEven))
	m.printProjections(a.Projections)
	m.printBranch(a.Branch, costlogs.Built{})
	m.out.line()
	color := map[cost.Verdict]string{cost.Worth: green, cost.LongRun: yellow, cost.NotNeeded: red}[a.Verdict]
	m.out.line(m.paint(color, strings.ToUpper(string(a.Verdict[:1]))+string(a.Verdict[1:])+"."))
}

// printStudy prints the tables of a folder.
func (m *Main) printStudy(f costlogs.Findings) {
	m.out.printf("%s qualify", plural(len(f.Sessions), "session"))
	for _, told := range []struct {
		n    int
		what string
	}{{f.Skipped.Subagents, "of subagents"}, {f.Skipped.Messages, fmt.Sprintf("with fewer than %d messages", costlogs.MinMessages)},
		{f.Skipped.Tokens, fmt.Sprintf("with less than %d tokens", costlogs.MinTokens)}, {f.Skipped.Failed, "not to be measured"}} {
		if told.n > 0 {
			m.out.printf("; %d %s left out", told.n, told.what)
		}
	}
	m.out.printf("\n%s, h = %g, prices of %s\n", safe(cmp.Or(f.Model.Name, f.Model.Model)), f.HitRate, safe(f.Date))
	if len(f.Sessions) == 0 {
		return
	}
	for _, by := range reckonings(f) {
		for _, one := range studyTables(by) {
			m.out.line()
			m.out.line(one.title)
			table(m.out, one.rows)
		}
	}
	m.out.line("\nBreak-evens behind turn 60 count as 60. --json has each session, --report draws them.")
}

// halves writes a number as a whole one, but for a half, which the median of two turns may be: it is not rounded to either.
func halves(v float64) string {
	if f := v - math.Floor(v); f == 0.5 {
		return fixedPoint(v, 1)
	}
	return whole(v)
}

// shownTable is a table as text and page show it.
type shownTable struct {
	title string
	rows  [][]string
}

// studyTables are Tables 2 and 3 by one of the models.
func studyTables(by reckoning) []shownTable {
	spread := func(name string, s costlogs.Spread, text func(float64) string) []string {
		return []string{name, text(s.Min), text(s.Median), text(s.Mean), text(s.Max)}
	}
	money := func(v float64) string { return fixedPoint(v, 2) }
	rows := [][]string{{"PROFILE", "SESSIONS", "MEAN RED.", "MEDIAN RED.", "MEAN BREAK-EVEN", "MEAN CONTEXT"}}
	for _, r := range by.tables.Profiles {
		row := []string{r.Profile, strconv.Itoa(r.Sessions), "-", "-", "-", "-"}
		if r.Sessions > 0 {
			row = []string{r.Profile, strconv.Itoa(r.Sessions), whole(r.Reduction.Mean) + " %", whole(r.Reduction.Median) + " %", halves(r.BreakEven.Mean) + " turns", count(tidemark.Tokens(r.Context))}
		}
		rows = append(rows, row)
	}
	return []shownTable{
		{"TABLE 2, " + by.name, [][]string{
			{"METRIC", "MIN", "MEDIAN", "MEAN", "MAX"},
			spread("token reduction (%)", by.tables.Reduction, whole),
			spread("cache miss penalty ($)", by.tables.Penalty, money),
			spread("break-even (turns)", by.tables.BreakEven, halves),
		}},
		{"TABLE 3, " + by.name, rows},
	}
}
