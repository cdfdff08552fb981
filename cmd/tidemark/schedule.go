package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
)

func (m *Main) scheduleCommand() *cobra.Command {
	return group("schedule", "Have work done at times", `  tidemark schedule add "0 8 * * 1-5" "Summarise what is open" --zone Europe/Berlin --to owner
  tidemark schedule add --every 2h "Look whether the build is green" --name build
  tidemark schedule add --at "2026-12-01 09:00" "Remind me of the dentist" --session main --to owner
  tidemark schedule add --heartbeat 30m --active 8-22 --to owner      does what HEARTBEAT.md says
  tidemark schedule ls
  tidemark schedule show s1
  tidemark schedule run s1                   now, and wait for it
  tidemark schedule runs s1
  tidemark schedule pause s1
  tidemark schedule resume s1
  tidemark schedule rm s1`,
		m.scheduleAdd(), m.scheduleLs(), m.scheduleShow(), m.scheduleSet("pause", "Let none run until resumed", agent.SchedulePaused),
		m.scheduleSet("resume", "Let it run again, from now on", agent.ScheduleOn), m.scheduleRun(), m.scheduleRuns(), m.scheduleRm())
}

// schedulePath is where a schedule is found.
func schedulePath(of, id, rest string) string {
	return agentPath(of, "/schedules/"+url.PathEscape(id)+rest)
}

// scheduleFlags are those that all of them have.
func (m *Main) scheduleFlags(c *cobra.Command, of *string) *cobra.Command {
	c.Flags().StringVar(of, "agent", mainAgent, "whose schedules are meant")
	return m.jsonFlag(c)
}

func (m *Main) scheduleAdd() *cobra.Command {
	var of string
	body := map[string]any{}
	texts, counts := map[string]*string{}, map[string]*int64{}
	var tools []string
	c := &cobra.Command{Use: "add [WHEN] [PROMPT]", Short: "Make one; WHEN is a cron expression, a time, or as in \"every 2h\"", Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			for name, v := range texts {
				if *v != "" {
					body[strings.ReplaceAll(name, "catch-up", "catchUp")] = *v
				}
			}
			for name, v := range counts {
				if *v != 0 {
					body[strings.ReplaceAll(name, "max-rounds", "maxRounds")] = *v
				}
			}
			if len(tools) > 0 {
				body["tools"] = tools
			}
			if err := scheduleWords(args, body); err != nil {
				return err
			}
			return m.with(cmd.Context(), func(c *client) error {
				var s agent.Schedule
				if err := c.post(cmd.Context(), agentPath(of, "/schedules"), body, &s); err != nil {
					return err
				}
				return m.showSchedule(s)
			})
		}}
	for _, f := range [][2]string{{"at", "once: \"2026-12-01 09:00\", \"tomorrow 09:00\", \"in 20m\""}, {"every", "each time this long has passed: 90m, 2h, 1d"}, {"anchor", "a time that --every counts from (default now)"},
		{"cron", "five fields: minute, hour, day of month, month, day of week"}, {"heartbeat", "look after what HEARTBEAT.md says, this often"}, {"active", "hours of the heartbeat: 8-22"},
		{"zone", "IANA time zone (default that of the agent)"}, {"name", "what to call it"}, {"session", "own, fresh (a new one each time), main or a key"},
		{"to", "who gets the answer: owner, or platform:peer (default nobody: it stays in the log)"}, {"catch-up", "how late it may run when it was missed (default 24h)"}, {"model", "model of its runs"}} {
		texts[f[0]] = c.Flags().String(f[0], "", f[1])
	}
	counts["budget"] = c.Flags().Int64("budget", 0, "tokens that one run may spend")
	counts["max-rounds"] = c.Flags().Int64("max-rounds", 0, "model calls in one run")
	c.Flags().StringSliceVar(&tools, "tools", nil, "globs of the tools that a run has (default all)")
	return m.scheduleFlags(c, &of)
}

// scheduleWords reads WHEN and PROMPT: with a flag that says when, there is PROMPT alone.
func scheduleWords(args []string, body map[string]any) error {
	flagged := false
	for _, name := range []string{"at", "every", "cron", "heartbeat"} {
		flagged = flagged || body[name] != nil
	}
	switch {
	case flagged && len(args) > 1:
		return usagef("schedule add: %q says when, and so does a flag; give one of them", args[0])
	case flagged && len(args) == 1:
		body["prompt"] = args[0]
	case flagged:
	case len(args) < 2:
		return usagef("schedule add: want `tidemark schedule add WHEN PROMPT`, as in `tidemark schedule add \"0 8 * * 1-5\" \"Summarise what is open\"`")
	default:
		body["when"], body["prompt"] = args[0], args[1]
	}
	return nil
}

// showSchedule draws one.
func (m *Main) showSchedule(s agent.Schedule) error {
	if m.json {
		return m.printJSON(s)
	}
	m.out.printf("%s  %s\n", s.ID, rhythm(s))
	rows := [][]string{{"name", safe(s.Name)}, {"prompt", safe(s.Prompt)}, {"session", safe(s.Session)}, {"to", safe(s.To)}, {"model", safe(s.Model)}, {"tools", safe(strings.Join(s.Tools, ", "))}, {"state", s.State + reasonOf(s)}}
	if s.Budget > 0 {
		rows = append(rows, []string{"budget", strconv.FormatInt(int64(s.Budget), 10) + " tokens"})
	}
	for i, t := range s.Coming {
		name := "then"
		if i == 0 {
			name = "next"
		}
		rows = append(rows, []string{name, moment(hung(t, s.Zone))})
	}
	if s.Last != nil {
		rows = append(rows, []string{"last", moment(s.Last.Due) + ": " + outcomeOf(*s.Last)})
	}
	for _, r := range rows {
		if r[1] != "" {
			m.out.printf("  %-8s %s\n", r[0], r[1])
		}
	}
	return nil
}

func reasonOf(s agent.Schedule) string {
	if s.Reason == "" {
		return ""
	}
	return " (" + safe(s.Reason) + ")"
}

// rhythm is when a schedule runs, for people.
func rhythm(s agent.Schedule) string {
	switch {
	case s.At != "":
		if t, err := time.Parse(time.RFC3339, s.At); err == nil {
			return "at " + moment(hung(t, s.Zone))
		}
		return "at " + safe(s.At)
	case s.Every != "":
		return "every " + safe(s.Every)
	case s.Heartbeat != "":
		return strings.TrimSuffix("heartbeat "+safe(s.Heartbeat)+", "+safe(s.Active), ", ")
	}
	return safe(s.Cron) + " " + safe(s.Zone)
}

// hung is a time on a clock that hangs in a zone.
func hung(t time.Time, zone string) time.Time {
	if z, err := time.LoadLocation(zone); err == nil {
		return t.In(z)
	}
	return t
}

// moment is a time in the zone that it was given in.
func moment(t time.Time) string { return t.Format("Mon 2006-01-02 15:04 MST") }

// outcomeOf is what became of a run, on one line.
func outcomeOf(r agent.ScheduleRun) string {
	out := r.State
	if r.Times > 1 {
		out += fmt.Sprintf(" %d times", r.Times)
	}
	if r.Missed > 0 {
		out += fmt.Sprintf(" (for %d missed)", r.Missed)
	}
	text := strings.Join(strings.Fields(safe(r.Text)), " ")
	if r.Reason != "" {
		text = strings.Join(strings.Fields(safe(r.Reason)), " ")
	}
	const most = 100
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	if text != "" {
		out += ": " + text
	}
	return out
}

func (m *Main) scheduleLs() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "ls", Short: "List them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var list struct {
					Schedules []agent.Schedule `json:"schedules"`
				}
				if err := c.get(cmd.Context(), agentPath(of, "/schedules"), &list); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(list)
				}
				if len(list.Schedules) == 0 {
					m.out.line("There are no schedules. `tidemark schedule add` makes one.")
					return nil
				}
				rows := [][]string{{"ID", "WHEN", "NAME", "STATE", "NEXT", "LAST"}}
				for _, s := range list.Schedules {
					next, last := "", ""
					if !s.Next.IsZero() {
						next = moment(hung(s.Next, s.Zone))
					}
					if s.Last != nil {
						last = s.Last.State
					}
					name := s.Name
					if name == "" {
						name = strings.Join(strings.Fields(s.Prompt), " ")
					}
					if runes := []rune(name); len(runes) > 40 {
						name = string(runes[:40]) + "…"
					}
					rows = append(rows, []string{s.ID, rhythm(s), safe(name), s.State, next, last})
				}
				table(m.out, rows)
				return nil
			})
		}}
	return m.scheduleFlags(c, &of)
}

func (m *Main) scheduleShow() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "show ID", Short: "Show one with its next three times", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var s agent.Schedule
				if err := c.get(cmd.Context(), schedulePath(of, args[0], ""), &s); err != nil {
					return err
				}
				return m.showSchedule(s)
			})
		}}
	return m.scheduleFlags(c, &of)
}

// scheduleSet is a command that changes the state of one.
func (m *Main) scheduleSet(word, short, state string) *cobra.Command {
	var of string
	c := &cobra.Command{Use: word + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var s agent.Schedule
				if err := c.call(cmd.Context(), "PATCH", schedulePath(of, args[0], ""), map[string]string{"state": state}, &s); err != nil {
					return err
				}
				return m.showSchedule(s)
			})
		}}
	return m.scheduleFlags(c, &of)
}

func (m *Main) scheduleRm() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "rm ID", Short: "Forget one, with its runs", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var out map[string]any
				if err := c.call(cmd.Context(), "DELETE", schedulePath(of, args[0], ""), nil, &out); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(out)
				}
				m.out.line("removed", safe(args[0]))
				return nil
			})
		}}
	return m.scheduleFlags(c, &of)
}

func (m *Main) scheduleRuns() *cobra.Command {
	var of string
	limit := 20
	c := &cobra.Command{Use: "runs ID", Short: "List what became of one, the newest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				runs, err := c.scheduleRuns(cmd.Context(), of, args[0], limit)
				if err != nil {
					return err
				}
				if m.json {
					return m.printJSON(map[string]any{"runs": runs})
				}
				rows := [][]string{{"DUE", "TOKENS", "OUTCOME"}}
				for _, r := range runs {
					spent := ""
					if t := r.Usage.Context(); t > 0 {
						spent = strconv.FormatInt(int64(t), 10)
					}
					rows = append(rows, []string{moment(r.Due), spent, outcomeOf(r)})
				}
				table(m.out, rows)
				return nil
			})
		}}
	c.Flags().IntVar(&limit, "limit", limit, "how many")
	return m.scheduleFlags(c, &of)
}

// scheduleRuns asks for runs of one.
func (c *client) scheduleRuns(ctx context.Context, of, id string, limit int) ([]agent.ScheduleRun, error) {
	var list struct {
		Runs []agent.ScheduleRun `json:"runs"`
	}
	err := c.get(ctx, schedulePath(of, id, "/runs?limit="+strconv.Itoa(limit)), &list)
	return list.Runs, err
}

func (m *Main) scheduleRun() *cobra.Command {
	var of string
	var away bool
	c := &cobra.Command{Use: "run ID", Short: "Begin one now, and wait for its end", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var run agent.ScheduleRun
				err := c.post(cmd.Context(), schedulePath(of, args[0], "/run"), map[string]any{}, &run)
				if err == nil && !away {
					run, err = c.ended(cmd.Context(), of, args[0], run)
				}
				if err != nil {
					return err
				}
				if m.json {
					return m.printJSON(run)
				}
				if run.State == agent.RunFailed {
					return fmt.Errorf("the run failed: %s: %w", safe(run.Reason), tidemark.ErrUnavailable)
				}
				m.out.line(run.State+" in", safe(string(run.Session)))
				if run.Text != "" {
					m.out.line(safe(run.Text))
				}
				return nil
			})
		}}
	c.Flags().BoolVar(&away, "no-wait", false, "do not wait for its end")
	return m.scheduleFlags(c, &of)
}

// ended waits for the end of a run.
func (c *client) ended(ctx context.Context, of, id string, run agent.ScheduleRun) (agent.ScheduleRun, error) {
	const pause = 200 * time.Millisecond
	for run.State == agent.RunBegun || run.State == agent.RunRunning {
		select {
		case <-ctx.Done():
			return run, context.Cause(ctx)
		case <-time.After(pause):
		}
		runs, err := c.scheduleRuns(ctx, of, id, agent.MaxScheduleRuns)
		if err != nil {
			return run, err
		}
		for _, r := range runs {
			if r.Due.Equal(run.Due) {
				run = r
			}
		}
	}
	return run, nil
}
