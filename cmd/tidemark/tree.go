package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// bothWorlds is what is kept, by program. err is what kept one of them from being read.
type bothWorlds struct {
	sessions, claude []snapshot.Node
	err              error
}

// allNodes lists the nodes of both programs. What one of them holds is given although the other cannot be read.
func allNodes(ctx context.Context, m *cli.Main, w worlds) (bothWorlds, error) {
	var all bothWorlds
	var ofClaude, ofSessions error
	if w.Session == "" {
		all.claude, ofClaude = claudeNodes(ctx, m)
	}
	if !w.Claude {
		looked := false
		ofSessions = with(ctx, m, func(c *client) (err error) {
			looked = true
			all.sessions, err = sessionNodes(ctx, c, w)
			return err
		})
		if ofSessions != nil && !looked {
			all.sessions, ofSessions = storedNodes(ctx, m, w, ofSessions)
		}
	}
	if all.err = errors.Join(ofSessions, ofClaude); len(all.sessions)+len(all.claude) == 0 {
		return all, all.err
	}
	return all, nil
}

// drawTrees prints the trees of both programs, each below its name.
func drawTrees(m *cli.Main, sessions, claude snapshot.Tree, ids bool) error {
	drawn := false
	for _, t := range []struct {
		head string
		tree snapshot.Tree
	}{{"Sessions of Tidemark", sessions}, {"Sessions of Claude Code", claude}} {
		if len(t.tree.Rows) == 0 {
			continue
		}
		if drawn {
			m.Out.Line()
		}
		drawn = true
		m.Out.Line(m.Dim(t.head))
		for i := range t.tree.Rows {
			if r := &t.tree.Rows[i]; r.Of == snapshot.OfSession {
				r.Session, r.ID = cli.PlainKey(r.Session), cli.PlainKey(r.ID)
			}
		}
		if err := t.tree.Text(m.Out, snapshot.TextOptions{IDs: ids, Now: now}); err != nil {
			return err
		}
	}
	if !drawn {
		m.Err.Line("there is no snapshot yet; `tidemark snapshot NAME` takes one")
	}
	return nil
}

type treeFlags struct {
	worlds
	Depth int
	IDs   bool `flag:"ids"`
}

func tree(ctx context.Context, m *cli.Main, f *treeFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if m.Changed("depth") && f.Depth <= 0 {
		return cli.Usagef("--depth %d: want how many levels to show, 1 or more", f.Depth)
	}
	all, err := allNodes(ctx, m, f.worlds)
	if err != nil {
		return err
	}
	sessions, claude := snapshot.Grow(all.sessions).To(f.Depth), snapshot.Grow(all.claude).To(f.Depth)
	if m.JSON {
		err = m.PrintJSON(append(append([]snapshot.Row{}, sessions.Rows...), claude.Rows...))
	} else {
		err = drawTrees(m, sessions, claude, f.IDs)
	}
	return cmp.Or(err, all.err)
}
