package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
)

func (m *Main) hookCommand() *cobra.Command {
	c := group("hook", "Keep sessions of Claude Code before they are compacted", `  tidemark hook install                 for all projects of this user
  tidemark hook install --project       for the project in this folder
  tidemark hook install --dry-run       show what would change, and change nothing
  tidemark hook status
  tidemark hook uninstall`, m.hookInstall(), m.hookUninstall(), m.hookStatus(), m.hookRun())
	c.Long = `Let Claude Code call Tidemark. Before each compaction the session is kept as a
snapshot, and when its context grows large a trimmed copy is prepared, to which you may
go over. The log of a session is read and never written, so nothing that is said
meanwhile is lost, and a session goes on whatever the hook comes to.`
	return c
}

// hookTime is how long a hook may take: less than what Claude Code gives it, so that it ends by itself.
const hookTime = 25 * time.Second

// hookAt is where and how a hook is installed.
type hookAt struct {
	project, user, dryRun bool
	tokens                int64
}

func (h *hookAt) flags(c *cobra.Command) {
	c.Flags().BoolVar(&h.user, "user", false, "in the settings of this user (default)")
	c.Flags().BoolVar(&h.project, "project", false, "in .claude/settings.local.json of the project in this folder")
	c.Flags().BoolVar(&h.dryRun, "dry-run", false, "show what would change, and change nothing")
}

// settings is the file that is meant.
func (m *Main) settings(h hookAt) (claude.Settings, error) {
	if h.project && h.user {
		return claude.Settings{}, usagef("--project and --user: want one of them")
	}
	program, err := os.Executable()
	if err != nil {
		return claude.Settings{}, fmt.Errorf("find this program: %w", err)
	}
	home := ""
	if m.home != "" || m.env("TIDEMARK_HOME") != "" { // the hook runs where that may not be set
		if home, err = m.homeDir(); err != nil {
			return claude.Settings{}, err
		}
	}
	var flags []string
	if h.tokens != int64(claude.DefaultHookTokens) && h.tokens != 0 {
		flags = []string{"--tokens", fmt.Sprint(h.tokens)}
	}
	s := claude.Settings{Command: claude.HookCommand(program, home, flags...)}
	if h.project {
		s.Path = claude.ProjectSettings(m.workingDir())
		return s, nil
	}
	dir, err := claude.ConfigDir(m.env)
	if err != nil {
		return s, &fixed{err, "set HOME or CLAUDE_CONFIG_DIR"}
	}
	s.Path = claude.UserSettings(dir)
	return s, nil
}

func (m *Main) hookInstall() *cobra.Command {
	var h hookAt
	c := &cobra.Command{Use: "install", Short: "Add the hook to a settings file of Claude Code", Args: cobra.NoArgs,
		Long: `Add the hook to a settings file of Claude Code. Every byte of the file that is not the
hook's stays, comments too; the file as it was is kept beside it. A file that cannot be
read is not touched. Twice is once.`,
		RunE: func(*cobra.Command, []string) error {
			const least = 1000
			if h.tokens < least {
				return usagef("--tokens: %d: want at least %d", h.tokens, least)
			}
			s, err := m.settings(h)
			if err != nil {
				return err
			}
			change, err := s.Install()
			if err != nil {
				return err
			}
			return m.changeSettings(h, change, "installed")
		}}
	h.flags(c)
	c.Flags().Int64Var(&h.tokens, "tokens", int64(claude.DefaultHookTokens), "size of a context from which on a trimmed copy is prepared")
	return m.jsonFlag(c)
}

func (m *Main) hookUninstall() *cobra.Command {
	var h hookAt
	c := &cobra.Command{Use: "uninstall", Short: "Take the hook out again, and nothing else", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := m.settings(h)
			if err != nil {
				return err
			}
			change, err := s.Uninstall()
			if err != nil {
				return err
			}
			return m.changeSettings(h, change, "removed")
		}}
	h.flags(c)
	return m.jsonFlag(c)
}

// hookChange is what a change of settings is to programs.
type hookChange struct {
	Settings string `json:"settings"`
	Changed  bool   `json:"changed"`
	DryRun   bool   `json:"dry_run,omitempty"`
	Diff     string `json:"diff,omitempty"`
}

func (m *Main) changeSettings(h hookAt, change claude.Change, done string) error {
	diff := lineDiff(change.Before, change.After)
	if !h.dryRun {
		if err := change.Apply(); err != nil {
			return err
		}
	}
	switch {
	case m.json:
		return m.printJSON(hookChange{change.Path, change.Changed(), h.dryRun, diff})
	case !change.Changed():
		m.out.printf("nothing to change in %s\n", change.Path)
	case h.dryRun:
		m.out.printf("%s would change:\n%s", change.Path, diff)
	default:
		m.out.printf("%s in %s\n", done, change.Path)
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
				out.WriteString(sign + " " + safe(text) + "\n")
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

func (m *Main) hookStatus() *cobra.Command {
	c := &cobra.Command{Use: "status", Short: "Show where the hook is installed", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := m.settings(hookAt{})
			if err != nil {
				return err
			}
			local := claude.ProjectSettings(m.workingDir())
			var states []hookState
			for _, path := range []string{s.Path, filepath.Join(filepath.Dir(local), "settings.json"), local} {
				s.Path = path
				state := hookState{Settings: path, Events: []string{}}
				events, err := s.Installed()
				if err != nil {
					state.Problem = plainError(err)
				}
				state.Events = append(state.Events, events...)
				states = append(states, state)
			}
			return m.tellHooks(states)
		}}
	return m.jsonFlag(c)
}

func (m *Main) tellHooks(states []hookState) error {
	if m.json {
		return m.printJSON(states)
	}
	for _, s := range states {
		what := "not installed"
		switch {
		case s.Problem != "":
			what = s.Problem
		case len(s.Events) > 0:
			what = strings.Join(s.Events, ", ")
		}
		m.out.printf("%s: %s\n", s.Settings, what)
	}
	home, err := m.homeDir()
	if err != nil {
		return err
	}
	if last := (&claude.Store{Home: home}).HookLog().Last(); last != "" {
		m.out.printf("last said: %s\n", safe(last))
	}
	return nil
}

// hookRun is what Claude Code calls. It ends with 0 whatever happens: to Claude Code 2 means that the tool call must not
// go on, and any other number is an error on the user's screen.
func (m *Main) hookRun() *cobra.Command {
	return &cobra.Command{Use: "run", Short: "Do what a hook asks for on standard input", Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var h claude.Hook
			defer func() {
				if p := recover(); p != nil {
					m.hookSays(h.Store, fmt.Errorf("panic: %v", p))
				}
			}()
			var err error
			if h.Tokens, err = m.hookFlags(args); err == nil {
				h.Store, err = m.claudeStore()
			}
			var out claude.HookOutput
			if err == nil {
				h.Store.Mended = func(objects int) { m.hookSays(h.Store, errors.New(mended(objects))) }
				ctx, cancel := context.WithTimeout(cmd.Context(), hookTime)
				defer cancel()
				out, err = h.Run(ctx, m.Stdin)
			}
			if err != nil {
				m.hookSays(h.Store, err)
			}
			if out.Message != "" {
				return m.printJSON(out)
			}
			return nil
		}}
}

// hookFlags reads the flags that an installation writes. What it does not know it passes over: a settings file may be
// older or younger than the program.
func (m *Main) hookFlags(args []string) (tidemark.Tokens, error) {
	var tokens int64
	for i := 0; i+1 < len(args); i++ {
		switch args[i] {
		case "--home":
			m.home = args[i+1]
		case "--tokens":
			if _, err := fmt.Sscan(args[i+1], &tokens); err != nil {
				return 0, fmt.Errorf("--tokens %.20q: want a whole number: %w", args[i+1], tidemark.ErrInvalid)
			}
		}
	}
	return tidemark.Tokens(tokens), nil
}

// hookSays tells on standard error and in a file what went wrong: Claude Code shows neither, and goes on.
func (m *Main) hookSays(store *claude.Store, err error) {
	m.err.printf("tidemark hook: %s\n", plainError(err))
	if store != nil {
		store.HookLog().Say(plainError(err))
	}
}
