package main

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// primitive is what `tidemark trim` does to a session, and `tidemark branch` from a snapshot on: a snapshot, and a
// session of its own that goes on from it.
type primitive struct {
	name, orientation, dir      string
	threshold                   int
	launch, dryRun, allProjects bool
	whole                       bool           // not trimmed
	kept                        bool           // the snapshot is there already
	made                        *claude.Branch // what is to be launched, see [primitive.check]

	// Of the snapshot that is taken.
	snapshot, description string
	tags                  []string
}

// branchFlags are those of the new session.
func (p *primitive) branchFlags(fl *pflag.FlagSet) {
	fl.StringVar(&p.name, "name", "", "name of the branch (default: made of the snapshot's)")
	fl.StringVar(&p.orientation, "orientation", "", "what the branch is told before everything else")
	fl.StringVar(&p.dir, "dir", "", "Claude Code: folder of the project to resume in (default: that of the snapshot)")
	fl.BoolVar(&p.launch, "launch", false, "Claude Code: resume the new session at once")
	fl.BoolVar(&p.dryRun, "dry-run", false, "Claude Code: write nothing, say what would be done")
}

// snapshotFlags are those of the snapshot that comes first.
func (p *primitive) snapshotFlags(fl *pflag.FlagSet) {
	fl.StringVar(&p.snapshot, "snapshot", "", "name of the snapshot (default: made of the session's title)")
	fl.StringVar(&p.description, "description", "", "what the snapshot is for")
	fl.StringArrayVar(&p.tags, "tag", nil, "tag of the snapshot; may be repeated")
	fl.BoolVar(&p.allProjects, "all-projects", false, "Claude Code: latest is the one last worked in of all projects, not of this folder's")
}

// check refuses what no server need be asked for.
func (p *primitive) check(m *Main) error {
	p.made = &claude.Branch{}
	for _, told := range []struct {
		flag  string
		check error
	}{
		{"--snapshot", nameOr(p.snapshot)}, {"--name", nameOr(p.name)},
		{"--description", snapshot.CheckDescription(p.description)}, {"--tag", snapshot.CheckTags(p.tags)},
	} {
		if told.check != nil {
			return usagef("%s: %s", told.flag, plainError(told.check))
		}
	}
	if p.launch && m.json {
		return usagef("--launch and --json: want one of them; --json prints the session's id")
	}
	if p.launch && p.dryRun {
		return usagef("--launch and --dry-run: want one of them; nothing is made that could be resumed")
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
	case p.launch:
		return usagef("--launch: is for sessions of Claude Code; go on in this one with `tidemark chat %s#NAME`", plainKey(string(tidemark.Key(key).Root())))
	case p.dryRun:
		return usagef("--dry-run: is for sessions of Claude Code; a branch of a session copies nothing, and changes nothing that is there")
	case p.dir != "":
		return usagef("--dir: is for sessions of Claude Code")
	case utf8.RuneCountInString(p.orientation) > session.MaxOrientation:
		return usagef("--orientation: %d characters, at most %d; put the rest into a file that the branch can read", utf8.RuneCountInString(p.orientation), session.MaxOrientation)
	}
	return nil
}

// trimSession takes a snapshot of a session and makes a trimmed branch of it.
func (m *Main) trimSession(ctx context.Context, key string, p primitive) error {
	if err := errors.Join(p.ofSessions(key), p.check(m)); err != nil {
		return err
	}
	of := map[string]any{"name": p.snapshot, "description": p.description, "tags": p.tags}
	return m.with(ctx, func(c *client) error { return m.makeBranch(ctx, c, key, "/trim", p.body(map[string]any{"of": of})) })
}

// body is what a branch is asked for with.
func (p *primitive) body(more map[string]any) map[string]any {
	more["name"], more["orientation"] = p.name, p.orientation
	if p.threshold > 0 {
		more["threshold"] = p.threshold
	}
	return more
}

// makeBranch asks for a branch and tells of it.
func (m *Main) makeBranch(ctx context.Context, c *client, key, route string, body map[string]any) error {
	var made session.Branch
	if err := c.post(ctx, sessionPath(key, route), body, &made); err != nil {
		return err
	}
	if m.json {
		return m.printJSON(made)
	}
	m.tellSnapshot(origin(body["snapshot"] == nil), made.Snapshot)
	m.out.printf("branch    %s\n", plainKey(string(made.Key)))
	if t := made.Trim; t != nil {
		m.out.printf("trimmed   %s\n", trimmed(t.Before, t.After, int64(t.Results), int64(t.Inputs), int64(t.Thinking), int64(t.Media)))
	}
	m.out.printf("go on     tidemark chat '%s'\n", plainKey(string(made.Key)))
	return nil
}

// origin says whether the snapshot of a branch was taken for it.
func origin(now bool) string {
	if now {
		return "snapshot"
	}
	return "from"
}

// tellSnapshot prints a snapshot on a line.
func (m *Main) tellSnapshot(what string, n snapshot.Node) {
	m.out.printf("%-8s  %s  %q of %s, %s, %s tokens\n", what, n.ID, n.Name, plainKey(n.Session), plural(n.Messages, "message"), snapshot.Short(n.Tokens))
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
	return text + fmt.Sprintf(": %s and %s of tools, %s, %s", plural(int(results), "output"), plural(int(inputs), "input"), plural(int(thinking), "thought"), plural(int(images), "image"))
}

// claudeStore is where snapshots of Claude Code's logs are kept.
func (m *Main) claudeStore() (*claude.Store, error) {
	home, err := m.homeDir()
	if err != nil {
		return nil, err
	}
	dir, err := claude.ConfigDir(m.env)
	if err != nil {
		return nil, &fixed{err, "set HOME or CLAUDE_CONFIG_DIR"}
	}
	return &claude.Store{Home: home, Dir: dir, Mended: func(objects int) { m.err.line(mended(objects)) }}, nil
}

// pickClaude finds a session of Claude Code and says which one it took.
func (m *Main) pickClaude(ctx context.Context, store *claude.Store, ref string, allProjects bool) (claude.Session, error) {
	cwd := ""
	if !allProjects {
		cwd = m.workingDir()
	}
	found, err := store.Finder().Pick(ctx, ref, cwd)
	if err != nil {
		return found, claudeFix(err)
	}
	m.err.printf("session %s of %s%s\n", found.ID, found.Project, title(found.Title))
	if store.Active(found) {
		m.err.line("somebody seems to write it right now: taken is what was there up to its last whole line")
	}
	return found, nil
}

func title(s string) string {
	if s == "" {
		return ""
	}
	const most = 60
	return ": " + oneLine(s, most)
}

// claudeFix adds what a person can do about an error of a session of Claude Code.
func claudeFix(err error) error {
	var own *fixed
	if !errors.Is(err, tidemark.ErrNotFound) || errors.As(err, &own) {
		return err
	}
	return &fixed{err, "give the id of a session, or latest, in the folder of its project; --all-projects looks at all of them"}
}

// trimClaude takes a snapshot of a session of Claude Code and makes a trimmed session of it that can be resumed.
func (m *Main) trimClaude(ctx context.Context, ref string, p primitive) error {
	if err := p.check(m); err != nil {
		return err
	}
	store, err := m.claudeStore()
	if err != nil {
		return err
	}
	of, err := m.pickClaude(ctx, store, ref, p.allProjects)
	if err != nil {
		return err
	}
	node, made, err := store.Trim(ctx, of, claude.SnapshotOptions{Name: p.snapshot, Description: p.description, Tags: p.tags}, p.claudeOptions())
	if err != nil {
		return err
	}
	if err := m.tellClaude(ctx, node, made, p); err != nil {
		return err
	}
	return m.launchMade(p)
}

func (p *primitive) claudeOptions() claude.BranchOptions {
	return claude.BranchOptions{Name: p.name, Trim: !p.whole, Threshold: p.threshold, Orientation: p.orientation, Dir: p.dir, DryRun: p.dryRun}
}

// tellClaude prints what was made for Claude Code. What is to be launched is for [Main.launchMade].
func (m *Main) tellClaude(ctx context.Context, node snapshot.Node, made claude.Branch, p primitive) error {
	if m.json {
		return m.printJSON(struct {
			Snapshot snapshot.Node `json:"snapshot"`
			claude.Branch
			DryRun bool `json:"dry_run,omitempty"`
		}{node, made, p.dryRun})
	}
	if node.ID != "" {
		m.tellSnapshot(origin(!p.kept), node)
	}
	if p.dryRun {
		m.out.printf("branch    %s would be made; nothing was written\n", made.Log)
	} else {
		m.out.printf("branch    %s\n", made.Log)
	}
	if t := made.Trim; t != nil {
		m.out.printf("trimmed   %s\n", trimmed(made.Untrimmed, made.Node.Tokens, t.ToolResultsStubbed, t.ToolUseInputsStubbed, t.SignaturesStripped, t.ImagesStripped))
	}
	if p.dryRun {
		return nil
	}
	if p.launch {
		*p.made = made
		return nil
	}
	m.out.printf("go on     %s\n", made.Command())
	return nil
}

// launchMade resumes what was made, when that was asked for. It comes last: the store is free again while somebody
// talks to Claude Code.
func (m *Main) launchMade(p primitive) error {
	if !p.launch || p.made.Session == "" {
		return nil
	}
	child, err := p.made.Resume()
	if errors.Is(err, tidemark.ErrNotFound) {
		return &fixed{errors.New("launch: there is no program claude on the path"), "go on where it is with: " + p.made.Command()}
	}
	if err != nil {
		return err
	}
	if err := m.runCommand(child, m.Environ); err != nil {
		m.err.printf("claude did not end well; the session is there: %s\n", p.made.Command())
		return err
	}
	return nil
}
