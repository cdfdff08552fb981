package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/claude"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/snapshot"
)

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
	if m.JSON {
		return m.PrintJSON(map[string]any{"removed": n, "bytes": freed, "children": alone})
	}
	m.Out.Printf("%s %q is forgotten; %s were freed\n", n.Kind, n.Name, cli.Size(freed))
	if alone > 0 {
		m.Out.Printf("%s made of it: in the tree without a parent now\n", cli.Plural(alone, "node"))
	}
	return nil
}

// removeSnapshot removes one of a session.
func removeSnapshot(ctx context.Context, m *cli.Main, c *client, n snapshot.Node) error {
	if n.Kind == snapshot.KindBranch {
		return cli.Advise(fmt.Errorf("%s is a branch, which is a session of its own: %w", cli.PlainKey(n.ID), tidemark.ErrInvalid), "only snapshots are removed; what a branch said stays")
	}
	if err := c.Call(ctx, http.MethodDelete, cli.SessionPath(n.Session, "/snapshots/"+url.PathEscape(n.ID)), nil, &n); err != nil {
		return err
	}
	if m.JSON {
		return m.PrintJSON(map[string]any{"removed": n})
	}
	m.Out.Printf("snapshot %q of %s is removed; its messages stay\n", n.Name, cli.PlainKey(n.Session))
	return nil
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
	err = cli.Rows(m, list, []string{"ID", "NAME", "OF", "MESSAGES", "TOKENS", "TAKEN", "TAGS", "DESCRIPTION"}, func(add func(...string)) {
		for _, n := range list {
			add(n.ID, cli.OneLine(n.Name, 40), ofSession(n), fmt.Sprint(n.Messages), snapshot.Short(n.Tokens),
				snapshot.Age(n.Created, now()), strings.Join(n.Tags, " "), cli.OneLine(n.Description, 60))
		}
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
