package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// proxyFlags is what `tidemark proxy` is asked for.
type proxyFlags struct {
	treatment, name, upstream string
	port                      int
	printEnv                  bool
}

// treatments are what the proxy may do with a request, see docs/proxy.md.
func treatments() []string {
	return []string{"observe", "trim", "page", "page+trim", "episodes", "episodes+trim"}
}

func (m *Main) proxyCommand() *cobra.Command {
	var f proxyFlags
	c := &cobra.Command{
		Use: "proxy [flags] -- COMMAND [ARGS…]", Short: "Run a client of the Messages API or of OpenAI behind Tidemark",
		Long: `Run a client that keeps its own history, such as Claude Code or an agent on an
SDK, behind Tidemark: old results of tools leave what is sent to the model and
come back when they are asked for. The client and its keys stay as they are; it
is only told another address, in ANTHROPIC_BASE_URL and OPENAI_BASE_URL.

The requests go through the server that --server names, or the one that has the
store, else through one of this process on a free port. What was said is a
conversation like any other, kept in the store (docs/proxy.md). Each start is a
conversation of its own unless --name says otherwise. The exit code is that of
the command.`,
		Example: `  tidemark proxy -- claude
  tidemark proxy --treatment observe -- node agent.mjs
  tidemark proxy --name review --port 9000 --print-env`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args); err != nil {
				return err
			}
			return m.proxy(cmd.Context(), f, args)
		},
	}
	c.Flags().SetInterspersed(false) // what follows the command is the command's
	c.Flags().StringVar(&f.treatment, "treatment", "", "observe, trim, page, page+trim, episodes or episodes+trim (proxy.treatment of the configuration)")
	c.Flags().StringVar(&f.name, "name", "", "go on with the conversation of this name (default: a new one)")
	c.Flags().StringVar(&f.upstream, "upstream", "", "URL of the API that the requests go on to (default: that of ANTHROPIC_BASE_URL, else the vendor's)")
	c.Flags().IntVar(&f.port, "port", 0, "port of this machine to listen at (default: a free one)")
	c.Flags().BoolVar(&f.printEnv, "print-env", false, "print what a client needs in its environment, and run none")
	return c
}

// maxProxyName bounds --name.
const maxProxyName = 64

// check refuses flags that cannot be meant, and gives those their value that have none.
func (f *proxyFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && !f.printEnv:
		return usagef("%s: which command is to run? for example `tidemark proxy -- claude`", cmd.CommandPath())
	case len(args) > 0 && f.printEnv:
		return usagef("--print-env runs no command; leave out %q", strings.Join(args, " "))
	case f.treatment != "" && !slices.Contains(treatments(), f.treatment):
		return usagef("--treatment %s: want %s", f.treatment, strings.Join(treatments(), ", "))
	case f.port < 0 || f.port > 65535:
		return usagef("--port %d: want 0 to 65535; 0 takes any free one", f.port)
	case !plainName(f.name):
		return usagef("--name %q: want up to %d letters, digits, dots, dashes and underscores", f.name, maxProxyName)
	}
	if f.upstream != "" {
		base, err := upstreamURL(f.upstream)
		if err != nil {
			return usagef("--upstream %s: %v", f.upstream, err)
		}
		f.upstream = base
	}
	if f.name == "" {
		f.name = freshName(args)
	}
	return nil
}

// plainName reports whether a name can stand in a path and in a header as it is.
func plainName(name string) bool {
	for _, r := range name {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", r) {
			return false
		}
	}
	return len(name) <= maxProxyName && strings.Trim(name, ".") == name
}

// freshName names a conversation that nobody has had: two terminals share none.
func freshName(args []string) string {
	what := "client"
	if len(args) > 0 {
		if base := filepath.Base(args[0]); plainName(base) && len(base) <= maxProxyName/2 {
			what = base
		}
	}
	return what + "-" + secret(4)
}

// secret is n random bytes in hex.
func secret(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // it never fails
	return hex.EncodeToString(raw)
}

// proxy opens the door, runs the client, and says what came of it.
func (m *Main) proxy(ctx context.Context, f proxyFlags, args []string) error {
	if f.printEnv { // before anybody can know that it is up
		var end context.CancelFunc
		ctx, end = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGHUP)
		defer end()
	}
	// A signal is the child's to answer: the server must outlive what it still sends.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	d, err := m.openDoor(serving, f)
	if err != nil {
		return err
	}
	done, ready := make(chan error, 1), make(chan struct{})
	go func() { done <- m.serveDoor(serving, d, func(string) { close(ready) }) }()
	select {
	case err := <-done:
		return errors.Join(err, d.close())
	case <-ready:
	}
	m.err.printf("tidemark proxy: %s; treatment %s; conversation %s\n", d.say(), cmp.Or(d.mode, "as that server has it"), f.name)
	if f.printEnv {
		m.printEnv(ctx, d)
	} else {
		err = m.runChild(args, childEnv(m.Environ, d.url()))
	}
	if child := (*childEnded)(nil); !errors.As(err, &child) || !child.unmade {
		m.proxySummary(context.WithoutCancel(ctx), d)
	}
	if d.node != nil {
		m.waitForGuests(ctx, d.node.home)
	}
	stop()
	return errors.Join(err, <-done, d.close())
}

// printEnv prints the variables of a client and waits until it is interrupted.
func (m *Main) printEnv(ctx context.Context, d *proxyDoor) {
	for _, v := range proxyVars(d.url()) {
		m.out.line("export " + v)
	}
	<-ctx.Done()
}
