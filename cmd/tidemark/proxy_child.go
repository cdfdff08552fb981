package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// proxyVars are the variables by which clients find the model, as name=value.
func proxyVars(base string) []string {
	return []string{cli.AnthropicBase + "=" + base, cli.OpenAIBase + "=" + base + "/v1"}
}

// tokenVariable is where the token of a server stands; see package config.
const tokenVariable = "TIDEMARK_TOKEN"

// childEnv is an environment with the variables of the proxy, and without the token of the server: the door adds that. Where it names an HTTP proxy, this
// machine is left out of that: the door is not to be reached from elsewhere.
func childEnv(environ []string, base string) []string {
	vars := proxyVars(base)
	if httpProxy(environ) {
		for _, name := range []string{"NO_PROXY", "no_proxy"} {
			vars = append(vars, name+"="+strings.TrimPrefix(lookup(environ, name)+",127.0.0.1,localhost", ","))
		}
	}
	out := make([]string, 0, len(environ)+len(vars))
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if lookup(vars, name) == "" && name != tokenVariable {
			out = append(out, v)
		}
	}
	return append(out, vars...)
}

func httpProxy(environ []string) bool {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if lookup(environ, name) != "" {
			return true
		}
	}
	return false
}

// lookup returns a variable; of several of one name the last counts.
func lookup(environ []string, name string) string { return (&cli.Main{Environ: environ}).Env(name) }

// Exit codes of shells for commands that did not run, and what they add to the number of a signal.
const (
	exitNoCommand = 127
	exitNotRun    = 126
	exitSignal    = 128
)

// runChild runs a command as runCommand does.
func runChild(m *cli.Main, args, environ []string) error {
	return runCommand(m, exec.Command(args[0], args[1:]...), environ) //nolint:noctx,gosec // it ends when it will; running it is what was asked for
}

// runCommand runs a command with the standard streams of this process, be they a terminal, and hands it the signals that
// it would have got. A command that ends with another code than 0 is a *childEnded.
func runCommand(m *cli.Main, child *exec.Cmd, environ []string) error {
	child.Stdin, child.Stdout, child.Stderr, child.Env = m.Stdin, m.Stdout, m.Stderr, environ
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		m.Err.Printf("tidemark: %v\n", err)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return &cli.ChildEnded{Code: exitNoCommand, Unmade: true}
		}
		return &cli.ChildEnded{Code: exitNotRun, Unmade: true}
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case s := <-signals:
			if !fromTerminal(m, s) {
				_ = child.Process.Signal(s) // it may have ended
			}
		case err := <-ended:
			return exitOf(err)
		}
	}
}

// fromTerminal reports whether a signal has reached the command by itself: a key of the terminal
// signals all that runs there, and twice would be once too often.
func fromTerminal(m *cli.Main, s os.Signal) bool {
	in, ok := m.Stdin.(*os.File)
	return ok && isatty.IsTerminal(in.Fd()) && (s == syscall.SIGINT || s == syscall.SIGQUIT)
}

// exitOf is the end of a command as a shell has it.
func exitOf(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err // nil, or its output could not be copied
	}
	if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return &cli.ChildEnded{Code: exitSignal + int(st.Signal())}
	}
	return &cli.ChildEnded{Code: exit.ExitCode()}
}

// guestsName is the folder of a home in which other processes say that they go through the server of
// the one that has the store.
const guestsName = "guests"

// enterAsGuest says that this process goes through another's server, until leave is called.
func enterAsGuest(home string) (leave func()) {
	path := filepath.Join(home, guestsName, strconv.Itoa(os.Getpid()))
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil || os.WriteFile(path, nil, 0o600) != nil {
		return func() {} // the other will not wait for us
	}
	return func() { _ = os.Remove(path) }
}

// guests are the processes that go through this server.
func guests(home string) []int {
	files, err := filepath.Glob(filepath.Join(home, guestsName, "*"))
	if err != nil {
		return nil
	}
	var out []int
	for _, path := range files {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) { // killed before it could leave
			_ = os.Remove(path)
			continue
		}
		out = append(out, pid)
	}
	return out
}

// waitForGuests keeps the server while clients of other terminals go through it.
func waitForGuests(ctx context.Context, m *cli.Main, home string) {
	first := guests(home)
	if len(first) == 0 {
		return
	}
	const look = 500 * time.Millisecond
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	m.Err.Printf("tidemark proxy: process %s still works through this server; waiting for its end, Ctrl-C stops it\n", strings.Trim(fmt.Sprint(first), "[]"))
	for len(guests(home)) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(look):
		}
	}
}
