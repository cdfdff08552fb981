package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/snapshot"
)

func (m *Main) snapshotCheck() *cobra.Command {
	c := &cobra.Command{Use: "check [REF]", Short: "Read all that is kept of Claude Code, and tell of damage", Args: cobra.MaximumNArgs(1),
		Long: `Read what snapshots of Claude Code's sessions keep, of one (REF) or of all, and hold
each piece against its hash. Nothing is changed; 1 is the exit code when one is damaged.

What is damaged is written again when its archive is imported, and when its session is
kept again while the log is there.`,
		Example: `  tidemark snapshot check
  tidemark snapshot check analysed`,
		RunE: func(cmd *cobra.Command, args []string) error { return m.checkClaude(cmd.Context(), args) }}
	return m.jsonFlag(c)
}

func (m *Main) checkClaude(ctx context.Context, args []string) error {
	ref := ""
	for _, a := range args {
		n, err := m.findNode(ctx, nil, worlds{claude: true}, a)
		if err != nil {
			return err
		}
		ref = n.ID
	}
	store, err := m.claudeStore()
	if err != nil {
		return err
	}
	done, err := store.Check(ctx, ref)
	if err != nil {
		return err
	}
	all := plural(done.Snapshots, "snapshot")
	switch {
	case m.json:
		if err := m.printJSON(done); err != nil {
			return err
		}
	case len(done.Damaged) == 0:
		m.out.printf("%s of Claude Code, %s read: nothing is damaged\n", all, size(done.Bytes))
	default:
		rows := [][]string{{"ID", "NAME", "OF", "TAKEN", "PROBLEM"}}
		for _, d := range done.Damaged {
			rows = append(rows, []string{d.Node.ID, oneLine(d.Node.Name, 40), d.Node.Session, snapshot.Age(d.Node.Created, now()), safe(d.Problem)})
		}
		table(m.out, rows)
	}
	if bad := len(done.Damaged); bad > 0 {
		return &fixed{fmt.Errorf("%d of %s damaged", bad, all),
			"`tidemark snapshot import` of its archive writes it again; so does `tidemark snapshot NAME --claude SESSION` while the log is there"}
	}
	return nil
}

// mended tells of pieces that were damaged in the store.
func mended(objects int) string {
	return fmt.Sprintf("the store had %s, written again now; `tidemark snapshot check` looks at the rest", plural(objects, "damaged piece"))
}
