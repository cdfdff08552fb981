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

// TestEpisodesBench: a simulation prints the fields that it is asked for, and figures that make sense.
func TestEpisodesBench(t *testing.T) {
	var sim struct {
		Turns, Tokens int64
		Active        int64   `json:"max_active"`
		Share         float64 `json:"hit_share"`
		Ratio         float64 `json:"cost_ratio"`
	}
	args := []string{"--simulate", "pairs", "--tasks", "20"}
	code, out, told := episodesBench(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &sim); code != cli.ExitOK || err != nil {
		t.Fatalf("exit %d, %v, %s", code, err, told)
	}
	if code, out, told = episodesBench(t, args...); code != cli.ExitOK || len(strings.Split(out, "\n")) < 3 {
		t.Errorf("exit %d, %s%s", code, out, told)
	}
	if sim.Turns != 20*14+1 || sim.Tokens < 10_000_000 || sim.Active > 80_000 || sim.Share < .9 || sim.Share > 1 || sim.Ratio <= 0 || sim.Ratio >= 1 {
		t.Errorf("simulation %+v", sim)
	}
}

// TestEpisodesBenchFlags: what cannot be run is said at once, with what can.
func TestEpisodesBenchFlags(t *testing.T) {
	for _, c := range []struct{ args, told string }{
		{"--simulate papers", "paper pairs"},
		{"--simulate=", "paper pairs"},
		{"--simulate paper --tasks 1", "--tasks 1"},
		{"--simulate pairs --low-water 101", "10 to 100"},
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
