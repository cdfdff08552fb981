package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/setup"
)

// hookTime is how long a hook may take: less than what Claude Code gives it, so that it ends by itself.
const hookTime = 25 * time.Second

// hookAt is where and how a hook is installed.
type hookAt struct {
	Project, User, DryRun bool
	Tokens                int64
}

// settings is the file that is meant.
func settings(m *cli.Main, h hookAt) (claude.Settings, error) {
	if h.Project && h.User {
		return claude.Settings{}, cli.Usagef("--project and --user: want one of them")
	}
	program, err := os.Executable()
	if err != nil {
		return claude.Settings{}, fmt.Errorf("find this program: %w", err)
	}
	home := ""
	if m.Home != "" || m.Env("TIDEMARK_HOME") != "" { // the hook runs where that may not be set
		if home, err = m.HomeDir(); err != nil {
			return claude.Settings{}, err
		}
	}
	var flags []string
	if h.Tokens != int64(claude.DefaultHookTokens) && h.Tokens != 0 {
		flags = []string{"--tokens", fmt.Sprint(h.Tokens)}
	}
	s := claude.Settings{Command: claude.HookCommand(program, home, flags...)}
	if h.Project {
		s.Path = claude.ProjectSettings(workingDir(m))
		return s, nil
	}
	dir, err := claude.ConfigDir(m.Env)
	if err != nil {
		return s, cli.Advise(err, "set HOME or CLAUDE_CONFIG_DIR")
	}
	s.Path = claude.UserSettings(dir)
	return s, nil
}

// hookChange is what a change of settings is to programs.
type hookChange struct {
	Settings string `json:"settings"`
	Changed  bool   `json:"changed"`
	DryRun   bool   `json:"dry_run,omitempty"`
	Diff     string `json:"diff,omitempty"`
}

func changeSettings(m *cli.Main, h hookAt, how func(claude.Settings) (claude.Change, error), done string) error {
	s, err := settings(m, h)
	if err != nil {
		return err
	}
	change, err := how(s)
	if err != nil {
		return err
	}
	diff := lineDiff(change.Before, change.After)
	if !h.DryRun {
		if err := change.Apply(); err != nil {
			return err
		}
	}
	switch {
	case m.JSON:
		return m.PrintJSON(hookChange{change.Path, change.Changed(), h.DryRun, diff})
	case !change.Changed():
		m.Out.Printf("nothing to change in %s\n", change.Path)
	case h.DryRun:
		m.Out.Printf("%s would change:\n%s", change.Path, diff)
	default:
		m.Out.Printf("%s in %s\n", done, change.Path)
	}
	return nil
}

// lineDiff shows the lines that differ, between those that begin and end both.
func lineDiff(before, after []byte) string {
	a, b := bytes.SplitAfter(before, []byte("\n")), bytes.SplitAfter(after, []byte("\n"))
	head := 0
	for head < len(a) && head < len(b) && bytes.Equal(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && bytes.Equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	var out strings.Builder
	show := func(sign string, lines [][]byte) {
		for _, l := range lines {
			if text := strings.TrimRight(string(l), "\r\n"); text != "" || len(l) > 0 {
				out.WriteString(sign + " " + cli.Safe(text) + "\n")
			}
		}
	}
	show("-", a[head:len(a)-tail])
	show("+", b[head:len(b)-tail])
	return out.String()
}

// hookState is where a hook is installed.
type hookState struct {
	Settings string   `json:"settings"`
	Events   []string `json:"events"`
	Problem  string   `json:"problem,omitempty"`
}

func tellHooks(m *cli.Main, states []hookState) error {
	if m.JSON {
		return m.PrintJSON(states)
	}
	for _, s := range states {
		what := "not installed"
		switch {
		case s.Problem != "":
			what = s.Problem
		case len(s.Events) > 0:
			what = strings.Join(s.Events, ", ")
		}
		m.Out.Printf("%s: %s\n", s.Settings, what)
	}
	home, err := m.HomeDir()
	if err != nil {
		return err
	}
	if last := (&claude.Store{Home: home}).HookLog().Last(); last != "" {
		m.Out.Printf("last said: %s\n", cli.Safe(last))
	}
	return nil
}

// hookFlags reads the flags that an installation writes. What it does not know it passes over: a settings file may be
// older or younger than the program.
func hookFlags(m *cli.Main, args []string) (tidemark.Tokens, error) {
	var tokens int64
	for i := 0; i+1 < len(args); i++ {
		switch args[i] {
		case "--home":
			m.Home = args[i+1]
		case "--tokens":
			if _, err := fmt.Sscan(args[i+1], &tokens); err != nil {
				return 0, fmt.Errorf("--tokens %.20q: want a whole number: %w", args[i+1], tidemark.ErrInvalid)
			}
		}
	}
	return tidemark.Tokens(tokens), nil
}

// hookSays tells on standard error and in a file what went wrong: Claude Code shows neither, and goes on.
func hookSays(m *cli.Main, store *claude.Store, err error) {
	m.Err.Printf("tidemark hook: %s\n", cli.PlainError(err))
	if store != nil {
		store.HookLog().Say(cli.PlainError(err))
	}
}

func hookInstall(_ context.Context, m *cli.Main, h *hookAt) error {
	const least = 1000
	if h.Tokens < least {
		return cli.Usagef("--tokens: %d: want at least %d", h.Tokens, least)
	}
	return changeSettings(m, *h, claude.Settings.Install, "installed")
}

func hookUninstall(_ context.Context, m *cli.Main, h *hookAt) error {
	return changeSettings(m, *h, claude.Settings.Uninstall, "removed")
}

func hookStatus(_ context.Context, m *cli.Main) error {
	s, err := settings(m, hookAt{})
	if err != nil {
		return err
	}
	local := claude.ProjectSettings(workingDir(m))
	var states []hookState
	for _, path := range []string{s.Path, filepath.Join(filepath.Dir(local), "settings.json"), local} {
		s.Path = path
		state := hookState{Settings: path, Events: []string{}}
		events, err := s.Installed()
		if err != nil {
			state.Problem = cli.PlainError(err)
		}
		state.Events = append(state.Events, events...)
		states = append(states, state)
	}
	return tellHooks(m, states)
}

// hookRun is what Claude Code calls. It ends with 0 whatever happens: to Claude Code 2 means that the tool call must not
// go on, and any other number is an error on the user's screen.
func hookRun(ctx context.Context, m *cli.Main) error {
	var h claude.Hook
	defer func() {
		if p := recover(); p != nil {
			hookSays(m, h.Store, fmt.Errorf("panic: %v", p))
		}
	}()
	var err error
	if h.Tokens, err = hookFlags(m, m.Args); err == nil {
		h.Store, err = claudeStore(m)
	}
	var out claude.HookOutput
	if err == nil {
		h.Store.Mended = func(objects int) { hookSays(m, h.Store, errors.New(mended(objects))) }
		ctx, cancel := context.WithTimeout(ctx, hookTime)
		defer cancel()
		out, err = h.Run(ctx, m.Stdin)
	}
	if err != nil {
		hookSays(m, h.Store, err)
	}
	if out.Message != "" {
		return m.PrintJSON(out)
	}
	return nil
}

// serve opens the store, wakes what an earlier process left and answers requests until it is told
// to stop.
func serve(ctx context.Context, m *cli.Main, f *struct{ Listen string }) error {
	listen := f.Listen
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	home, err := m.HomeDir()
	if err != nil {
		return err
	}
	cfg, document, err := m.Load(ctx, home)
	if err != nil {
		return err
	}
	if listen == "" {
		listen = cfg.Server.Listen
	}
	if err := mayListen(listen, cfg); err != nil {
		return err
	}
	log := m.Logger(cfg, false)
	reason := cfg.Resolve()
	if err := cli.NeedKey(cfg); err != nil {
		return err
	}
	n, err := node.OpenStore(ctx, home, cfg, log, true)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(cli.Advise(fmt.Errorf("listen at %s: %w", listen, err), listenFix(err)), n.Close())
	}
	err = node.ServeOn(ctx, n, l, func(url string) { greet(m, url, reason, home, document, cfg) })
	return errors.Join(err, n.Close())
}

// listenFix says what to do about an address that cannot be had.
func listenFix(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "stop what is using the port, or give --listen another; port 0 takes any free one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "give --listen an address that this machine has, such as 127.0.0.1:8787"
	case errors.Is(err, os.ErrPermission):
		return "give --listen a port above 1023"
	}
	return "give --listen an address such as 127.0.0.1:8787"
}

// mayListen refuses to be reached from other machines without a token.
func mayListen(listen string, cfg *config.Config) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return cli.Usagef("--listen %s: want host and port such as 127.0.0.1:8787", listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return cli.Usagef("--listen %s: port %q: want 0 to 65535; 0 takes any free one", listen, port)
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() || cfg.Secrets.Token != "" {
		return nil
	}
	return cli.Advise(fmt.Errorf("%s can be reached from other machines, and there is no token", listen),
		"set TIDEMARK_TOKEN to a secret of your own, or listen at 127.0.0.1")
}

// greet says what a person wants to know at the start.
func greet(m *cli.Main, url, reason, home, document string, cfg *config.Config) {
	token, header := "none, only this machine may call", ""
	if cfg.Secrets.Token != "" {
		token, header = "required (TIDEMARK_TOKEN)", `-H "Authorization: Bearer $TIDEMARK_TOKEN" `
	}
	if document == "" {
		document = "none, all defaults"
	}
	bucket := cfg.Storage.Bucket
	where := "folder " + cli.BucketPath(home, cfg)
	if bucket.Kind == "s3" {
		where = "s3 " + bucket.Endpoint + " " + bucket.Bucket + "/" + bucket.Prefix
	}
	m.Out.Printf("Tidemark %s serves at %s\n", node.VersionText(), url)
	window := setup.Window(cfg)
	for _, row := range [][2]string{
		{"model", cfg.Model.Provider + " " + cfg.Model.ID + " (" + reason + ")"},
		{"window", fmt.Sprintf("%d tokens, compacted above %d; less where the model says so", window.Tokens, cli.LimitOf(cfg))},
		{"home", home}, {"bucket", where}, {"config", document}, {"token", token},
		{"channels", setup.ChannelLine(cfg)},
		{"talk", "tidemark chat, or curl " + header + url + `/v1/sessions/main/messages -d '{"text":"hello"}'`},
	} {
		m.Out.Printf("  %-8s %s\n", row[0], row[1])
	}
	for _, w := range cfg.Warnings {
		m.Err.Printf("warning: %s\n", w)
	}
	for _, g := range append(setup.ChannelGaps(cfg), setup.ToolGaps(cfg, true)...) {
		m.Err.Printf("warning: %s %s\n  what to do: %s\n", g.Setting, g.Message, node.GapFix(g))
	}
}

func printVersion(_ context.Context, m *cli.Main) error {
	return cli.Either(m, map[string]string{"version": node.VersionText(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}, func() {
		m.Out.Line("tidemark", node.VersionText())
	})
}
