package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// episodesBench runs `tidemark-bench episodes`.
func episodesBench(t *testing.T, args ...string) (code int, out, told string) {
	t.Helper()
	var o, e bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Environ: []string{"TIDEMARK_HOME=" + t.TempDir()}}
	code = m.Run(t.Context(), benchCommands(), append([]string{"episodes"}, args...))
	return code, o.String(), e.String()
}

// TestEpisodesBench: each measurement prints the fields that it is asked for, and figures that make sense.
func TestEpisodesBench(t *testing.T) {
	var sim struct {
		Turns, Tokens int64
		Active        int64   `json:"max_active"`
		Share         float64 `json:"hit_share"`
		Ratio         float64 `json:"cost_ratio"`
	}
	var budgets struct {
		Budgets []struct {
			Name      string
			Budget    int64
			Cost      float64
			Share     float64 `json:"hit_share"`
			Again     *int    `json:"re_explorations"`
			Uncapped  float64 `json:"cost_vs_uncapped"`
			Summary   float64 `json:"cost_vs_summary"`
			Turns     int
			MaxActive int64 `json:"max_active"`
		}
	}
	for _, c := range []struct {
		args []string
		into any
	}{{[]string{"--simulate", "pairs", "--tasks", "20"}, &sim}, {[]string{"--budgets", "40k,80000", "--tasks", "12"}, &budgets}} {
		code, out, told := episodesBench(t, append(c.args, "--json")...)
		if err := json.Unmarshal([]byte(out), c.into); code != cli.ExitOK || err != nil {
			t.Fatalf("%q: exit %d, %v, %s", c.args, code, err, told)
		}
		if code, out, told = episodesBench(t, c.args...); code != cli.ExitOK || len(strings.Split(out, "\n")) < 3 {
			t.Errorf("%q: exit %d, %s%s", c.args, code, out, told)
		}
	}
	if sim.Turns != 20*14+1 || sim.Tokens < 10_000_000 || sim.Active > 80_000 || sim.Share < .9 || sim.Share > 1 || sim.Ratio <= 0 || sim.Ratio >= 1 {
		t.Errorf("simulation %+v", sim)
	}
	if len(budgets.Budgets) != 2 || budgets.Budgets[0].Budget != 40_000 || budgets.Budgets[1].Name != "80k" {
		t.Fatalf("budgets %+v", budgets)
	}
	for _, b := range budgets.Budgets {
		if b.Again == nil || b.Turns < 12*8 || b.Share < .5 || b.Uncapped <= 0 || b.Uncapped >= 1 || b.Summary <= 0 {
			t.Errorf("budget %+v", b)
		}
	}
}

// TestEpisodesBenchFlags: what cannot be run is said at once, with what can.
func TestEpisodesBenchFlags(t *testing.T) {
	for _, c := range []struct{ args, told string }{
		{"--simulate papers", "paper pairs"},
		{"--simulate=", "paper pairs"},
		{"--simulate paper --tasks 1", "--tasks 1"},
		{"--simulate paper --budgets 50k", "name one"},
		{"--simulate pairs --low-water 101", "10 to 100"},
		{"--budgets 80k,80000", "twice"},
		{"--budgets 80k,much", "\"much\" is no budget: want 20000 to 2000000 tokens, such as 50k,"},
		{"--budgets 80,000", "write 80000\n"},
		{"--budgets 50k,80,000,120k", "80,000 reads as two"},
		{"--budgets 5k", "5k is too little to play the session: want 20000 to 2000000 tokens, such as 50k"},
		{"--budgets 5%", "5% is too little"},
		{"--budgets 3000k", "3000k is too much"},
		{"--budgets 0", "such as 50k"},
		{"--budgets=", "--budgets"},
		{"--seed -1", "--seed"},
		{"80k", "episodes"},
	} {
		code, out, told := episodesBench(t, strings.Fields(c.args)...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(told, c.told) {
			t.Errorf("%s: exit %d, %s%s", c.args, code, out, told)
		}
	}
	if code, out, _ := episodesBench(t, "--help"); code != cli.ExitOK || !strings.Contains(out, "--simulate pairs") {
		t.Errorf("help: exit %d, %s", code, out)
	}
}
