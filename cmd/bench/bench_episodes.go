package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/episodes"
)

// episodeBench is the flags of `tidemark-bench episodes`.
type episodeBench struct {
	Simulate string
	Budgets  []string
	LowWater int
	Tasks    int
	Seed     uint64
}

// maxBudgets bounds a comparison: each budget plays the session twice.
const maxBudgets = 12

// check refuses what cannot be run, and returns the budgets.
func (b *episodeBench) check(given func(string) bool) (list []episodes.Budget, err error) {
	switch {
	case given("simulate") && given("budgets"):
		return nil, cli.Usagef("--simulate and --budgets are two measurements: name one of them")
	case !slices.Contains(bench.Simulations, b.Simulate):
		return nil, cli.Usagef("--simulate %q: want one of %v", b.Simulate, bench.Simulations)
	case b.LowWater < 10 || b.LowWater > 100:
		return nil, cli.Usagef("--low-water %d: want 10 to 100 percent of the budget", b.LowWater)
	case given("tasks") && (b.Tasks < 2 || b.Tasks > bench.MaxTasks):
		return nil, cli.Usagef("--tasks %d: want 2 to %d", b.Tasks, bench.MaxTasks)
	case given("budgets") && len(b.Budgets) == 0:
		return nil, cli.Usagef("--budgets is empty: name some, as in --budgets 50k,80k,120k")
	case len(b.Budgets) > maxBudgets:
		return nil, cli.Usagef("--budgets: %d are named, at most %d", len(b.Budgets), maxBudgets)
	}
	return readBudgets(b.Budgets)
}

// readBudgets reads the budgets of a comparison, and refuses those that its session cannot be played under.
func readBudgets(texts []string) (list []episodes.Budget, err error) {
	bounds := fmt.Sprintf("want %d to %d tokens, such as 50k, or a share of a window of 200,000, such as 40%%", bench.LeastBudget, bench.MostBudget)
	for i, text := range texts {
		if i+1 < len(texts) && ofThousands(text, texts[i+1]) {
			return nil, cli.Usagef("--budgets: %s,%s reads as two budgets, since a comma stands between them: write %[1]s%[2]s", text, texts[i+1])
		}
		one, err := episodes.ParseBudget(text)
		if err != nil {
			return nil, cli.Usagef("--budgets: %q is no budget: %s", text, bounds)
		}
		n := one.Of(0)
		switch {
		case n < bench.LeastBudget:
			return nil, cli.Usagef("--budgets: %s is too little to play the session: %s", text, bounds)
		case n > bench.MostBudget:
			return nil, cli.Usagef("--budgets: %s is too much to play the session: %s", text, bounds)
		case slices.Contains(list, one):
			return nil, cli.Usagef("--budgets: %s is named twice", text)
		}
		list = append(list, one)
	}
	return list, nil
}

// ofThousands reports whether two budgets look like the parts of one that was written with a comma.
func ofThousands(a, b string) bool {
	const digits = 3
	decimal := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return decimal(a) && len(a) <= digits && decimal(b) && len(b) == digits
}

func runEpisodes(m *cli.Main, b *episodeBench, given func(string) bool) error {
	list, err := b.check(given)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		t, err := bench.Budgets{Budgets: list, Seed: b.Seed, Low: b.LowWater, Tasks: b.Tasks, Told: m.Telling()}.Run()
		if err != nil {
			return err
		}
		return printBudgets(m, t)
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

func printBudgets(m *cli.Main, t bench.BudgetTable) error {
	return cli.Either(m, t, func() {
		rows := [][]string{{"BUDGET", "CALLS", "LARGEST", "HITS", "COST", "BY UNCAPPED", "BY SUMMARY", "EXPLORED AGAIN", "RECALL: CALLS", "READ BACK", "COST", "BY SUMMARY"}}
		for _, b := range append(slices.Clone(t.Budgets), t.Summary, t.Uncapped) {
			row := []string{strings.ReplaceAll(b.Name, "none", "uncapped"), strconv.Itoa(b.Turns), tokensShown(b.MaxActive), cli.InPercent(b.HitShare), cli.FixedPoint(b.Cost, 0),
				cli.FixedPoint(b.VsUncapped, 3), cli.FixedPoint(b.VsSummary, 3), strconv.Itoa(b.Again)}
			if r := b.Recall; r != nil {
				row = append(row, strconv.Itoa(r.Turns), strconv.Itoa(r.Recalls), cli.FixedPoint(r.Cost, 0), cli.FixedPoint(r.VsSummary, 3))
			} else {
				row = append(row, "-", "-", "-", "-")
			}
			rows = append(rows, row)
		}
		cli.PrintTable(m.Out, rows)
	})
}

func benchEpisodes(_ context.Context, m *cli.Main, b *episodeBench) error {
	return refused(m, runEpisodes(m, b, m.Changed))
}
