package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/paging"
)

// treatmentBench is the flags of `tidemark-bench treatments`.
type treatmentBench struct {
	bench.Treatments
	Treatment []string // its Names
	Window    int64
	Policy    string
	Alone     bool
}

// treatedSession is what one session came to under each treatment.
type treatedSession struct {
	Session    string          `json:"session"`
	Treatments []bench.Treated `json:"treatments"`
}

// treatmentNames are those that are compared, no proxy first.
func treatmentNames() []string { return []string{bench.Direct, "observe", "trim", "page", "page+trim"} }

func (t *treatmentBench) check() error {
	for i, name := range t.Names {
		if !slices.Contains(treatmentNames(), name) {
			return cli.Usagef("--treatment %s: want some of %v", name, treatmentNames())
		}
		if slices.Contains(t.Names[:i], name) {
			return cli.Usagef("--treatment: %s is named twice", name)
		}
	}
	if t.Window < 1000 || t.Window > 100_000_000 {
		return cli.Usagef("--window %d: want 1000 to 100000000 tokens", t.Window)
	}
	if !slices.Contains(paging.Policies(), t.Policy) {
		return cli.Usagef("--policy %s: want one of %v", t.Policy, paging.Policies())
	}
	return nil
}

func runTreatments(ctx context.Context, m *cli.Main, t *treatmentBench) (err error) {
	if err := t.check(); err != nil {
		return err
	}
	folder, remove, err := bench.Folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	t.Via, t.Told = native.Transport(), m.Telling()
	t.Door = func(_ context.Context, api string) (bench.Door, error) { return t.openDoor(folder, api) }
	var all []treatedSession
	got, err := t.Run(ctx)
	if err != nil {
		return err
	}
	all = append(all, treatedSession{fmt.Sprintf("made, %d requests", t.Requests), got})
	return printTreatments(m, all)
}

// openDoor serves a new store in a folder, in front of an API.
func (t *treatmentBench) openDoor(folder, api string) (d bench.Door, err error) {
	home, err := os.MkdirTemp(folder, "home-")
	if err != nil {
		return d, err
	}
	cfg, err := config.Parse("treatments", fmt.Appendf(nil, `{"model":{"provider":"offline"},"proxy":{"upstream":"%s","window":%d,"cooperate":%t},"compaction":{"paging":{"policy":"%s"}}}`,
		api, t.Window, !t.Alone, t.Policy))
	if err != nil {
		return d, err
	}
	n, err := node.NewNode(home, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return d, err
	}
	url, end, err := bench.Serve(n.Handler(""))
	if err != nil {
		return d, errors.Join(err, n.Close())
	}
	return bench.Door{URL: url, Close: func() error { return errors.Join(end(), n.Close()) }}, nil
}

// printTreatments prints the paper's table 5 of each session, and what else was measured.
func printTreatments(m *cli.Main, all []treatedSession) error {
	return cli.Either(m, struct {
		Sessions []treatedSession `json:"sessions"`
	}{all}, func() {
		for i, s := range all {
			if i > 0 {
				m.Out.Line("")
			}
			m.Out.Line(cli.TitleOf(s.Session))
			cli.PrintTable(m.Out, treatedRows(s.Treatments))
		}
	})
}

func treatedRows(list []bench.Treated) [][]string {
	tokens := func(n tidemark.Tokens) string { return strconv.FormatInt(int64(n), 10) }
	head := []string{"METRIC"}
	for _, t := range list {
		head = append(head, t.Treatment)
	}
	rows := [][]string{head}
	add := func(name string, of func(bench.Treated) string) {
		row := []string{name}
		for _, t := range list {
			row = append(row, of(t))
		}
		rows = append(rows, row)
	}
	add("API calls", func(t bench.Treated) string { return strconv.Itoa(t.Calls) })
	add("effective input tokens", func(t bench.Treated) string { return tokens(t.Effective) })
	add("cache read tokens", func(t bench.Treated) string { return tokens(t.Read) })
	add("task completed", func(t bench.Treated) string {
		if t.Completed {
			return "yes"
		}
		return fmt.Sprintf("no, %d of %d facts", t.Found, t.Facts)
	})
	add("token reduction", func(t bench.Treated) string { return cli.InPercent(t.Reduction) })
	add("tokens a call", func(t bench.Treated) string { return cli.FixedPoint(t.PerCall, 0) })
	add("cache read share", func(t bench.Treated) string { return cli.InPercent(t.Share) })
	add("cost", func(t bench.Treated) string { return cli.FixedPoint(t.Cost, 0) })
	add("cost by the first", func(t bench.Treated) string { return cli.FixedPoint(t.CostBy, 3) })
	add("faults", func(t bench.Treated) string { return strconv.Itoa(t.Missing) })
	add("  had back by memory_fault", func(t bench.Treated) string { return strconv.Itoa(t.Restored) })
	add("  read again", func(t bench.Treated) string { return strconv.Itoa(t.Reread) })
	add("releases by the model", func(t bench.Treated) string { return strconv.Itoa(t.Released) })
	add("answers that a client must not see so", func(t bench.Treated) string { return strconv.Itoa(t.Leaks) })
	add("the client sees what the model said", func(t bench.Treated) string { return map[bool]string{true: "yes", false: "no"}[t.Same] })
	add("seconds", func(t bench.Treated) string { return (time.Duration(t.Seconds*1000) * time.Millisecond).String() })
	return rows
}

func benchTreatments(ctx context.Context, m *cli.Main, t *treatmentBench) error {
	t.Names = t.Treatment
	return refused(m, runTreatments(ctx, m, t))
}
