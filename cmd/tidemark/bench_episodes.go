package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/episodes"
)

// episodeBench is the flags of `tidemark bench episodes`.
type episodeBench struct {
	simulate string
	budgets  []string
	low      int
	tasks    int
	seed     uint64
}

func (m *Main) benchEpisodes() *cobra.Command {
	b := &episodeBench{simulate: bench.Simulations[0], low: episodes.DefaultLowWater, seed: 1}
	c := &cobra.Command{Use: "episodes", Short: "Simulate what the eviction of episodes costs", Args: cobra.NoArgs,
		Long: `Simulate long sessions of a coding agent that marks its work (CWL). No model is asked,
nothing leaves this machine.

--simulate paper, which is the default, plays one session of 89 tasks, over 80 million tokens of input in all;
--simulate pairs 60 explorations with an action each, 841 calls. Each call of the model
is counted by what its request shares with the one before: shared input costs 0.1 of
the list price, other input 1.25, as with a prompt cache. cost_ratio is that cost by
the one of deciding anew before each call, of the whole history, what leaves down to
the budget, as the reference of the paper does; cost_ratio_kept by the one of keeping
the view but without a low-water mark.

--budgets plays the session of the paper under each budget, with an agent that now and
then needs what an earlier exploration found. Where that is gone from what it is sent,
it explores again or, in the columns of recall, reads it back. It is compared with a
window that holds everything and with summaries in a window of 200,000 tokens.`,
		Example: `  tidemark bench episodes --simulate paper
  tidemark bench episodes --budgets 50k,80k,120k --seed 2`,
		RunE: func(cmd *cobra.Command, _ []string) error { return refused(cmd, m.runEpisodes(b, cmd.Flags().Changed)) }}
	f := c.Flags()
	f.StringVar(&b.simulate, "simulate", b.simulate, fmt.Sprintf("session to simulate: one of %v", bench.Simulations))
	f.StringSliceVar(&b.budgets, "budgets", nil, "budgets to compare, as 50000, 50k or 40% of a window of 200,000")
	f.IntVar(&b.low, "low-water", b.low, "percent of the budget down to which episodes leave, of the simulations")
	f.IntVar(&b.tasks, "tasks", 0, fmt.Sprintf("tasks of a simulated session, 2 to %d (default 89 of paper and --budgets, 60 of pairs)", bench.MaxTasks))
	f.Uint64Var(&b.seed, "seed", b.seed, "the same seed makes the same history and session")
	return m.jsonFlag(c)
}

// maxBudgets bounds a comparison: each budget plays the session twice.
const maxBudgets = 12

// check refuses what cannot be run, and returns the budgets.
func (b *episodeBench) check(given func(string) bool) (list []episodes.Budget, err error) {
	switch {
	case given("simulate") && given("budgets"):
		return nil, usagef("--simulate and --budgets are two measurements: name one of them")
	case !slices.Contains(bench.Simulations, b.simulate):
		return nil, usagef("--simulate %q: want one of %v", b.simulate, bench.Simulations)
	case b.low < 10 || b.low > 100:
		return nil, usagef("--low-water %d: want 10 to 100 percent of the budget", b.low)
	case given("tasks") && (b.tasks < 2 || b.tasks > bench.MaxTasks):
		return nil, usagef("--tasks %d: want 2 to %d", b.tasks, bench.MaxTasks)
	case given("budgets") && len(b.budgets) == 0:
		return nil, usagef("--budgets is empty: name some, as in --budgets 50k,80k,120k")
	case len(b.budgets) > maxBudgets:
		return nil, usagef("--budgets: %d are named, at most %d", len(b.budgets), maxBudgets)
	}
	return readBudgets(b.budgets)
}

// readBudgets reads the budgets of a comparison, and refuses those that its session cannot be played under.
func readBudgets(texts []string) (list []episodes.Budget, err error) {
	bounds := fmt.Sprintf("want %d to %d tokens, such as 50k, or a share of a window of 200,000, such as 40%%", bench.LeastBudget, bench.MostBudget)
	for i, text := range texts {
		if i+1 < len(texts) && ofThousands(text, texts[i+1]) {
			return nil, usagef("--budgets: %s,%s reads as two budgets, since a comma stands between them: write %[1]s%[2]s", text, texts[i+1])
		}
		one, err := episodes.ParseBudget(text)
		if err != nil {
			return nil, usagef("--budgets: %q is no budget: %s", text, bounds)
		}
		n := one.Of(0)
		switch {
		case n < bench.LeastBudget:
			return nil, usagef("--budgets: %s is too little to play the session: %s", text, bounds)
		case n > bench.MostBudget:
			return nil, usagef("--budgets: %s is too much to play the session: %s", text, bounds)
		case slices.Contains(list, one):
			return nil, usagef("--budgets: %s is named twice", text)
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

func (m *Main) runEpisodes(b *episodeBench, given func(string) bool) error {
	list, err := b.check(given)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		t, err := bench.Budgets{Budgets: list, Seed: b.seed, Low: b.low, Tasks: b.tasks, Told: m.telling()}.Run()
		if err != nil {
			return err
		}
		return m.printBudgets(t)
	}
	s, err := bench.Simulate(b.simulate, b.tasks, b.seed, b.low, m.telling())
	if err != nil {
		return err
	}
	return m.printSimulated(s)
}

// tokensShown writes tokens as a decimal number.
func tokensShown(n tidemark.Tokens) string { return strconv.FormatInt(int64(n), 10) }

func (m *Main) printSimulated(s bench.Simulated) error {
	if m.json {
		return m.printJSON(s)
	}
	m.out.printf("%s: %d tasks, %d calls, a log of %d tokens; budget %d, low water %d %%; largest context %d\n", s.Simulated, s.Tasks, s.Turns, s.Log, s.Budget,
		s.LowWater, s.MaxActive)
	row := func(name string, b bench.Baseline) []string {
		return []string{name, tokensShown(b.Tokens), inPercent(b.HitShare), strconv.Itoa(b.Breaks), fixedPoint(b.Cost, 0), fixedPoint(s.Cost/max(b.Cost, 1), 3)}
	}
	table(m.out, [][]string{{"WAY", "INPUT TOKENS", "CACHE HITS", "BREAKS", "COST", "OURS BY IT"},
		row("kept, with a low-water mark", bench.Baseline{Cost: s.Cost, HitShare: s.HitShare, Breaks: s.Breaks, Tokens: s.Tokens}),
		row("kept, down to the budget", s.Kept), row("decided anew before each call", s.Anew)})
	m.out.printf("%d views broke a rule of the API; %s MB of heap in use at most\n", s.Failures, fixedPoint(float64(s.PeakHeap)/(1<<20), 1))
	return nil
}

func (m *Main) printBudgets(t bench.BudgetTable) error {
	if m.json {
		return m.printJSON(t)
	}
	rows := [][]string{{"BUDGET", "CALLS", "LARGEST", "HITS", "COST", "BY UNCAPPED", "BY SUMMARY", "EXPLORED AGAIN", "RECALL: CALLS", "READ BACK", "COST", "BY SUMMARY"}}
	for _, b := range append(slices.Clone(t.Budgets), t.Summary, t.Uncapped) {
		row := []string{strings.ReplaceAll(b.Name, "none", "uncapped"), strconv.Itoa(b.Turns), tokensShown(b.MaxActive), inPercent(b.HitShare), fixedPoint(b.Cost, 0),
			fixedPoint(b.VsUncapped, 3), fixedPoint(b.VsSummary, 3), strconv.Itoa(b.Again)}
		if r := b.Recall; r != nil {
			row = append(row, strconv.Itoa(r.Turns), strconv.Itoa(r.Recalls), fixedPoint(r.Cost, 0), fixedPoint(r.VsSummary, 3))
		} else {
			row = append(row, "-", "-", "-", "-")
		}
		rows = append(rows, row)
	}
	table(m.out, rows)
	return nil
}
