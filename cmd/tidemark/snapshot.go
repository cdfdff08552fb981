package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
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
	return cli.Either(m, n, func() {
		tellSnapshot(m, "snapshot", n)
	})
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
	err = cli.Either(m, done, func() {
		if len(done.Damaged) == 0 {
			m.Out.Printf("%s of Claude Code, %s read: nothing is damaged\n", all, cli.Size(done.Bytes))
			return
		}
		cli.Columns(m.Out, done.Damaged, []string{"ID", "NAME", "OF", "TAKEN", "PROBLEM"}, func(d claude.Damaged) []string {
			return []string{d.Node.ID, cli.OneLine(d.Node.Name, 40), d.Node.Session, snapshot.Age(d.Node.Created, now()), cli.Safe(d.Problem)}
		})
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

func tagged(n snapshot.Node, tags []string) bool {
	for _, t := range tags {
		if !slices.Contains(n.Tags, t) {
			return false
		}
	}
	return true
}

// ofSession says which session a node is of, and of which program.
func ofSession(n snapshot.Node) string {
	if n.Of == snapshot.OfClaude {
		return "claude " + n.Session
	}
	return cli.PlainKey(n.Session)
}

// showNode prints a node with its ancestors and what is right below it.
func showNode(ctx context.Context, m *cli.Main, c *client, w worlds, n snapshot.Node) error {
	if m.JSON {
		return m.PrintJSON(n)
	}
	var all []snapshot.Node
	var err error
	if n.Of == snapshot.OfClaude {
		all, err = claudeNodes(ctx, m)
	} else {
		all, err = sessionNodes(ctx, c, w)
	}
	if err != nil {
		return err
	}
	rows := [][]string{{"id", n.ID}, {n.Kind, n.Name}, {"of", ofSession(n)}, {"taken", n.Created.Local().Format("2006-01-02 15:04:05")},
		{"messages", fmt.Sprint(n.Messages)}}
	add := func(what, text string) {
		if text != "" && text != "0" {
			rows = append(rows, []string{what, text})
		}
	}
	add("tokens", fmt.Sprint(n.Tokens))
	add("tags", strings.Join(n.Tags, " "))
	add("hash", string(n.Hash))
	if n.Trimmed {
		add("trimmed", "yes")
	}
	add("from", strings.Join(ancestors(all, n), " < "))
	for _, o := range all {
		if o.Parent == n.ID && o.Of == n.Of {
			add("made of it", o.Kind+" "+o.Name+"  "+cli.PlainKey(o.ID))
		}
	}
	cli.PrintTable(m.Out, rows)
	if n.Description != "" {
		m.Out.Line(n.Description)
	}
	return nil
}

// ancestors are the snapshots that a node goes back to, the nearest first.
func ancestors(all []snapshot.Node, n snapshot.Node) []string {
	at := map[string]snapshot.Node{}
	for _, o := range all {
		if o.Of == n.Of {
			at[o.ID] = o
		}
	}
	const most = 10
	var out []string
	for p := n.Parent; p != ""; {
		o, ok := at[p]
		if !ok {
			return append(out, p+" (not here)")
		}
		if len(out) == most {
			return append(out, "…")
		}
		out, p = append(out, o.Name), o.Parent
	}
	return out
}

// dropClaude removes one of Claude Code, and says what stands without it now.
func dropClaude(ctx context.Context, m *cli.Main, store *claude.Store, id string) error {
	n, freed, err := store.Drop(ctx, id)
	if err != nil {
		return err
	}
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return err
	}
	alone := 0
	for _, o := range nodes {
		if o.Parent == n.ID {
			alone++
		}
	}
	return cli.Either(m, map[string]any{"removed": n, "bytes": freed, "children": alone}, func() {
		m.Out.Printf("%s %q is forgotten; %s were freed\n", n.Kind, n.Name, cli.Size(freed))
		if alone > 0 {
			m.Out.Printf("%s made of it: in the tree without a parent now\n", cli.Plural(alone, "node"))
		}
	})
}

// removeSnapshot removes one of a session.
func removeSnapshot(ctx context.Context, m *cli.Main, c *client, n snapshot.Node) error {
	if n.Kind == snapshot.KindBranch {
		return cli.Advise(fmt.Errorf("%s is a branch, which is a session of its own: %w", cli.PlainKey(n.ID), tidemark.ErrInvalid), "only snapshots are removed; what a branch said stays")
	}
	if err := c.Call(ctx, http.MethodDelete, cli.SessionPath(n.Session, "/snapshots/"+url.PathEscape(n.ID)), nil, &n); err != nil {
		return err
	}
	return cli.Either(m, map[string]any{"removed": n}, func() {
		m.Out.Printf("snapshot %q of %s is removed; its messages stay\n", n.Name, cli.PlainKey(n.Session))
	})
}

type snapshotsFlags struct {
	worlds
	Tag cli.Repeated
}

func snapshotLs(ctx context.Context, m *cli.Main, f *snapshotsFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	all, err := allNodes(ctx, m, f.worlds)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(append(append([]snapshot.Node{}, all.sessions...), all.claude...), func(n snapshot.Node) bool {
		return n.Kind != snapshot.KindSnapshot || !tagged(n, f.Tag)
	})
	slices.SortStableFunc(list, func(a, b snapshot.Node) int { return b.Created.Compare(a.Created) })
	err = cli.Rows(m, list, []string{"ID", "NAME", "OF", "MESSAGES", "TOKENS", "TAKEN", "TAGS", "DESCRIPTION"}, func(n snapshot.Node) []string {
		return []string{n.ID, cli.OneLine(n.Name, 40), ofSession(n), fmt.Sprint(n.Messages), snapshot.Short(n.Tokens),
			snapshot.Age(n.Created, now()), strings.Join(n.Tags, " "), cli.OneLine(n.Description, 60)}
	})
	if m.JSON {
		return err
	}
	return cmp.Or(err, all.err)
}

func snapshotShow(ctx context.Context, m *cli.Main, f *worlds) error {
	return withNode(ctx, m, *f, m.Args[0], func(c *client, n snapshot.Node) error { return showNode(ctx, m, c, *f, n) })
}

func snapshotRm(ctx context.Context, m *cli.Main, f *worlds) error {
	return withNode(ctx, m, *f, m.Args[0], func(c *client, n snapshot.Node) error {
		if n.Of == snapshot.OfSession {
			return removeSnapshot(ctx, m, c, n)
		}
		store, err := claudeStore(m)
		if err != nil {
			return err
		}
		return dropClaude(ctx, m, store, n.ID)
	})
}
