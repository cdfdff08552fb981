package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// now is the clock of what is shown.
func now() time.Time { return time.Now() }

// workingDir is the folder that the program was called in, "" when there is none any more.
func (m *Main) workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// taken is what a snapshot is asked for with.
type taken struct {
	session, claude, at, description string
	tags                             []string
	allProjects                      bool
}

func (m *Main) snapshotCommand() *cobra.Command {
	var t taken
	c := &cobra.Command{
		Use: "snapshot NAME", Short: "Keep a session as it is now, to branch from later",
		Long: `Keep a session as it is now under a name, and list, show, carry and remove what was
kept. The session goes on as if nothing had happened; a snapshot never changes.

A snapshot is of a session of Tidemark (--session KEY, main when nothing is said) or of
a session of Claude Code (--claude ID, or latest for the one that was last worked in of
the project in this folder; a branch that nobody went on in is not it). NAME is a label of letters, digits, spaces and - _ . and may be used again; the
id that is printed is not.

A snapshot of a session of Tidemark costs a row, one of Claude Code what is new in its
log since the last one.`,
		Example: `  tidemark snapshot before-refactor
  tidemark snapshot "the plan is agreed" --session garden --tag plan
  tidemark snapshot analysed --claude latest --description "knows the code base"
  tidemark snapshot ls
  tidemark branch before-refactor --name try-two`,
		Args: snapshotName,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.Join(args, "")
			if name == "" && t.session == "" && t.claude == "" {
				return usagef("%s: want a NAME, such as `tidemark snapshot before-refactor`, or one of: %s", cmd.CommandPath(), names(cmd))
			}
			if err := t.check(name); err != nil {
				return err
			}
			if t.claude != "" {
				return m.snapshotClaude(cmd.Context(), name, t)
			}
			return m.snapshotSession(cmd.Context(), name, t)
		},
	}
	fl := c.Flags()
	fl.StringVar(&t.session, "session", "", "the session to keep (default main)")
	fl.StringVar(&t.claude, "claude", "", "the session of Claude Code to keep: its id, or latest, the one last worked in")
	fl.BoolVar(&t.allProjects, "all-projects", false, "with --claude latest: of all projects, not of this folder's")
	fl.StringVar(&t.at, "at", "", "the id of its last message, as the command log shows it (default the newest)")
	fl.StringVar(&t.description, "description", "", "what it is for")
	fl.StringArrayVar(&t.tags, "tag", nil, "a tag; may be repeated")
	c.AddCommand(m.snapshotLs(), m.snapshotShow(), m.snapshotExport(), m.snapshotImport(), m.snapshotCheck(), m.snapshotRm())
	return m.jsonFlag(c)
}

// snapshotName takes one name, and refuses one that could not be told from a command.
func snapshotName(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		for _, sub := range cmd.Commands() {
			if slices.Contains(args[1:], sub.Name()) {
				return usagef("%s: %q is a command and stands first: `%s %s …`", cmd.CommandPath(), sub.Name(), cmd.CommandPath(), sub.Name())
			}
		}
		return usagef("%s: want one NAME, got %d; put it in quotes: %q", cmd.CommandPath(), len(args), strings.Join(args, " "))
	}
	reserved := []string{"list", "new", "take", "delete", "remove", "help", "completion"}
	for _, sub := range cmd.Commands() {
		reserved = append(reserved, sub.Name())
	}
	for _, name := range args {
		if slices.Contains(reserved, strings.ToLower(name)) {
			return usagef("%s: the name %q could not be told from a command (%s); choose another, such as %q", cmd.CommandPath(), name, names(cmd), name+"-1")
		}
	}
	return nil
}

func (t *taken) check(name string) error {
	switch {
	case t.session != "" && t.claude != "":
		return usagef("--session and --claude: want one of them")
	case t.claude == "" && t.allProjects:
		return usagef("--all-projects: goes with --claude latest")
	case t.claude != "" && t.at != "":
		return usagef("--at: is for sessions of Tidemark; a log of Claude Code is kept up to its last whole line")
	}
	for what, err := range map[string]error{"": nameOr(name), "--description: ": snapshot.CheckDescription(t.description), "--tag: ": snapshot.CheckTags(t.tags)} {
		if err != nil {
			return usagef("%s%s", what, plainError(err))
		}
	}
	return nil
}

func (m *Main) snapshotSession(ctx context.Context, name string, t taken) error {
	key := t.session
	if key == "" {
		key = "main"
	}
	return m.with(ctx, func(c *client) error {
		var n snapshot.Node
		body := map[string]any{"name": name, "description": t.description, "tags": t.tags, "at": t.at}
		err := c.post(ctx, sessionPath(key, "/snapshots"), body, &n)
		var answer *apiError
		if t.at != "" && errors.As(err, &answer) && answer.Type == "not_found" && !strings.Contains(answer.Message, "session") {
			return &fixed{err, "`tidemark log '" + plainKey(key) + "'` shows the messages of the session with their ids"}
		}
		if err != nil {
			return err
		}
		return m.tellNode(n)
	})
}

func (m *Main) snapshotClaude(ctx context.Context, name string, t taken) error {
	store, err := m.claudeStore()
	if err != nil {
		return err
	}
	of, err := m.pickClaude(ctx, store, t.claude, t.allProjects)
	if err != nil {
		return err
	}
	n, err := store.Snapshot(ctx, of, claude.SnapshotOptions{Name: name, Description: t.description, Tags: t.tags})
	if err != nil {
		return err
	}
	return m.tellNode(n)
}

// tellNode prints a new snapshot.
func (m *Main) tellNode(n snapshot.Node) error {
	if m.json {
		return m.printJSON(n)
	}
	m.tellSnapshot("snapshot", n)
	return nil
}
