//go:build !js

// Package fault kills the real binary, fills its disk, takes its bucket away and gives it damaged
// files, and then holds what must be true of what it left: every acknowledged input is there
// exactly once, no session is busy, no reset is half done, archives verify.
package fault

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// binary is the program under test, built once: with test/crash, which is in no other build.
var binary string

// scratch is a folder for what a run builds.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "tidemark-fault"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Tests wait for processes more than they work.
	flag.Parse()
	code := 1
	if err := errors.Join(flag.Set("test.parallel", "6"), build()); err == nil {
		code = m.Run()
		fmt.Printf("binary %s\nworker %s\n", &binaryTally, &workerTally)
	}
	_ = os.RemoveAll(scratch) // a folder for temporary files
	os.Exit(code)
}

func build() error {
	binary = filepath.Join(scratch, "tidemark")
	build := exec.Command("go", "build", "-tags", "fault", "-o", binary, "github.com/tidemark-ai/tidemark/cmd/tidemark")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	return build.Run()
}

// kills is how many random kills are asked for: few in a normal run, 500 in `make fault`.
func kills(t *testing.T) int {
	t.Helper()
	return killsOr(t, 12)
}

// workerKills is the same for workerd, which starts in a second: a fifth of what is asked for.
func workerKills(t *testing.T) int {
	t.Helper()
	return max(killsOr(t, 10)/5, 1)
}

// some is which of the rows of a table are played in a normal run: each fourth.
const some = 4

// asked reports whether this is `make fault`, which has the time for all.
func asked(t *testing.T) bool {
	t.Helper()
	return os.Getenv("FAULT_KILLS") != ""
}

func killsOr(t *testing.T, few int) int {
	t.Helper()
	asked := os.Getenv("FAULT_KILLS")
	if asked == "" {
		return few
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 1 {
		t.Fatalf("FAULT_KILLS=%s: want a number from 1", asked)
	}
	return n
}
