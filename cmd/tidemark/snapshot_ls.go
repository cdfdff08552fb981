package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/snapshot"
)

func (m *Main) snapshotLs() *cobra.Command {
	var w worlds
	var tags []string
	c := &cobra.Command{Use: "ls", Short: "List snapshots, newest first", Args: cobra.NoArgs,
		Example: `  tidemark snapshot ls
  tidemark snapshot ls --session garden --tag plan
  tidemark snapshot ls --claude --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.check(); err != nil {
				return err
			}
			all, err := m.allNodes(cmd.Context(), w)
			if err != nil {
				return err
			}
			list := slices.DeleteFunc(slices.Concat(all.sessions, all.claude), func(n snapshot.Node) bool {
				return n.Kind != snapshot.KindSnapshot || !tagged(n, tags)
			})
			slices.SortStableFunc(list, func(a, b snapshot.Node) int { return b.Created.Compare(a.Created) })
			if m.json {
				return m.printJSON(append([]snapshot.Node{}, list...))
			}
			rows := [][]string{{"ID", "NAME", "OF", "MESSAGES", "TOKENS", "TAKEN", "TAGS", "DESCRIPTION"}}
			for _, n := range list {
				rows = append(rows, []string{n.ID, oneLine(n.Name, 40), ofSession(n), fmt.Sprint(n.Messages), snapshot.Short(n.Tokens),
					snapshot.Age(n.Created, now()), strings.Join(n.Tags, " "), oneLine(n.Description, 60)})
			}
			table(m.out, rows)
			return all.err
		}}
	w.flags(c)
	c.Flags().StringArrayVar(&tags, "tag", nil, "only those with this tag; may be repeated, then all of them")
	return m.jsonFlag(c)
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
	return plainKey(n.Session)
}

func (m *Main) snapshotShow() *cobra.Command {
	var w worlds
	c := &cobra.Command{Use: "show REF", Short: "Show one snapshot or branch, and what was made of it", Args: oneRef,
		Long: `Show one snapshot or branch. REF is an id, the beginning of one, or a name that only one has.`,
		Example: `  tidemark snapshot show before-refactor
  tidemark snapshot show snap-01k… --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.withNode(cmd.Context(), w, args[0], func(c *client, n snapshot.Node) error { return m.showNode(cmd.Context(), c, w, n) })
		}}
	w.flags(c)
	return m.jsonFlag(c)
}

// showNode prints a node with its ancestors and what is right below it.
func (m *Main) showNode(ctx context.Context, c *client, w worlds, n snapshot.Node) error {
	if m.json {
		return m.printJSON(n)
	}
	var all []snapshot.Node
	var err error
	if n.Of == snapshot.OfClaude {
		all, err = m.claudeNodes(ctx)
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
			add("made of it", o.Kind+" "+o.Name+"  "+plainKey(o.ID))
		}
	}
	table(m.out, rows)
	if n.Description != "" {
		m.out.line(n.Description)
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

func (m *Main) snapshotRm() *cobra.Command {
	c := &cobra.Command{Use: "rm REF", Short: "Forget a snapshot or branch of Claude Code", Args: oneRef,
		Long: `Forget a snapshot or branch of Claude Code, and remove what only it needed. Sessions that
were made of it stay, and so do their logs. Snapshots of sessions of Tidemark are rows
that cost nothing and are never removed.`,
		Example: `  tidemark snapshot rm analysed`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.HasPrefix(args[0], "snap-") {
				return usagef("%s: %s is a snapshot of a session of Tidemark: those never change and cost a row each; rm is for Claude Code's", cmd.CommandPath(), args[0])
			}
			n, err := m.findNode(cmd.Context(), nil, worlds{claude: true}, args[0])
			if errors.Is(err, tidemark.ErrNotFound) {
				return &fixed{err, "rm forgets what `tidemark snapshot ls --claude` shows; snapshots of sessions of Tidemark are rows that stay"}
			}
			if err != nil {
				return err
			}
			store, err := m.claudeStore()
			if err != nil {
				return err
			}
			n, freed, err := store.Drop(cmd.Context(), n.ID)
			if err != nil {
				return err
			}
			if m.json {
				return m.printJSON(map[string]any{"removed": n, "bytes": freed})
			}
			m.out.printf("%s %q is forgotten; %s were freed\n", n.Kind, n.Name, size(freed))
			return nil
		}}
	return m.jsonFlag(c)
}
