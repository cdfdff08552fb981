package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// TestTreatmentsPlot holds that charts are well formed, and bounded, whatever a session is named.
func TestTreatmentsPlot(t *testing.T) {
	long := bench.Treated{Treatment: "page", Completed: true}
	for i := range 5 * maxPlotted {
		long.Series = append(long.Series, bench.TreatedCall{Thread: []string{"main", "sub 1"}[i%2], Tokens: 100, Read: 90, Cost: 12, Missing: i / 100})
	}
	if c := curveOf(long); len(c.tokens) > maxPlotted || len(c.tokens) < maxPlotted/2 || c.share[len(c.share)-1] != 90 {
		t.Errorf("%d columns, a share of %v", len(c.tokens), c.share[len(c.share)-1])
	}
	var b strings.Builder
	p := treatedPlot{{"<b>&\x00\"", []bench.Treated{long, {Treatment: bench.Direct}}}, {"", nil}}
	if err := p.draw(&b); err != nil {
		t.Fatal(err)
	}
	for _, chart := range strings.SplitAfter(b.String(), "</svg>") {
		at := strings.Index(chart, "<svg")
		if at < 0 {
			continue
		}
		d := xml.NewDecoder(strings.NewReader(chart[at:]))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in %.300s", err, chart[at:])
			}
		}
	}
}

// TestTreatmentsFlags: what cannot be run is said at once.
func TestTreatmentsFlags(t *testing.T) {
	for _, args := range [][]string{{"--treatment", "all"}, {"--treatment", "page,page"}, {"--window", "1"}, {"--policy", "none"}, {"--requests", "1"}, {"--bytes", "1"}, {"none.jsonl"}} {
		var told bytes.Buffer
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &told, Environ: []string{"TIDEMARK_HOME=" + t.TempDir()}}
		if code := m.Run(t.Context(), benchCommands(), append([]string{"treatments"}, args...)); code == 0 || told.Len() == 0 {
			t.Errorf("%q: exit %d, %q", args, code, told.String())
		}
	}
}
