package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
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
	for _, by := range reckonings(f) {
		for _, one := range studyTables(by) {
			m.Out.Line()
			m.Out.Line(one.title)
			cli.PrintTable(m.Out, one.rows)
		}
	}
	m.Out.Line("\nBreak-evens behind turn 60 count as 60. --json has each session, --report draws them.")
}

// halves writes a number as a whole one, but for a half, which the median of two turns may be: it is not rounded to either.
func halves(v float64) string {
	if f := v - math.Floor(v); f == 0.5 {
		return cli.FixedPoint(v, 1)
	}
	return whole(v)
}

// studyTables are Tables 2 and 3 by one of the models.
func studyTables(by reckoning) []shownTable {
	spread := func(name string, s costlogs.Spread, text func(float64) string) []string {
		return []string{name, text(s.Min), text(s.Median), text(s.Mean), text(s.Max)}
	}
	money := func(v float64) string { return cli.FixedPoint(v, 2) }
	rows := [][]string{{"PROFILE", "SESSIONS", "MEAN RED.", "MEDIAN RED.", "MEAN BREAK-EVEN", "MEAN CONTEXT"}}
	for _, r := range by.tables.Profiles {
		row := []string{r.Profile, strconv.Itoa(r.Sessions), "-", "-", "-", "-"}
		if r.Sessions > 0 {
			row = []string{r.Profile, strconv.Itoa(r.Sessions), whole(r.Reduction.Mean) + " %", whole(r.Reduction.Median) + " %", halves(r.BreakEven.Mean) + " turns", cli.Count(tidemark.Tokens(r.Context))}
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

// shownTable is a table as text and page show it.
type shownTable struct {
	title string
	rows  [][]string
}

func costOfFolder(ctx context.Context, m *cli.Main, c *studying, folder string) error {
	files, err := cli.Logs([]string{folder})
	if err != nil {
		return err
	}
	if err := c.spareReport(append(files, c.Prices)); err != nil {
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
	if c.Report != "" {
		if err := writeReport(m, c.Report, func(w io.Writer) error { return pageStudy(w, found) }); err != nil {
			return err
		}
	}
	return cli.Either(m, found, func() {
		printStudy(m, found)
	})
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

func writeReport(m *cli.Main, file string, fill func(io.Writer) error) error {
	if err := cli.ToFile(file, fill); err != nil {
		return err
	}
	m.Err.Line("wrote " + file)
	return nil
}

// spareReport refuses a report in the place of what it is of, and of what is there.
func (c *studying) spareReport(inputs []string) error {
	if err := cli.Spare("--report", c.Report, inputs); err != nil {
		return err
	}
	if c.Report != "" && !c.Force && cli.There(c.Report) {
		return cli.Advise(fmt.Errorf("%s is there already", c.Report), "choose another --report, or replace it with --force")
	}
	return nil
}

// studying is the command of that name in the benchmarks.
type studying struct {
	cli.Costing
	Report string
	Force  bool // replaces a report
}

func costStudy(ctx context.Context, m *cli.Main, c *studying) error {
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
	if info.IsDir() {
		return costOfFolder(ctx, m, c, path)
	}
	if c.Report == "" {
		return cli.Advise(fmt.Errorf("%s is one log, and no --report is wanted", path), "`tidemark cost` says what one log costs")
	}
	if err := c.spareReport([]string{path, c.Prices}); err != nil {
		return err
	}
	r, err := cli.MeasureFile(ctx, path, c.O)
	if err != nil {
		return err
	}
	return writeReport(m, c.Report, func(w io.Writer) error { return pageLog(w, costlogs.Session{Path: path, Report: r}, c.O) })
}
