package main

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/trim"
)

// primitive is what `tidemark trim` does to a session, and `tidemark branch` from a snapshot on: a snapshot, and a
// session of its own that goes on from it.
type primitive struct {
	Name, Orientation, Dir      string
	Threshold                   int
	Launch, DryRun, AllProjects bool
	NoTrim                      bool           // not trimmed
	kept                        bool           // the snapshot is there already
	made                        *claude.Branch // what is to be launched, see [primitive.check]

	// Of the snapshot that is taken.
	Snapshot, Description string
	Tag                   []string
}

// check refuses what no server need be asked for.
func (p *primitive) check(m *cli.Main) error {
	p.made = &claude.Branch{}
	for _, told := range []struct {
		flag  string
		check error
	}{
		{"--snapshot", nameOr(p.Snapshot)}, {"--name", nameOr(p.Name)},
		{"--description", snapshot.CheckDescription(p.Description)}, {"--tag", snapshot.CheckTags(p.Tag)},
	} {
		if told.check != nil {
			return cli.Usagef("%s: %s", told.flag, cli.PlainError(told.check))
		}
	}
	if p.Launch && m.JSON {
		return cli.Usagef("--launch and --json: want one of them; --json prints the session's id")
	}
	if p.Launch && p.DryRun {
		return cli.Usagef("--launch and --dry-run: want one of them; nothing is made that could be resumed")
	}
	return nil
}

// nameOr allows a name that is not given.
func nameOr(name string) error {
	if name == "" {
		return nil
	}
	return snapshot.CheckName(name)
}

// ofSessions refuses what sessions of Tidemark do not have.
func (p *primitive) ofSessions(key string) error {
	switch {
	case p.Launch:
		return cli.Usagef("--launch: is for sessions of Claude Code; go on in this one with `tidemark chat %s#NAME`", cli.PlainKey(string(tidemark.Key(key).Root())))
	case p.DryRun:
		return cli.Usagef("--dry-run: is for sessions of Claude Code; a branch of a session copies nothing, and changes nothing that is there")
	case p.Dir != "":
		return cli.Usagef("--dir: is for sessions of Claude Code")
	case utf8.RuneCountInString(p.Orientation) > snapshots.MaxOrientation:
		return cli.Usagef("--orientation: %d characters, at most %d; put the rest into a file that the branch can read", utf8.RuneCountInString(p.Orientation), snapshots.MaxOrientation)
	}
	return nil
}

// trimSession takes a snapshot of a session and makes a trimmed branch of it.
func trimSession(ctx context.Context, m *cli.Main, key string, p primitive) error {
	if err := errors.Join(p.ofSessions(key), p.check(m)); err != nil {
		return err
	}
	of := map[string]any{"name": p.Snapshot, "description": p.Description, "tags": p.Tag}
	return with(ctx, m, func(c *client) error { return makeBranch(ctx, m, c, key, "/trim", p.body(map[string]any{"of": of})) })
}

// body is what a branch is asked for with.
func (p *primitive) body(more map[string]any) map[string]any {
	more["name"], more["orientation"] = p.Name, p.Orientation
	if p.Threshold > 0 {
		more["threshold"] = p.Threshold
	}
	return more
}

// makeBranch asks for a branch and tells of it.
func makeBranch(ctx context.Context, m *cli.Main, c *client, key, route string, body map[string]any) error {
	var made snapshots.Branch
	if err := c.Post(ctx, cli.SessionPath(key, route), body, &made); err != nil {
		return err
	}
	return cli.Either(m, made, func() {
		tellSnapshot(m, origin(body["snapshot"] == nil), made.Snapshot)
		m.Out.Printf("branch    %s\n", cli.PlainKey(string(made.Key)))
		if t := made.Trim; t != nil {
			m.Out.Printf("trimmed   %s\n", trimmed(t.Before, t.After, int64(t.Results), int64(t.Inputs), int64(t.Thinking), int64(t.Media)))
		}
		m.Out.Printf("go on     tidemark chat '%s'\n", cli.PlainKey(string(made.Key)))
	})
}

// origin says whether the snapshot of a branch was taken for it.
func origin(now bool) string {
	if now {
		return "snapshot"
	}
	return "from"
}

// tellSnapshot prints a snapshot on a line.
func tellSnapshot(m *cli.Main, what string, n snapshot.Node) {
	m.Out.Printf("%-8s  %s  %q of %s, %s, %s tokens\n", what, n.ID, n.Name, cli.PlainKey(n.Session), cli.Plural(n.Messages, "message"), snapshot.Short(n.Tokens))
}

// trimmed says what a trim gave.
func trimmed(before, after tidemark.Tokens, results, inputs, thinking, images int64) string {
	if before == after && results+inputs+thinking+images == 0 {
		return "nothing: there was nothing to take out"
	}
	text := fmt.Sprintf("%s -> %s tokens", snapshot.Short(before), snapshot.Short(after))
	if before > 0 {
		const whole = 100
		text += fmt.Sprintf(" (%d%% less)", (before-after)*whole/before)
	}
	return text + fmt.Sprintf(": %s and %s of tools, %s, %s", cli.Plural(int(results), "output"), cli.Plural(int(inputs), "input"), cli.Plural(int(thinking), "thought"), cli.Plural(int(images), "image"))
}

// claudeStore is where snapshots of Claude Code's logs are kept.
func claudeStore(m *cli.Main) (*claude.Store, error) {
	home, err := m.HomeDir()
	if err != nil {
		return nil, err
	}
	dir, err := claude.ConfigDir(m.Env)
	if err != nil {
		return nil, cli.Advise(err, "set HOME or CLAUDE_CONFIG_DIR")
	}
	return &claude.Store{Home: home, Dir: dir, Mended: func(objects int) { m.Err.Line(mended(objects)) }}, nil
}

// pickClaude finds a session of Claude Code and says which one it took.
func pickClaude(ctx context.Context, m *cli.Main, store *claude.Store, ref string, allProjects bool) (claude.Session, error) {
	cwd := ""
	if !allProjects {
		cwd = workingDir(m)
	}
	found, err := store.Finder().Pick(ctx, ref, cwd)
	if err != nil {
		return found, claudeFix(err)
	}
	m.Err.Printf("session %s of %s%s\n", found.ID, found.Project, title(found.Title))
	if store.Active(found) {
		m.Err.Line("somebody seems to write it right now: taken is what was there up to its last whole line")
	}
	return found, nil
}

func title(s string) string {
	if s == "" {
		return ""
	}
	const most = 60
	return ": " + cli.OneLine(s, most)
}

// claudeFix adds what a person can do about an error of a session of Claude Code.
func claudeFix(err error) error {
	var own *cli.Fixed
	if !errors.Is(err, tidemark.ErrNotFound) || errors.As(err, &own) {
		return err
	}
	return cli.Advise(err, "give the id of a session, or latest, in the folder of its project; --all-projects looks at all of them")
}

// trimClaude takes a snapshot of a session of Claude Code and makes a trimmed session of it that can be resumed.
func trimClaude(ctx context.Context, m *cli.Main, ref string, p primitive) error {
	if err := p.check(m); err != nil {
		return err
	}
	store, err := claudeStore(m)
	if err != nil {
		return err
	}
	of, err := pickClaude(ctx, m, store, ref, p.AllProjects)
	if err != nil {
		return err
	}
	node, made, err := store.Trim(ctx, of, claude.SnapshotOptions{Name: p.Snapshot, Description: p.Description, Tags: p.Tag}, p.claudeOptions())
	if err != nil {
		return err
	}
	if err := tellClaude(ctx, m, node, made, p); err != nil {
		return err
	}
	return launchMade(m, p)
}

func (p *primitive) claudeOptions() claude.BranchOptions {
	return claude.BranchOptions{Name: p.Name, Trim: !p.NoTrim, Threshold: p.Threshold, Orientation: p.Orientation, Dir: p.Dir, DryRun: p.DryRun}
}

// tellClaude prints what was made for Claude Code. What is to be launched is for [Main.launchMade].
func tellClaude(ctx context.Context, m *cli.Main, node snapshot.Node, made claude.Branch, p primitive) error {
	return cli.Either(m, struct {
		Snapshot snapshot.Node `json:"snapshot"`
		claude.Branch
		DryRun bool `json:"dry_run,omitempty"`
	}{node, made, p.DryRun}, func() {
		if node.ID != "" {
			tellSnapshot(m, origin(!p.kept), node)
		}
		if p.DryRun {
			m.Out.Printf("branch    %s would be made; nothing was written\n", made.Log)
		} else {
			m.Out.Printf("branch    %s\n", made.Log)
		}
		if t := made.Trim; t != nil {
			m.Out.Printf("trimmed   %s\n", trimmed(made.Untrimmed, made.Node.Tokens, t.ToolResultsStubbed, t.ToolUseInputsStubbed, t.SignaturesStripped, t.ImagesStripped))
		}
		if p.DryRun {
			return
		}
		if p.Launch {
			*p.made = made
			return
		}
		m.Out.Printf("go on     %s\n", made.Command())
	})
}

// launchMade resumes what was made, when that was asked for. It comes last: the store is free again while somebody
// talks to Claude Code.
func launchMade(m *cli.Main, p primitive) error {
	if !p.Launch || p.made.Session == "" {
		return nil
	}
	child, err := p.made.Resume()
	if errors.Is(err, tidemark.ErrNotFound) {
		return cli.Advise(errors.New("launch: there is no program claude on the path"), "go on where it is with: "+p.made.Command())
	}
	if err != nil {
		return err
	}
	if err := runCommand(m, child, m.Environ); err != nil {
		m.Err.Printf("claude did not end well; the session is there: %s\n", p.made.Command())
		return err
	}
	return nil
}

// given holds the threshold to what it may be, as `tidemark trim` does.
func (p *primitive) given(m *cli.Main) error {
	if !m.Changed("threshold") {
		return nil
	}
	if p.Threshold <= 0 {
		return cli.Usagef("--threshold %d: want a number of characters over 0, such as %d", p.Threshold, trim.DefaultThreshold)
	}
	if p.NoTrim {
		return cli.Usagef("--threshold and --no-trim: want one of them")
	}
	return nil
}

// branchFrom makes a branch of a snapshot that was found.
func branchFrom(ctx context.Context, m *cli.Main, c *client, n snapshot.Node, p primitive) error {
	leastThreshold(m, p.Threshold)
	if n.Kind == snapshot.KindBranch {
		return branchOfBranch(m, n)
	}
	if n.Of == snapshot.OfClaude {
		store, err := claudeStore(m)
		if err != nil {
			return err
		}
		p.kept = true
		made, err := store.Branch(ctx, n.ID, p.claudeOptions())
		if err != nil {
			return err
		}
		return tellClaude(ctx, m, n, made, p)
	}
	if err := p.ofSessions(n.Session); err != nil {
		return err
	}
	return makeBranch(ctx, m, c, n.Session, "/branch", p.body(map[string]any{"snapshot": n.ID, "trim": !p.NoTrim}))
}

// branchOfBranch says how to go on from a branch: it is no fixed place.
func branchOfBranch(m *cli.Main, n snapshot.Node) error {
	flag, ref := "--session", "'"+cli.PlainKey(n.Session)+"'"
	if n.Of == snapshot.OfClaude {
		flag, ref = "--claude", n.Session
	}
	return cli.Advise(fmt.Errorf("%s is a branch, and goes on; a branch begins at a snapshot", cli.PlainKey(n.ID)),
		fmt.Sprintf("keep it as it is now and branch from that: `tidemark trim %s %s`, or `tidemark snapshot NAME %s %s`", flag, ref, flag, ref))
}

type branchFlags struct {
	worlds
	primitive
}

func branch(ctx context.Context, m *cli.Main, f *branchFlags) error {
	p := &f.primitive
	if err := errors.Join(p.given(m), p.check(m)); err != nil {
		return err
	}
	err := withNode(ctx, m, f.worlds, m.Args[0], func(c *client, n snapshot.Node) error { return branchFrom(ctx, m, c, n, *p) })
	if err != nil {
		return err
	}
	return launchMade(m, *p)
}
