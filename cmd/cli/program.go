// Package cli is what commands share: the table of them with flags, help and docs, output as text or JSON, failures with advice,
// settings and home folder, a client of the API, and readers of recorded sessions. It has no command of its own.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Main is the program with what it was given. Tests run it in their own process.
type Main struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Terminal       bool     // a person types and reads
	Progress       bool     // a person sees Stderr
	Args           []string // of the command that runs

	// What the flags of every command say.
	Home, Config, Server string
	JSON                 bool

	Out, Err *Output        // Stdout and Stderr
	Cmd      *cobra.Command // that runs
	entered  bool           // the flags were right, and the command has begun
}

// OfProcess is the program on what this process was given.
func OfProcess() *Main {
	return &Main{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Terminal: isatty.IsTerminal(os.Stdout.Fd()) && isatty.IsTerminal(os.Stdin.Fd()),
		Progress: isatty.IsTerminal(os.Stderr.Fd()),
	}
}

// Run parses the arguments, carries out the command of the table and returns the exit code. SIGTERM ends its context.
func (m *Main) Run(ctx context.Context, t Table, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	m.Out, m.Err = &Output{W: m.Stdout}, &Output{W: m.Stderr}
	root := t.root(m)
	root.SetArgs(args)
	root.SetIn(m.Stdin)
	root.SetOut(m.Out)
	root.SetErr(m.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = m.Out.failure()
	}
	return m.report(cmd, err)
}

// Changed reports whether a flag was given.
func (m *Main) Changed(flag string) bool { return m.Cmd.Flags().Changed(flag) }

// Path is the command that runs, with the name of the program.
func (m *Main) Path() string { return m.Cmd.CommandPath() }

// Env returns an environment variable.
func (m *Main) Env(name string) string {
	for i := len(m.Environ) - 1; i >= 0; i-- {
		if n, v, ok := strings.Cut(m.Environ[i], "="); ok && n == name {
			return v
		}
	}
	return ""
}
