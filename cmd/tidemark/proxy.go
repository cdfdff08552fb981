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

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// proxyFlags is what `tidemark proxy` is asked for.
type proxyFlags struct {
	Treatment, Name, Upstream string
	Port                      int
	PrintEnv                  bool
}

// treatments are what the proxy may do with a request, see docs/proxy.md.
func treatments() []string {
	return []string{"observe", "trim", "page", "page+trim", "episodes", "episodes+trim"}
}

// maxProxyName bounds --name.
const maxProxyName = 64

// check refuses flags that cannot be meant, and gives those their value that have none.
func (f *proxyFlags) check(m *cli.Main) error {
	args := m.Args
	switch {
	case len(args) == 0 && !f.PrintEnv:
		return cli.Usagef("%s: which command is to run? for example `tidemark proxy -- claude`", m.Path())
	case len(args) > 0 && f.PrintEnv:
		return cli.Usagef("--print-env runs no command; leave out %q", strings.Join(args, " "))
	case f.Treatment != "" && !slices.Contains(treatments(), f.Treatment):
		return cli.Usagef("--treatment %s: want %s", f.Treatment, strings.Join(treatments(), ", "))
	case f.Port < 0 || f.Port > 65535:
		return cli.Usagef("--port %d: want 0 to 65535; 0 takes any free one", f.Port)
	case !plainName(f.Name):
		return cli.Usagef("--name %q: want up to %d letters, digits, dots, dashes and underscores", f.Name, maxProxyName)
	}
	if f.Upstream != "" {
		base, err := upstreamURL(f.Upstream)
		if err != nil {
			return cli.Usagef("--upstream %s: %v", f.Upstream, err)
		}
		f.Upstream = base
	}
	if f.Name == "" {
		f.Name = freshName(args)
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

// runProxy opens the door, runs the client, and says what came of it.
func runProxy(ctx context.Context, m *cli.Main, f proxyFlags, args []string) error {
	if f.PrintEnv { // before anybody can know that it is up
		var end context.CancelFunc
		ctx, end = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGHUP)
		defer end()
	}
	// A signal is the child's to answer: the server must outlive what it still sends.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	d, err := openDoor(serving, m, f)
	if err != nil {
		return err
	}
	done, ready := make(chan error, 1), make(chan struct{})
	go func() { done <- serveDoor(serving, m, d, func(string) { close(ready) }) }()
	select {
	case err := <-done:
		return errors.Join(err, d.close())
	case <-ready:
	}
	m.Err.Printf("tidemark proxy: %s; treatment %s; conversation %s\n", d.say(), cmp.Or(d.mode, "as that server has it"), f.Name)
	if f.PrintEnv {
		printEnv(ctx, m, d)
	} else {
		err = runChild(m, args, childEnv(m.Environ, d.url()))
	}
	if child := (*cli.ChildEnded)(nil); !errors.As(err, &child) || !child.Unmade {
		proxySummary(context.WithoutCancel(ctx), m, d)
	}
	if d.node != nil {
		waitForGuests(ctx, m, d.node.Home)
	}
	stop()
	return errors.Join(err, <-done, d.close())
}

// printEnv prints the variables of a client and waits until it is interrupted.
func printEnv(ctx context.Context, m *cli.Main, d *proxyDoor) {
	for _, v := range proxyVars(d.url()) {
		m.Out.Line("export " + v)
	}
	<-ctx.Done()
}

func proxyCommand(ctx context.Context, m *cli.Main, f *proxyFlags) error {
	if err := f.check(m); err != nil {
		return err
	}
	return runProxy(ctx, m, *f, m.Args)
}
