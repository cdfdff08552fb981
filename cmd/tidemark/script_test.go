package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/trim/logtest"
)

var update = flag.Bool("update", false, "write what the scripts compare with")

// TestMain makes this test binary the program, when a script calls it by its name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tidemark": func() { os.Exit(program()) }, "client": func() { os.Exit(proxiedClient()) }})
}

// TestScripts runs the real program: see testdata/script. Each script's first lines say which rule
// it guards.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TIDEMARK_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("HOME", e.WorkDir)
			talk := strings.Join(demoLines(), "\n") + "\n"
			return os.WriteFile(filepath.Join(e.WorkDir, "talk.txt"), []byte(talk), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "fetch": fetch, "up": up, "name": name, "gunzip": gunzip, "claudelog": claudeLog, "sh": shell, "until": until, "upstream": upstream, "sessionlog": sessionLog,
		},
	})
}

// code N PROGRAM ARGS… runs a program that must end with exit code N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || (got == want) == neg {
		ts.Fatalf("exit code %d, want %s (not: %t)", got, args[0], neg)
	}
}

// fetch METHOD PATH [BODY] calls the server of the home and prints its answer. Origin=URL instead of a
// body makes it the call of that page.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	s := cli.ReadServerFile(ts.Getenv("TIDEMARK_HOME"))
	req, err := http.NewRequestWithContext(context.Background(), args[0], s.URL+args[1], strings.NewReader(strings.Join(args[2:], " ")))
	ts.Check(err)
	if token := ts.Getenv("TIDEMARK_TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if page, ok := strings.CutPrefix(strings.Join(args[2:], " "), "Origin="); ok {
		req.Header.Set("Origin", page)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if (resp.StatusCode >= 300) != neg {
		ts.Fatalf("%s %s: %s", args[0], args[1], resp.Status)
	}
}

// until PATTERN PROGRAM ARGS… runs a program again until what it prints has the pattern: the directory is told
// behind an answer, not before it.
func until(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(tidemarktest.Patience); ; <-time.After(20 * time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("it never printed %s", args[0])
		}
	}
}

// up waits until the server of the home answers.
func up(ts *testscript.TestScript, _ bool, _ []string) {
	deadline := time.Now().Add(tidemarktest.Patience)
	for time.Now().Before(deadline) {
		if s := cli.ReadServerFile(ts.Getenv("TIDEMARK_HOME")); s.URL != "" {
			c := (&cli.Main{}).Remote(s.URL)
			if c.Get(context.Background(), "/healthz", nil) == nil {
				return
			}
		}
		<-time.After(20 * time.Millisecond) // a process starts; nothing tells us when
	}
	ts.Fatalf("no server came up")
}

// name VARIABLE PATTERN sets a variable to the one file that a pattern names.
func name(ts *testscript.TestScript, _ bool, args []string) {
	found, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(found) == 0 {
		ts.Fatalf("no file %s", args[1])
	}
	ts.Setenv(args[0], found[0])
}

// gunzip FILE prints what zcat would.
func gunzip(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("zcat", args...))
}

// shell runs a line of shell, for pipes.
func shell(ts *testscript.TestScript, neg bool, args []string) {
	if err := ts.Exec("sh", "-c", strings.Join(args, " ")); (err != nil) != neg {
		ts.Fatalf("%v", err)
	}
}

// sessionLog FILE BYTES writes a log with all that real ones have, of that length and a little more.
func sessionLog(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	ts.Check(err)
	ts.Check(errors.Join(logtest.Write(f, logtest.Options{Seed: 1, Bytes: n, Hostile: true}), f.Close()))
}

// claudeLog FILE N writes a log of N rounds.
func claudeLog(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(tidemarktest.ClaudeLog(n)), 0o600))
}
