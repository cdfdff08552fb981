package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
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
	var w worlds
	c := &cobra.Command{Use: "rm REF", Short: "Remove a snapshot", Args: oneRef,
		Long: `Take a snapshot out of all lists, and its name with it. No message goes with it, and
sessions that were made of it stay.

A snapshot of a session of Tidemark that a session began at is not removed: the tree
would not hold together. Of Claude Code any can be removed, and what was made of it then
stands for itself in the tree. A branch that is removed is forgotten to be one. What only
it needed is freed: pieces of logs, and what undoes the trim of a branch whose log is no
more.`,
		Example: `  tidemark snapshot rm before-refactor
  tidemark snapshot rm analysed --claude`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.withNode(cmd.Context(), w, args[0], func(c *client, n snapshot.Node) error {
				if n.Of == snapshot.OfSession {
					return m.removeSnapshot(cmd.Context(), c, n)
				}
				store, err := m.claudeStore()
				if err != nil {
					return err
				}
				return m.dropClaude(cmd.Context(), store, n.ID)
			})
		}}
	w.flags(c)
	return m.jsonFlag(c)
}

// dropClaude removes one of Claude Code, and says what stands without it now.
func (m *Main) dropClaude(ctx context.Context, store *claude.Store, id string) error {
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
	if m.json {
		return m.printJSON(map[string]any{"removed": n, "bytes": freed, "children": alone})
	}
	m.out.printf("%s %q is forgotten; %s were freed\n", n.Kind, n.Name, size(freed))
	if alone > 0 {
		m.out.printf("%s made of it: in the tree without a parent now\n", plural(alone, "node"))
	}
	return nil
}

// removeSnapshot removes one of a session.
func (m *Main) removeSnapshot(ctx context.Context, c *client, n snapshot.Node) error {
	if n.Kind == snapshot.KindBranch {
		return &fixed{fmt.Errorf("%s is a branch, which is a session of its own: %w", plainKey(n.ID), tidemark.ErrInvalid), "only snapshots are removed; what a branch said stays"}
	}
	if err := c.call(ctx, http.MethodDelete, sessionPath(n.Session, "/snapshots/"+url.PathEscape(n.ID)), nil, &n); err != nil {
		return err
	}
	if m.json {
		return m.printJSON(map[string]any{"removed": n})
	}
	m.out.printf("snapshot %q of %s is removed; its messages stay\n", n.Name, plainKey(n.Session))
	return nil
}
