package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
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
func runProxy(ctx context.Context, m *cli.Main, f *proxyFlags) error {
	if err := f.check(m); err != nil {
		return err
	}
	if f.PrintEnv { // before anybody can know that it is up
		var end context.CancelFunc
		ctx, end = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGHUP)
		defer end()
	}
	// A signal is the child's to answer: the server must outlive what it still sends.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	d, err := openDoor(serving, m, *f)
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
		err = runChild(m, m.Args, childEnv(m.Environ, d.url()))
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

// proxyMain is the program with an environment whose base URLs say where requests of clients go, and nothing of our
// own model.
func proxyMain(m *cli.Main) *cli.Main {
	own := *m
	own.Environ = cli.Without(m.Environ, cli.OpenAIBase)
	return &own
}

// upstreams has requests go on to where they are told, or else to where the client would have sent them
// without us, unless the configuration says so. Where another proxy's door stands in the environment nobody knows
// what was there before, and a key must not go where it was not meant to.
func upstreams(m *cli.Main, c *config.Config, told string) error {
	if told != "" {
		c.Proxy.Upstream, c.Proxy.Chat = told, told+"/v1"
		return nil
	}
	for _, v := range []struct {
		name, version string
		to            *string
	}{{cli.AnthropicBase, "", &c.Proxy.Upstream}, {cli.OpenAIBase, "/v1", &c.Proxy.Chat}} {
		base, err := upstreamURL(m.Env(v.name))
		if err != nil || *v.to != "" {
			continue
		}
		if cli.IsDoor(m.Env(v.name)) {
			return cli.Advise(fmt.Errorf("%s=%s is the address of another `tidemark proxy`", v.name, cli.Safe(m.Env(v.name))),
				"unset it, or say by --upstream where the requests go")
		}
		*v.to = base + v.version
	}
	return nil
}

// tellUpstreams says of the variables that would have had the client go elsewhere that the server, which was there
// before, does not: the client's key goes where its requests go. of is what that server left of itself, if anything.
func tellUpstreams(m *cli.Main, of cli.ServerFile, base string) {
	for _, v := range []struct{ name, goes string }{
		{cli.AnthropicBase, cmp.Or(of.Messages, cli.VendorMessages)}, {cli.OpenAIBase, cmp.Or(of.Chat, cli.VendorChat)},
	} {
		is, err := upstreamURL(m.Env(v.name))
		if err != nil || cli.IsDoor(m.Env(v.name)) {
			continue
		}
		if goes, err := upstreamURL(v.goes); of.URL == "" || err != nil || goes != is {
			to := "an upstream of its own"
			if of.URL != "" && err == nil {
				to = goes
			}
			m.Err.Printf("tidemark proxy: %s=%s is not used: the server at %s sends requests, and the client's key with them, to %s; stop it, or give --home another folder, to have them go there\n", v.name, cli.Safe(is), base, to)
		}
	}
}
