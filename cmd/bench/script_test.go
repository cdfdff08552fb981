package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

var update = flag.Bool("update", false, "write what the scripts compare with")

// TestMain makes this test binary the program, when a script calls it by its name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tidemark-bench": func() { os.Exit(program()) }})
}

// TestScripts runs the real program: see testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TIDEMARK_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "sh": shell, "claudelog": claudeLog},
	})
}

// code N PROGRAM ARGS… runs a program that must end with exit code N.
func code(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(ts.Exec(args[1], args[2:]...), &exit) {
		got = exit.ExitCode()
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// shell runs a line of shell, for pipes.
func shell(ts *testscript.TestScript, neg bool, args []string) {
	if err := ts.Exec("sh", "-c", strings.Join(args, " ")); (err != nil) != neg {
		ts.Fatalf("%v", err)
	}
}

// claudeLog FILE N writes a log of N rounds.
func claudeLog(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(tidemarktest.ClaudeLog(n)), 0o600))
}
