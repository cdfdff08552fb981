package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
)

// printStudy prints the tables of a folder.
func printStudy(m *cli.Main, f costlogs.Findings) {
	m.Out.Printf("%s qualify", cli.Plural(len(f.Sessions), "session"))
	for _, told := range []struct {
		n    int
		what string
	}{{f.Skipped.Subagents, "of subagents"}, {f.Skipped.Messages, fmt.Sprintf("with fewer than %d messages", costlogs.MinMessages)},
		{f.Skipped.Tokens, fmt.Sprintf("with less than %d tokens", costlogs.MinTokens)}, {f.Skipped.Failed, "not to be measured"}} {
		if told.n > 0 {
			m.Out.Printf("; %d %s left out", told.n, told.what)
		}
	}
	m.Out.Printf("\n%s, h = %g, prices of %s\n", cli.Safe(cmp.Or(f.Model.Name, f.Model.Model)), f.HitRate, cli.Safe(f.Date))
	if len(f.Sessions) == 0 {
		return
	}
	for _, by := range []struct {
		name string
		of   costlogs.Tables
	}{{"as the paper reckons", f.Paper}, {"by what is known of the sessions, with a warm cache", f.Live}} {
		for _, one := range studyTables(by.name, by.of) {
			m.Out.Line()
			m.Out.Line(one.title)
			cli.PrintTable(m.Out, one.rows)
		}
	}
	m.Out.Line("\nBreak-evens behind turn 60 count as 60. --json has each session.")
}

// halves writes a number as a whole one, but for a half, which the median of two turns may be: it is not rounded to either.
func halves(v float64) string {
	if f := v - math.Floor(v); f == 0.5 {
		return cli.FixedPoint(v, 1)
	}
	return whole(v)
}

// studyTables are Tables 2 and 3 by one of the models.
func studyTables(name string, of costlogs.Tables) []shownTable {
	spread := func(name string, s costlogs.Spread, text func(float64) string) []string {
		return []string{name, text(s.Min), text(s.Median), text(s.Mean), text(s.Max)}
	}
	money := func(v float64) string { return cli.FixedPoint(v, 2) }
	rows := [][]string{{"PROFILE", "SESSIONS", "MEAN RED.", "MEDIAN RED.", "MEAN BREAK-EVEN", "MEAN CONTEXT"}}
	for _, r := range of.Profiles {
		row := []string{r.Profile, strconv.Itoa(r.Sessions), "-", "-", "-", "-"}
		if r.Sessions > 0 {
			row = []string{r.Profile, strconv.Itoa(r.Sessions), whole(r.Reduction.Mean) + " %", whole(r.Reduction.Median) + " %", halves(r.BreakEven.Mean) + " turns", cli.Count(tidemark.Tokens(r.Context))}
		}
		rows = append(rows, row)
	}
	return []shownTable{
		{"TABLE 2, " + name, [][]string{
			{"METRIC", "MIN", "MEDIAN", "MEAN", "MAX"},
			spread("token reduction (%)", of.Reduction, whole),
			spread("cache miss penalty ($)", of.Penalty, money),
			spread("break-even (turns)", of.BreakEven, halves),
		}},
		{"TABLE 3, " + name, rows},
	}
}

func whole(v float64) string { return cli.FixedPoint(v, 0) }

// shownTable is a table with what stands above it.
type shownTable struct {
	title string
	rows  [][]string
}

func costOfFolder(ctx context.Context, m *cli.Main, c *cli.Costing, folder string) error {
	files, err := cli.Logs([]string{folder})
	if err != nil {
		return err
	}
	study, told := costlogs.NewStudy(c.O), m.Telling()
	for i, file := range files {
		if told != nil {
			told("logs", i, len(files))
		}
		if err := addToStudy(ctx, study, folder, file); err != nil {
			m.ProgressEnd()
			return err
		}
	}
	m.ProgressEnd()
	found := study.Findings()
	for _, f := range found.Skipped.Failures {
		m.Err.Printf("passed over: %s: %s\n", cli.Safe(f.Path), cli.Safe(f.Error))
	}
	return cli.Either(m, found, func() { printStudy(m, found) })
}

func addToStudy(ctx context.Context, study *costlogs.Study, folder, file string) error {
	name, err := filepath.Rel(folder, file)
	if err != nil {
		name = file
	}
	f, size, err := cli.OpenLog(file)
	if err != nil {
		study.Fail(name, err)
		return ctx.Err()
	}
	defer func() { _ = f.Close() }()
	return study.Add(ctx, name, f, size)
}

func costStudy(ctx context.Context, m *cli.Main, c *cli.Costing) error {
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	if err := c.Options(m.Changed); err != nil {
		return err
	}
	path := m.Args[0]
	info, err := os.Stat(path)
	if err != nil {
		return cli.Advise(err, "check the path; logs of Claude Code lie below ~/.claude/projects")
	}
	if !info.IsDir() {
		return cli.Advise(fmt.Errorf("%s is one log", path), "give a folder; `tidemark cost` says what one log costs")
	}
	return costOfFolder(ctx, m, c, path)
}
