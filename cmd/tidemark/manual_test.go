package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestManual: docs/cli.md is what the table of commands says.
func TestManual(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "cli.md")
	want := commands().Manual("# Command line\n\nEach command of `tidemark` with its flags, made of cmd/tidemark/commands.txt: `go test ./cmd/tidemark -run TestManual -update` writes this page.\n" +
		"All take `--home`, `--config` and `--server`. A mistake in a call is exit code 2, a failure 1, with what to do on standard error.\n" +
		"Behind each command stands what it does; a line that begins with $ is an example, and a value in brackets is what a flag is when it is not given.\n")
	if *update {
		if err := os.WriteFile(page, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the table says: run this test with -update (%v)", page, err)
	}
}

// TestTable: each command of the table that holds no others is carried out by something, and nothing else is.
func TestTable(t *testing.T) {
	for _, missing := range commands().Mistakes() {
		t.Error(missing)
	}
}
