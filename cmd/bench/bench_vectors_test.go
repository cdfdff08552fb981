package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// TestVectorsWithoutSetting: a measurement with vectors that nobody makes says what to set.
func TestVectorsWithoutSetting(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "1.json")
	if err := os.WriteFile(file, []byte(`{"session_1_date_time":"1:56 pm on 8 May, 2023","session_1":[{"speaker":"A","dia_id":"D1:1","text":"Hello"}],"qa":[{"question":"Who?","answer":"A","evidence":["D1:1"],"category":1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, told bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &told, Environ: []string{"TIDEMARK_HOME=" + dir}}
	if code := m.Run(t.Context(), benchCommands(), []string{"locomo", file, "--vectors"}); code != cli.ExitFailed || !strings.Contains(told.String(), "what to do: set recall.embeddings") || strings.Contains(told.String(), ": invalid") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), told.String())
	}
}
