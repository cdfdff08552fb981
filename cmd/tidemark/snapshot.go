package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// now is the clock of what is shown.
func now() time.Time { return time.Now() }

// workingDir is the folder that the program was called in, "" when there is none any more.
func workingDir(m *cli.Main) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// taken is what a snapshot is asked for with.
type taken struct {
	Session, Claude, At, Description string
	Tag                              cli.Repeated
	AllProjects                      bool
}

func (t *taken) check(name string) error {
	switch {
	case t.Session != "" && t.Claude != "":
		return cli.Usagef("--session and --claude: want one of them")
	case t.Claude == "" && t.AllProjects:
		return cli.Usagef("--all-projects: goes with --claude latest")
	case t.Claude != "" && t.At != "":
		return cli.Usagef("--at: is for sessions of Tidemark; a log of Claude Code is kept up to its last whole line")
	}
	for what, err := range map[string]error{"": nameOr(name), "--description: ": snapshot.CheckDescription(t.Description), "--tag: ": snapshot.CheckTags(t.Tag)} {
		if err != nil {
			return cli.Usagef("%s%s", what, cli.PlainError(err))
		}
	}
	return nil
}

func snapshotSession(ctx context.Context, m *cli.Main, name string, t taken) error {
	key := t.Session
	if key == "" {
		key = "main"
	}
	return with(ctx, m, func(c *client) error {
		var n snapshot.Node
		body := map[string]any{"name": name, "description": t.Description, "tags": t.Tag, "at": t.At}
		err := c.Post(ctx, cli.SessionPath(key, "/snapshots"), body, &n)
		var answer *cli.APIError
		if t.At != "" && errors.As(err, &answer) && answer.Type == "not_found" && !strings.Contains(answer.Message, "session") {
			return cli.Advise(err, "`tidemark log '"+cli.PlainKey(key)+"'` shows the messages of the session with their ids")
		}
		if err != nil {
			return err
		}
		return tellNode(m, n)
	})
}

// tellNode prints a new snapshot.
func tellNode(m *cli.Main, n snapshot.Node) error {
	if m.JSON {
		return m.PrintJSON(n)
	}
	tellSnapshot(m, "snapshot", n)
	return nil
}

func snapshotTake(ctx context.Context, m *cli.Main, t *taken) error {
	name := strings.Join(m.Args, "")
	if name == "" && t.Session == "" && t.Claude == "" {
		return cli.Usagef("%s: want a NAME, such as `tidemark snapshot before-refactor`, or one of: %s", m.Path(), cli.Below(m.Cmd))
	}
	if err := t.check(name); err != nil {
		return err
	}
	if t.Claude == "" {
		return snapshotSession(ctx, m, name, *t)
	}
	store, err := claudeStore(m)
	if err != nil {
		return err
	}
	of, err := pickClaude(ctx, m, store, t.Claude, t.AllProjects)
	if err != nil {
		return err
	}
	n, err := store.Snapshot(ctx, of, claude.SnapshotOptions{Name: name, Description: t.Description, Tags: t.Tag})
	if err != nil {
		return err
	}
	return tellNode(m, n)
}

// snapshotName takes one name, and refuses one that could not be told from a command.
func snapshotName(m *cli.Main) error {
	cmd, args := m.Cmd, m.Args
	if len(args) > 1 {
		for _, sub := range cmd.Commands() {
			if slices.Contains(args[1:], sub.Name()) {
				return cli.Usagef("%s: %q is a command and stands first: `%s %s …`", m.Path(), sub.Name(), m.Path(), sub.Name())
			}
		}
		return cli.Usagef("%s: want one NAME, got %d; put it in quotes: %q", m.Path(), len(args), strings.Join(args, " "))
	}
	reserved := []string{"list", "new", "take", "delete", "remove", "help", "completion"}
	for _, sub := range cmd.Commands() {
		reserved = append(reserved, sub.Name())
	}
	for _, name := range args {
		if slices.Contains(reserved, strings.ToLower(name)) {
			return cli.Usagef("%s: the name %q could not be told from a command (%s); choose another, such as %q", m.Path(), name, cli.Below(cmd), name+"-1")
		}
	}
	return nil
}

// snapshotCheck reads what is kept of Claude Code, and fails when some of it is damaged.
func snapshotCheck(ctx context.Context, m *cli.Main) error {
	ref := ""
	for _, a := range m.Args {
		n, err := findNode(ctx, m, nil, worlds{Claude: true}, a)
		if err != nil {
			return err
		}
		ref = n.ID
	}
	store, err := claudeStore(m)
	if err != nil {
		return err
	}
	done, err := store.Check(ctx, ref)
	if err != nil {
		return err
	}
	all := cli.Plural(done.Snapshots, "snapshot")
	err = cli.Either(m, done, func() error {
		if len(done.Damaged) == 0 {
			m.Out.Printf("%s of Claude Code, %s read: nothing is damaged\n", all, cli.Size(done.Bytes))
			return nil
		}
		rows := [][]string{{"ID", "NAME", "OF", "TAKEN", "PROBLEM"}}
		for _, d := range done.Damaged {
			rows = append(rows, []string{d.Node.ID, cli.OneLine(d.Node.Name, 40), d.Node.Session, snapshot.Age(d.Node.Created, now()), cli.Safe(d.Problem)})
		}
		cli.PrintTable(m.Out, rows)
		return nil
	})
	if bad := len(done.Damaged); bad > 0 {
		return cli.Advise(fmt.Errorf("%d of %s damaged", bad, all),
			"`tidemark snapshot import` of its archive writes it again; so does `tidemark snapshot NAME --claude SESSION` while the log is there")
	}
	return err
}

// mended tells of pieces that were damaged in the store.
func mended(objects int) string {
	return fmt.Sprintf("the store had %s, written again now; `tidemark snapshot check` looks at the rest", cli.Plural(objects, "damaged piece"))
}
