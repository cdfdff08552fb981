package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

func (m *Main) mergeCommand() *cobra.Command {
	var w worlds
	var into, note string
	c := &cobra.Command{
		Use: "merge BRANCH", Short: "Bring the outcome of a branch back as a note", Args: oneRef,
		Long: `Put the outcome of a branch at the end of the session that it was branched from, as a
note that the model reads with the next message. It is nobody's words and begins no
turn. The note is what the branch said last, or --note. What a branch came to is merged
once; when it has said more since, it can be merged again.`,
		Example: `  tidemark merge 'main#try-two'
  tidemark merge try-two --note "A ring buffer is enough; see buffer.go."
  tidemark merge 'main#try-two' --into garden`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error { return m.merge(cmd.Context(), c, w, args[0], into, note) })
		},
	}
	agentFlag(c, &w.agent)
	c.Flags().StringVar(&into, "into", "", "the session to put it in (default the one that the branch came from)")
	c.Flags().StringVar(&note, "note", "", "the outcome in your words")
	return m.jsonFlag(c)
}

func (m *Main) merge(ctx context.Context, c *client, w worlds, ref, into, note string) error {
	branch, nodes, err := m.findBranch(ctx, c, w, ref)
	if err != nil {
		return err
	}
	if into == "" {
		i := slices.IndexFunc(nodes, func(n snapshot.Node) bool { return n.ID == branch.Parent })
		if i < 0 {
			return &fixed{fmt.Errorf("%s: the snapshot that it came from is not here", plainKey(branch.ID)), "name the session: --into KEY"}
		}
		into = nodes[i].Session
	}
	var made session.Merged
	if err := c.post(ctx, sessionPath(into, "/merge"), map[string]string{"from": branch.Session, "note": note}, &made); err != nil {
		return err
	}
	if m.json {
		return m.printJSON(made)
	}
	if made.Again {
		m.err.line("it was there already: nothing was said in the branch since")
	}
	m.out.printf("%s in %s:\n%s\n", made.Entry, plainKey(string(made.Key)), made.Text)
	return nil
}

// findBranch finds a branch of a session by its key or name, with what else its conversation has.
func (m *Main) findBranch(ctx context.Context, c *client, w worlds, ref string) (snapshot.Node, []snapshot.Node, error) {
	key, err := tidemark.ParseKey(ref)
	var nodes []snapshot.Node
	if err == nil && key != key.Root() {
		w.session = string(key) // the session knows, before its agent does
	}
	if nodes, err = sessionNodes(ctx, c, w); err != nil {
		return snapshot.Node{}, nil, err
	}
	branches := slices.DeleteFunc(slices.Clone(nodes), func(n snapshot.Node) bool { return n.Kind != snapshot.KindBranch })
	if i := slices.IndexFunc(branches, func(n snapshot.Node) bool { return n.ID == string(key) }); i >= 0 && key != "" {
		return branches[i], nodes, nil
	}
	n, err := snapshot.Find(branches, ref)
	if i := slices.IndexFunc(nodes, func(n snapshot.Node) bool { return n.Session == string(key) }); errors.Is(err, tidemark.ErrNotFound) && i >= 0 && key != "" {
		return n, nil, &fixed{fmt.Errorf("%s: is a session, no branch", ref), "`tidemark tree` shows its branches; name one, such as '" + ref + "#NAME'"}
	}
	if errors.Is(err, tidemark.ErrNotFound) {
		return n, nil, &fixed{fmt.Errorf("branch %s: not found among the sessions of Tidemark", ref), "`tidemark tree` shows the branches there are"}
	}
	return n, nodes, err
}
