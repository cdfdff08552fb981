package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// TestReplayStops: a signal, which ends the context, ends a replay.
func TestReplayStops(t *testing.T) {
	file := filepath.Join(t.TempDir(), "one.jsonl")
	if err := os.WriteFile(file, []byte(`{"session":"s","steps":[{"append":[{"role":"user","content":"go"}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"replay", file}, {"replay", "--profile", "all"}} {
		ctx, cancel := context.WithCancel(t.Context())
		run := func() (int, string) {
			var out, told bytes.Buffer
			m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &told}
			return m.Run(ctx, benchCommands(), args), told.String()
		}
		if code, told := run(); code != cli.ExitOK {
			t.Fatalf("%v: exit %d: %s", args, code, told)
		}
		cancel()
		if code, told := run(); code != cli.ExitFailed || !strings.Contains(told, "nothing is lost") {
			t.Errorf("%v when it was stopped: exit %d: %s", args, code, told)
		}
	}
}

// TestSessionNames names sessions of logs by their files.
func TestSessionNames(t *testing.T) {
	for _, c := range []struct {
		what  string
		files []string
		want  map[string]string
	}{
		{"the file without its end", []string{"/logs/a/1f2e.jsonl", "b.jsonl"}, map[string]string{"/logs/a/1f2e.jsonl": "1f2e", "b.jsonl": "b"}},
		{"two folders", []string{"p/a/one.jsonl", "p/b/one.jsonl", "p/b/two.jsonl"},
			map[string]string{"p/a/one.jsonl": "a/one", "p/b/one.jsonl": "b/one", "p/b/two.jsonl": "two"}},
		{"folders of one name", []string{"p/a/one.jsonl", "q/a/one.jsonl"}, map[string]string{"p/a/one.jsonl": "p/a/one", "q/a/one.jsonl": "q/a/one"}},
		{"one path ends as the other", []string{"one.jsonl", "a/one.jsonl"}, map[string]string{"one.jsonl": "one", "a/one.jsonl": "a/one"}},
		{"the same file", []string{"a/one.jsonl", "./a/one.jsonl"}, map[string]string{"a/one.jsonl": "one"}},
		{"other in the extension", []string{"a/one.jsonl", "a/one.log"}, map[string]string{"a/one.jsonl": "a/one", "a/one.log": "a/one.log"}},
		{"nothing but an extension", []string{".jsonl"}, map[string]string{".jsonl": ".jsonl"}},
	} {
		got := sessionNames(c.files)
		if len(got) != len(c.want) {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
		for file, want := range c.want {
			if got[file] != want {
				t.Errorf("%s: %s is named %q, want %q", c.what, file, got[file], want)
			}
		}
	}
}

// TestCents rounds what is printed, not what is summed up.
func TestCents(t *testing.T) {
	for cost, want := range map[float64]float64{4769753.550000001: 4769753.55, .1 + .2: .3, 0: 0} {
		if got := cents(cost); got != want {
			t.Errorf("%v is printed as %v, want %v", cost, got, want)
		}
	}
}
