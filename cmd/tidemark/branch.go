package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/trim"
)

func (m *Main) branchCommand() *cobra.Command {
	var w worlds
	var p primitive
	c := &cobra.Command{
		Use: "branch REF", Short: "Begin a session of its own from a snapshot", Args: oneRef,
		Long: `Begin a session that goes on from a snapshot. The session that the snapshot is of, and
other branches of it, see nothing of what is said there. REF is the id of the snapshot,
the beginning of its id, or its name when only one has it.

The branch is trimmed: raw outputs of tools, images, thinking and bookkeeping go, what
people and the model said stays. --no-trim copies everything. A branch of a session of
Tidemark is called SESSION#NAME; one of Claude Code is a new session log, and what to
type to resume it is printed (--launch does it).`,
		Example: `  tidemark branch before-refactor
  tidemark branch before-refactor --name try-two --orientation "This time without a cache."
  tidemark branch snap-01k… --no-trim
  tidemark branch analysed --launch`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.given(cmd); err != nil {
				return err
			}
			if err := p.check(m); err != nil {
				return err
			}
			err := m.withNode(cmd.Context(), w, args[0], func(c *client, n snapshot.Node) error { return m.branch(cmd.Context(), c, n, p) })
			if err != nil {
				return err
			}
			return m.launchMade(p)
		},
	}
	w.flags(c)
	p.branchFlags(c.Flags())
	c.Flags().BoolVar(&p.whole, "no-trim", false, "with everything that is there")
	c.Flags().IntVar(&p.threshold, "threshold", 0, "characters over which an output of a tool goes (default 500, least 50)")
	return m.jsonFlag(c)
}

// given holds the threshold to what it may be, as `tidemark trim` does.
func (p *primitive) given(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("threshold") {
		return nil
	}
	if p.threshold <= 0 {
		return usagef("--threshold %d: want a number of characters over 0, such as %d", p.threshold, trim.DefaultThreshold)
	}
	if p.whole {
		return usagef("--threshold and --no-trim: want one of them")
	}
	return nil
}

// branch makes a branch of a snapshot that was found.
func (m *Main) branch(ctx context.Context, c *client, n snapshot.Node, p primitive) error {
	if p.threshold > 0 && p.threshold < trim.MinThreshold {
		m.err.printf("--threshold %d: acts as %d, the least\n", p.threshold, trim.MinThreshold)
	}
	if n.Kind == snapshot.KindBranch {
		return m.branchOfBranch(n)
	}
	if n.Of == snapshot.OfClaude {
		store, err := m.claudeStore()
		if err != nil {
			return err
		}
		p.kept = true
		made, err := store.Branch(ctx, n.ID, p.claudeOptions())
		if err != nil {
			return err
		}
		return m.tellClaude(ctx, n, made, p)
	}
	if err := p.ofSessions(n.Session); err != nil {
		return err
	}
	return m.makeBranch(ctx, c, n.Session, "/branch", p.body(map[string]any{"snapshot": n.ID, "trim": !p.whole}))
}

// branchOfBranch says how to go on from a branch: it is no fixed place.
func (m *Main) branchOfBranch(n snapshot.Node) error {
	flag, ref := "--session", "'"+plainKey(n.Session)+"'"
	if n.Of == snapshot.OfClaude {
		flag, ref = "--claude", n.Session
	}
	return &fixed{fmt.Errorf("%s is a branch, and goes on; a branch begins at a snapshot", plainKey(n.ID)),
		fmt.Sprintf("keep it as it is now and branch from that: `tidemark trim %s %s`, or `tidemark snapshot NAME %s %s`", flag, ref, flag, ref)}
}
