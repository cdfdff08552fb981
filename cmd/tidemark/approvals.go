package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
)

func (m *Main) approvalsCommand() *cobra.Command {
	return group("approvals", "Decide about tool calls that wait for you", `  tidemark approvals ls
  tidemark approvals allow K7QM2             runs it once; the turn goes on where the server runs
  tidemark approvals deny K7QM2              the model is told so
Which calls wait is for toolApproval in the configuration to say. In a conversation the answer is: yes K7QM2, or no K7QM2.`,
		m.approvalsLs(), m.approvalDecide("allow", "Let a call run, once", true), m.approvalDecide("deny", "Have a call not run", false))
}

// questions lists what waits in the conversations of all agents.
func (c *client) questions(ctx context.Context) ([]tidemark.Question, error) {
	var agents struct {
		Agents []struct {
			ID string `json:"id"`
		} `json:"agents"`
	}
	if err := c.get(ctx, "/v1/agents", &agents); err != nil {
		return nil, err
	}
	out := []tidemark.Question{}
	for _, a := range agents.Agents {
		var page struct {
			Approvals []tidemark.Question `json:"approvals"`
		}
		if err := c.get(ctx, agentPath(a.ID, "/approvals"), &page); err != nil {
			return nil, err
		}
		out = append(out, page.Approvals...)
	}
	return out, nil
}

func (m *Main) approvalsLs() *cobra.Command {
	return m.jsonFlag(&cobra.Command{Use: "ls", Short: "List the calls that wait", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				list, err := c.questions(cmd.Context())
				if err != nil {
					return err
				}
				if m.json {
					return m.printJSON(list)
				}
				if len(list) == 0 {
					m.out.line("No tool call waits for you.")
					return nil
				}
				rows := [][]string{{"CODE", "TOOL", "SESSION", "UNTIL", "WITH"}}
				for _, q := range list {
					rows = append(rows, []string{q.Code, safe(q.Tool), string(q.Session), q.Expires.Local().Format(time.DateTime), safe(cut(q.Input, 100))})
				}
				table(m.out, rows)
				return nil
			})
		}})
}

func (m *Main) approvalDecide(word, short string, allow bool) *cobra.Command {
	return m.jsonFlag(&cobra.Command{Use: word + " CODE", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error { return m.decideCall(cmd.Context(), c, args[0], allow) })
		}})
}

func (m *Main) decideCall(ctx context.Context, c *client, code string, allow bool) error {
	list, err := c.questions(ctx)
	if err != nil {
		return err
	}
	agent := mainAgent
	for _, q := range list {
		if strings.EqualFold(q.Code, code) {
			agent = q.Session.Agent()
		}
	}
	var out struct {
		Code    string       `json:"code"`
		Allow   bool         `json:"allow"`
		Session tidemark.Key `json:"session"`
		Tool    string       `json:"tool"`
	}
	err = c.post(ctx, agentPath(agent, "/approvals"), map[string]any{"code": code, "allow": allow}, &out)
	var api *apiError
	if errors.As(err, &api) && (api.Status == http.StatusNotFound || api.Status == http.StatusConflict) {
		return &fixed{err, "`tidemark approvals ls` lists the calls that wait"}
	}
	if err != nil {
		return err
	}
	if m.json {
		return m.printJSON(out)
	}
	did := "denied:"
	if allow {
		did = "allowed:"
	}
	m.out.line(did, safe(out.Tool), "in", string(out.Session))
	return nil
}
