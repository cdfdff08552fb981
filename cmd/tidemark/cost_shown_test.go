package main

import (
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

func TestDollars(t *testing.T) {
	for v, want := range map[float64]string{0: "$0.0000", 0.00012: "$0.00012", 0.525: "$0.5250", -0.0241: "$-0.0241", 12.345: "$12.35"} {
		if got := cli.Dollars(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
