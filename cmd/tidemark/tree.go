package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/snapshot"
)

// bothWorlds is what is kept, by program. err is what kept one of them from being read.
type bothWorlds struct {
	sessions, claude []snapshot.Node
	err              error
}

// allNodes lists the nodes of both programs. What one of them holds is given although the other cannot be read.
func (m *Main) allNodes(ctx context.Context, w worlds) (bothWorlds, error) {
	var all bothWorlds
	var ofClaude, ofSessions error
	if w.session == "" {
		all.claude, ofClaude = m.claudeNodes(ctx)
	}
	if !w.claude {
		looked := false
		ofSessions = m.with(ctx, func(c *client) (err error) {
			looked = true
			all.sessions, err = sessionNodes(ctx, c, w)
			return err
		})
		if ofSessions != nil && !looked {
			all.sessions, ofSessions = m.storedNodes(ctx, w, ofSessions)
		}
	}
	if all.err = errors.Join(ofSessions, ofClaude); len(all.sessions)+len(all.claude) == 0 {
		return all, all.err
	}
	return all, nil
}

func (m *Main) treeCommand() *cobra.Command {
	var w worlds
	var levels int
	var ids bool
	c := &cobra.Command{
		Use: "tree", Short: "Draw all snapshots and what was branched from them", Args: cobra.NoArgs,
		Long: `Draw all snapshots and branches: those of sessions of Tidemark, then those of Claude
Code. Below a snapshot stand the branches that were made of it, then the snapshots that
were taken in those. --json prints the same as a flat list, each node with its parent and
depth.`,
		Example: `  tidemark tree
  tidemark tree --depth 2 --ids
  tidemark tree --session garden
  tidemark tree --claude --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.check(); err != nil {
				return err
			}
			if cmd.Flags().Changed("depth") && levels <= 0 {
				return usagef("--depth %d: want how many levels to show, 1 or more", levels)
			}
			all, err := m.allNodes(cmd.Context(), w)
			if err != nil {
				return err
			}
			sessions, claude := snapshot.Grow(all.sessions).To(levels), snapshot.Grow(all.claude).To(levels)
			if m.json {
				if err := m.printJSON(append(append([]snapshot.Row{}, sessions.Rows...), claude.Rows...)); err != nil {
					return err
				}
				return all.err
			}
			if err := m.drawTrees(sessions, claude, ids); err != nil {
				return err
			}
			return all.err
		},
	}
	w.flags(c)
	c.Flags().IntVar(&levels, "depth", 0, "how many levels to show (default all)")
	c.Flags().BoolVar(&ids, "ids", false, "with the id of each snapshot")
	return m.jsonFlag(c)
}

// drawTrees prints the trees of both programs, each below its name.
func (m *Main) drawTrees(sessions, claude snapshot.Tree, ids bool) error {
	drawn := false
	for _, t := range []struct {
		head string
		tree snapshot.Tree
	}{{"Sessions of Tidemark", sessions}, {"Sessions of Claude Code", claude}} {
		if len(t.tree.Rows) == 0 {
			continue
		}
		if drawn {
			m.out.line()
		}
		drawn = true
		m.out.line(m.dim(t.head))
		for i := range t.tree.Rows {
			if r := &t.tree.Rows[i]; r.Of == snapshot.OfSession {
				r.Session, r.ID = plainKey(r.Session), plainKey(r.ID)
			}
		}
		if err := t.tree.Text(m.out, snapshot.TextOptions{IDs: ids, Now: now}); err != nil {
			return err
		}
	}
	if !drawn {
		m.err.line("there is no snapshot yet; `tidemark snapshot NAME` takes one")
	}
	return nil
}
