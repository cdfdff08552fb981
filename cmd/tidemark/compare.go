package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

func (m *Main) compareCommand() *cobra.Command {
	var w worlds
	var previews int
	c := &cobra.Command{
		Use: "compare A B", Short: "Put two branches or snapshots side by side", Args: cobra.ExactArgs(2),
		Long: `Put two places of one conversation side by side: what both have, and for each what was
said since, what it used, which tools it called, which files those named, and what came
of it. A and B are keys of sessions, ids or names of snapshots and branches.`,
		Example: `  tidemark compare main 'main#try-two'
  tidemark compare 'main#try-one' 'main#try-two' --messages 20
  tidemark compare before-refactor main --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error { return m.compare(cmd.Context(), c, w, args, previews) })
		},
	}
	agentFlag(c, &w.agent)
	c.Flags().StringVar(&w.session, "session", "", "a session of the conversation; names are looked up there")
	c.Flags().IntVar(&previews, "messages", 5, "how many messages of each to show, up to 50")
	return m.jsonFlag(c)
}

func (m *Main) compare(ctx context.Context, c *client, w worlds, refs []string, previews int) error {
	q := url.Values{}
	for i, name := range []string{"a", "b"} {
		side, err := m.side(ctx, c, w, refs[i])
		if err != nil {
			return err
		}
		q.Set(name, side)
	}
	if w.session != "" {
		q.Set("session", w.session)
	} else {
		q.Set("agent", w.agent)
	}
	var raw json.RawMessage
	if err := c.get(ctx, "/v1/compare?"+q.Encode(), &raw); err != nil {
		return err
	}
	if m.json {
		return m.printJSON(raw)
	}
	var out session.Comparison
	if err := json.Unmarshal(raw, &out); err != nil {
		return fmt.Errorf("answer of %s to the comparison: %w", c.where, err)
	}
	m.tellComparison(out, previews)
	return nil
}

// side is what the server knows a reference by: the id of a snapshot, or the key of a session.
func (m *Main) side(ctx context.Context, c *client, w worlds, ref string) (string, error) {
	if strings.ContainsAny(ref, "#:") || ref == "main" {
		return ref, nil
	}
	nodes, err := sessionNodes(ctx, c, w)
	if err != nil {
		return "", err
	}
	n, err := m.findNode(ctx, nodes, w, ref)
	var own *fixed
	switch {
	case err == nil && n.Of == snapshot.OfClaude:
		return "", &fixed{fmt.Errorf("%s is of Claude Code; compare is for sessions of Tidemark", n.ID), "`tidemark cost --claude ID` shows what a log holds"}
	case err == nil && n.Kind == snapshot.KindBranch:
		return n.Session, nil
	case err == nil:
		return n.ID, nil
	case !errors.Is(err, tidemark.ErrNotFound):
		return "", err
	}
	if _, bad := tidemark.ParseKey(ref); bad == nil { // a session that nothing was kept of
		if _, gone := c.session(ctx, ref); gone == nil {
			return ref, nil
		}
	}
	if errors.As(err, &own) {
		return "", &fixed{fmt.Errorf("%q: no session, snapshot or branch has that key, id or name", ref), own.fix}
	}
	return "", err
}

// session reads what a listing says of a session.
func (c *client) session(ctx context.Context, key string) (json.RawMessage, error) {
	var raw json.RawMessage
	err := c.get(ctx, sessionPath(key, ""), &raw)
	return raw, err
}

// tellComparison prints a comparison: what both have, a table, then the first messages of each.
func (m *Main) tellComparison(v session.Comparison, previews int) {
	if at := v.Common; at.Messages == 0 {
		m.out.line("they have no message in common")
	} else {
		text := plural(at.Messages, "message") + " in common"
		if at.At != nil {
			text += ", up to " + when(*at.At)
		}
		if at.Snapshot != "" {
			text += ", where " + at.Snapshot + " was taken"
		}
		m.out.line(text)
	}
	m.out.line()
	rows := [][]string{{"", sideName(v.A), sideName(v.B)}}
	for _, r := range sideRows(v.A) {
		rows = append(rows, []string{r[0], r[1], ""})
	}
	for i, r := range sideRows(v.B) {
		rows[i+1][2] = r[1]
	}
	table(m.out, rows)
	for _, s := range []session.Side{v.A, v.B} {
		m.tellSide(s, previews)
	}
}

func sideName(s session.Side) string {
	if s.Node != nil && s.Node.Kind == snapshot.KindSnapshot {
		return s.Node.Name
	}
	return plainKey(s.ID)
}

// sideRows are the figures of one side; both sides have the same rows.
func sideRows(s session.Side) [][2]string {
	tools := make([]string, 0, len(s.Tools))
	for _, t := range s.Tools {
		tools = append(tools, fmt.Sprintf("%s %d", t.Name, t.Calls))
	}
	u := s.Usage
	return [][2]string{
		{"messages", fmt.Sprintf("%d, %d since", s.Messages, s.Since)},
		{"context", snapshot.Short(s.Context) + " tokens"},
		{"read since", fmt.Sprintf("%s, %s of it from the cache", snapshot.Short(u.Input+u.CacheRead+u.CacheCreation), snapshot.Short(u.CacheRead))},
		{"written since", snapshot.Short(u.Output)},
		{"models", few(s.Models, 3)},
		{"tools", few(tools, 5)},
		{"files", few(tails(s.Files), 4)},
	}
}

// tails cuts long paths at their beginning, which many have in common.
func tails(paths []string) []string {
	const wide = 38
	out := slices.Clone(paths)
	for i, p := range out {
		if r := []rune(p); len(r) > wide {
			out[i] = "…" + string(r[len(r)-wide:])
		}
	}
	return out
}

// few lists the first of many.
func few(list []string, most int) string {
	if len(list) == 0 {
		return "-"
	}
	list = slices.Clone(list)
	for i := range list {
		const wide = 40
		list[i] = oneLine(list[i], wide)
	}
	if n := len(list) - most; n > 0 {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(list, ", ")
}

// tellSide prints what was said on one side, and what came of it.
func (m *Main) tellSide(s session.Side, previews int) {
	m.out.printf("\n%s\n", m.dim(sideName(s)))
	const wide = 100
	shown := s.Previews[:min(len(s.Previews), max(previews, 0))]
	for _, p := range shown {
		m.out.printf("  %-9s  %s\n", speaker(p), oneLine(p.Text, wide))
	}
	if n := s.Since - len(shown); n > 0 {
		m.out.printf("  … %s\n", plural(n, "more message"))
	}
	if s.Clipped {
		m.out.line("  (tools and files are of its first messages alone)")
	}
	if s.Outcome != "" {
		m.out.printf("  outcome: %s\n", oneLine(s.Outcome, 8*wide))
	}
}

// speaker is who said a message: the API gives the role of a person to what tools answer and to notes, too.
func speaker(p session.Preview) string {
	switch {
	case p.Role != tidemark.User:
		return string(p.Role)
	case p.From == tidemark.FromTool, p.From == tidemark.FromRecall:
		return "tool"
	case p.From == tidemark.FromSystem:
		return "note"
	default:
		return string(p.Role)
	}
}
