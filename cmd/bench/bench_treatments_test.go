package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

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
