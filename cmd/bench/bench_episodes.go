package main

import (
	"context"
	"slices"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// episodeBench is the flags of `tidemark-bench episodes`.
type episodeBench struct {
	Simulate string
	LowWater int
	Tasks    int
	Seed     uint64
}

// check refuses what cannot be run.
func (b *episodeBench) check(given func(string) bool) error {
	switch {
	case !slices.Contains(bench.Simulations, b.Simulate):
		return cli.Usagef("--simulate %q: want one of %v", b.Simulate, bench.Simulations)
	case b.LowWater < 10 || b.LowWater > 100:
		return cli.Usagef("--low-water %d: want 10 to 100 percent of the budget", b.LowWater)
	case given("tasks") && (b.Tasks < 2 || b.Tasks > bench.MaxTasks):
		return cli.Usagef("--tasks %d: want 2 to %d", b.Tasks, bench.MaxTasks)
	}
	return nil
}

func runEpisodes(m *cli.Main, b *episodeBench, given func(string) bool) error {
	if err := b.check(given); err != nil {
		return err
	}
	s, err := bench.Simulate(b.Simulate, b.Tasks, b.Seed, b.LowWater, m.Telling())
	if err != nil {
		return err
	}
	return printSimulated(m, s)
}

// tokensShown writes tokens as a decimal number.
func tokensShown(n tidemark.Tokens) string { return strconv.FormatInt(int64(n), 10) }

func printSimulated(m *cli.Main, s bench.Simulated) error {
	if m.JSON {
		return m.PrintJSON(s)
	}
	m.Out.Printf("%s: %d tasks, %d calls, a log of %d tokens; budget %d, low water %d %%; largest context %d\n", s.Simulated, s.Tasks, s.Turns, s.Log, s.Budget,
		s.LowWater, s.MaxActive)
	row := func(name string, b bench.Baseline) []string {
		return []string{name, tokensShown(b.Tokens), cli.InPercent(b.HitShare), strconv.Itoa(b.Breaks), cli.FixedPoint(b.Cost, 0), cli.FixedPoint(s.Cost/max(b.Cost, 1), 3)}
	}
	cli.PrintTable(m.Out, [][]string{{"WAY", "INPUT TOKENS", "CACHE HITS", "BREAKS", "COST", "OURS BY IT"},
		row("kept, with a low-water mark", bench.Baseline{Cost: s.Cost, HitShare: s.HitShare, Breaks: s.Breaks, Tokens: s.Tokens}),
		row("kept, down to the budget", s.Kept), row("decided anew before each call", s.Anew)})
	m.Out.Printf("%d views broke a rule of the API; %s MB of heap in use at most\n", s.Failures, cli.FixedPoint(float64(s.PeakHeap)/(1<<20), 1))
	return nil
}

func benchEpisodes(_ context.Context, m *cli.Main, b *episodeBench) error {
	return refused(m, runEpisodes(m, b, m.Changed))
}
