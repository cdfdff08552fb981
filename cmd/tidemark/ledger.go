package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/agent"
)

func (m *Main) memoryLedger() *cobra.Command {
	var of string
	var limit int
	c := &cobra.Command{Use: "ledger", Short: "What counts no more of what was remembered, and why", Args: cobra.NoArgs,
		Long: `To compare facts (recall.reconcile) removes nothing: rows say which fact a newer one
replaces (UPDATE) or ends (DELETE), with reason and sources. What is named there
leaves search, prompt and digest, and stays in its file.`,
		Example: `  tidemark memory ledger
  tidemark memory ledger undo 12`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var out struct {
					Rows  []agent.Row `json:"rows"`
					Night agent.Night `json:"night"`
				}
				if err := c.get(cmd.Context(), agentPath(of, "/memory/ledger?limit="+strconv.Itoa(limit)), &out); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(out)
				}
				if len(out.Rows) == 0 {
					return nothing(m, 0, "no fact was replaced or ended")
				}
				rows := [][]string{{"ID", "WHEN", "ACTION", "FACT", "BY", "WHY"}}
				for _, r := range out.Rows {
					id := strconv.FormatInt(r.ID, 10)
					if !r.InForce {
						id += " (undone)"
					}
					rows = append(rows, []string{id, when(r.At), string(r.Action), oneLine(r.Fact, 60), oneLine(r.By, 60), oneLine(r.Who+": "+r.Reason, 80)})
				}
				table(m.out, rows)
				return nil
			})
		}}
	agentFlag(c, &of)
	c.Flags().IntVar(&limit, "limit", 50, "how many at most")
	c.AddCommand(m.memoryLedgerUndo())
	return m.jsonFlag(c)
}

func (m *Main) memoryLedgerUndo() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "undo ID", Short: "Have a fact count again; no sweep decides on it any more", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id <= 0 {
				return &fixed{fmt.Errorf("%q is no id of a row", args[0]), "`tidemark memory ledger` shows them"}
			}
			return m.with(cmd.Context(), func(c *client) error {
				var out struct {
					ID int64 `json:"id"`
				}
				if err := c.post(cmd.Context(), agentPath(of, "/memory/ledger/undo"), map[string]int64{"id": id}, &out); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(out)
				}
				m.out.printf("row %d is taken back: its fact counts again\n", out.ID)
				return nil
			})
		}}
	agentFlag(c, &of)
	return m.jsonFlag(c)
}

func (m *Main) memoryDigest() *cobra.Command {
	var of string
	var write bool
	c := &cobra.Command{Use: "digest", Short: "The digest of what is remembered, as it would be written now", Args: cobra.NoArgs,
		Long: `Print the digest of the owner's facts, sittings and compactions. With --write, do what
belongs to the night now: compare facts (recall.reconcile) and write memory/DIGEST.md
(memory.digest). What a person wrote there is never overwritten.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				if write {
					var done agent.Consolidated
					if err := c.post(cmd.Context(), agentPath(of, "/memory/digest"), map[string]string{}, &done); err != nil {
						return err
					}
					if m.json {
						return m.printJSON(done)
					}
					if done.Note != "" {
						m.err.line(done.Note)
						return nil
					}
					m.out.printf("%d decided, %d files written, %d as they were\n", done.Decided, len(done.Written), done.Unchanged)
					if len(done.Suggested) > 0 {
						m.out.printf("a person edited the digest, ours is in %s\n", strings.Join(done.Suggested, ", "))
					}
					return nil
				}
				var out struct {
					Path    string `json:"path"`
					Text    string `json:"text"`
					Entries int    `json:"entries"`
					Details []struct {
						Path    string `json:"path"`
						Entries int    `json:"entries"`
					} `json:"details"`
				}
				if err := c.get(cmd.Context(), agentPath(of, "/memory/digest"), &out); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(out)
				}
				m.out.printf("%s", out.Text)
				return nil
			})
		}}
	agentFlag(c, &of)
	c.Flags().BoolVar(&write, "write", false, "compare facts and write the files now")
	return m.jsonFlag(c)
}
