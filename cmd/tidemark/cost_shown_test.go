package main

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
)

func TestDollars(t *testing.T) {
	for v, want := range map[float64]string{0: "$0.0000", 0.00012: "$0.00012", 0.525: "$0.5250", -0.0241: "$-0.0241", 12.345: "$12.35"} {
		if got := cli.Dollars(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestVerdictsInColour(t *testing.T) {
	for _, tc := range []struct {
		even  cost.Turns
		color string
	}{{5, green}, {6, yellow}, {15, yellow}, {16, red}, {cost.Never, red}} {
		var b strings.Builder
		m := &cli.Main{Terminal: true, Environ: []string{"TERM=xterm"}}
		m.Out = &cli.Output{W: &b}
		r := costlogs.Report{}
		r.Live.BreakEven = tc.even
		printVerdict(m, r)
		if !strings.HasPrefix(b.String(), "\x1b["+tc.color+"m") {
			t.Errorf("%s: %q", tc.even, b.String())
		}
	}
}
