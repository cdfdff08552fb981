//go:build !js

// Package e2e is one set of end-to-end tests for every host: the handler within this process, the
// native binary, and the Worker in workerd. Each test is written once and runs against each target as a subtest of its name; -targets
// chooses. What a target answers is held against the same words (testdata), byte for byte where ids
// and times are set apart.
package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

var (
	// names are the targets in the order of their reports.
	names = []string{"in-process", "native", "workerd"}

	targetsFlag = flag.String("targets", strings.Join(names, ","), "targets to run, separated by commas")
	workerFlag  = flag.String("worker", "", "folder of the built Worker; empty builds one")
	updateFlag  = flag.Bool("update", false, "write testdata anew")
)

// patience is how long anything may take that should take a moment; the machine may be busy.
const patience = tidemarktest.Patience

// scratch is a folder for all that a run builds and leaves.
var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	code := 1
	var err error
	if scratch, err = os.MkdirTemp("", "tidemark-e2e"); err == nil {
		// Tests wait for servers more than they work.
		if err = flag.Set("test.parallel", "12"); err == nil {
			code = m.Run()
			if err = closeShared(); err != nil {
				code = 1
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(scratch) // a folder for temporary files
	os.Exit(code)
}

// chosen are the targets of this run for a test.
func chosen(t *testing.T) []string {
	t.Helper()
	out := strings.Split(*targetsFlag, ",")
	for _, name := range out {
		if !slices.Contains(names, name) {
			t.Fatalf("-targets %s: want some of %s", *targetsFlag, strings.Join(names, ","))
		}
	}
	return out
}

// each runs a test against the server that all tests of a target share.
func each(t *testing.T, f func(t *testing.T, s *site)) {
	t.Helper()
	t.Parallel()
	for _, name := range chosen(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, sharedSite(t, name))
		})
	}
}

// eachOwn runs a test against a server of its own, with variables beside the common ones.
func eachOwn(t *testing.T, env []string, f func(t *testing.T, s *site)) {
	t.Helper()
	t.Parallel()
	for _, name := range chosen(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(name, filepath.Join(t.TempDir(), "disk"), env)
			t.Cleanup(func() { report(t, s.close()) })
			if err := s.run(); err != nil {
				t.Fatal(err)
			}
			f(t, s)
		})
	}
}

// shared are the servers that tests share, one a target.
var shared = struct {
	sync.Mutex // guards sites; held while one starts
	sites      map[string]*site
	failed     map[string]error
}{sites: map[string]*site{}, failed: map[string]error{}}

func sharedSite(t *testing.T, name string) *site {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.failed[name] == nil && shared.sites[name] == nil {
		s := newSite(name, filepath.Join(scratch, name), nil)
		shared.sites[name], shared.failed[name] = s, s.run()
	}
	if err := shared.failed[name]; err != nil {
		t.Fatal(err)
	}
	return shared.sites[name]
}

func closeShared() error {
	shared.Lock()
	defer shared.Unlock()
	var errs []error
	for name, s := range shared.sites {
		if err := s.close(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func report(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
