package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/wasi"
)

// schedulePath is where a schedule is found.
func schedulePath(of, id, rest string) string {
	return cli.AgentPath(of, "/schedules/"+url.PathEscape(id)+rest)
}

type scheduleFlags struct {
	ofAgent
	At, Every, Anchor, Cron, Heartbeat, Active, Zone, Name, Session, To, CatchUp, Model string

	Budget, MaxRounds int64
	Tools             []string
}

func scheduleAdd(ctx context.Context, m *cli.Main, f *scheduleFlags) error {
	body := map[string]any{}
	for name, v := range map[string]string{"at": f.At, "every": f.Every, "anchor": f.Anchor, "cron": f.Cron, "heartbeat": f.Heartbeat, "active": f.Active,
		"zone": f.Zone, "name": f.Name, "session": f.Session, "to": f.To, "catchUp": f.CatchUp, "model": f.Model} {
		if v != "" {
			body[name] = v
		}
	}
	for name, n := range map[string]int64{"budget": f.Budget, "maxRounds": f.MaxRounds} {
		if n != 0 {
			body[name] = n
		}
	}
	if len(f.Tools) > 0 {
		body["tools"] = f.Tools
	}
	if err := scheduleWords(m.Args, body); err != nil {
		return err
	}
	return tell(ctx, m, http.MethodPost, cli.AgentPath(f.Agent, "/schedules"), body, showing(m))
}

// scheduleWords reads WHEN and PROMPT: with a flag that says when, there is PROMPT alone.
func scheduleWords(args []string, body map[string]any) error {
	flagged := false
	for _, name := range []string{"at", "every", "cron", "heartbeat"} {
		flagged = flagged || body[name] != nil
	}
	switch {
	case flagged && len(args) > 1:
		return cli.Usagef("schedule add: %q says when, and so does a flag; give one of them", args[0])
	case flagged && len(args) == 1:
		body["prompt"] = args[0]
	case flagged:
	case len(args) < 2:
		return cli.Usagef("schedule add: want `tidemark schedule add WHEN PROMPT`, as in `tidemark schedule add \"0 8 * * 1-5\" \"Summarise what is open\"`")
	default:
		body["when"], body["prompt"] = args[0], args[1]
	}
	return nil
}

// showSchedule draws one.
func showSchedule(m *cli.Main, s agent.Schedule) {
	m.Out.Printf("%s  %s\n", s.ID, rhythm(s))
	state := s.State
	if s.Reason != "" {
		state += " (" + cli.Safe(s.Reason) + ")"
	}
	rows := [][]string{{"name", cli.Safe(s.Name)}, {"prompt", cli.Safe(s.Prompt)}, {"session", cli.Safe(s.Session)}, {"to", cli.Safe(s.To)}, {"model", cli.Safe(s.Model)}, {"tools", cli.Safe(strings.Join(s.Tools, ", "))}, {"state", state}}
	if s.Budget > 0 {
		rows = append(rows, []string{"budget", strconv.FormatInt(int64(s.Budget), 10) + " tokens"})
	}
	for i, t := range s.Coming {
		rows = append(rows, []string{[]string{"next", "then"}[min(i, 1)], moment(hung(t, s.Zone))})
	}
	if s.Last != nil {
		rows = append(rows, []string{"last", moment(s.Last.Due) + ": " + outcomeOf(*s.Last)})
	}
	for _, r := range rows {
		if r[1] != "" {
			m.Out.Printf("  %-8s %s\n", r[0], r[1])
		}
	}
}

// rhythm is when a schedule runs, for people.
func rhythm(s agent.Schedule) string {
	switch {
	case s.At != "":
		if t, err := time.Parse(time.RFC3339, s.At); err == nil {
			return "at " + moment(hung(t, s.Zone))
		}
		return "at " + cli.Safe(s.At)
	case s.Every != "":
		return "every " + cli.Safe(s.Every)
	case s.Heartbeat != "":
		return strings.TrimSuffix("heartbeat "+cli.Safe(s.Heartbeat)+", "+cli.Safe(s.Active), ", ")
	}
	return cli.Safe(s.Cron) + " " + cli.Safe(s.Zone)
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
	text := cli.Shortened(cli.Safe(r.Text), 100)
	if r.Reason != "" {
		text = cli.Shortened(cli.Safe(r.Reason), 100)
	}
	if text != "" {
		out += ": " + text
	}
	return out
}

func scheduleLs(ctx context.Context, m *cli.Main, f *ofAgent) error {
	type schedules struct {
		Schedules []agent.Schedule `json:"schedules"`
	}
	return tell(ctx, m, http.MethodGet, cli.AgentPath(f.Agent, "/schedules"), nil, func(list schedules) {
		if len(list.Schedules) == 0 {
			m.Out.Line("There are no schedules. `tidemark schedule add` makes one.")
			return
		}
		cli.Columns(m.Out, list.Schedules, []string{"ID", "WHEN", "NAME", "STATE", "NEXT", "LAST"}, func(s agent.Schedule) []string {
			next, last, name := "", "", s.Name
			if !s.Next.IsZero() {
				next = moment(hung(s.Next, s.Zone))
			}
			if s.Last != nil {
				last = s.Last.State
			}
			if name == "" {
				name = s.Prompt
			}
			return []string{s.ID, rhythm(s), cli.Safe(cli.Shortened(name, 40)), s.State, next, last}
		})
	})
}

func scheduleShow(ctx context.Context, m *cli.Main, f *ofAgent) error {
	return tell(ctx, m, http.MethodGet, schedulePath(f.Agent, m.Args[0], ""), nil, showing(m))
}

// scheduleSet changes the state of one.
func scheduleSet(state string) func(context.Context, *cli.Main, *ofAgent) error {
	return func(ctx context.Context, m *cli.Main, f *ofAgent) error {
		return tell(ctx, m, http.MethodPatch, schedulePath(f.Agent, m.Args[0], ""), map[string]string{"state": state}, showing(m))
	}
}

func scheduleRm(ctx context.Context, m *cli.Main, f *ofAgent) error {
	return tell(ctx, m, http.MethodDelete, schedulePath(f.Agent, m.Args[0], ""), nil, func(map[string]any) {
		m.Out.Line("removed", cli.Safe(m.Args[0]))
	})
}

// scheduleRunsTold is what became of a schedule.
type scheduleRunsTold struct {
	Runs []agent.ScheduleRun `json:"runs"`
}

func scheduleRuns(ctx context.Context, m *cli.Main, f *search) error {
	return tell(ctx, m, http.MethodGet, schedulePath(f.Agent, m.Args[0], "/runs?limit="+strconv.Itoa(f.Limit)), nil, func(list scheduleRunsTold) {
		cli.Columns(m.Out, list.Runs, []string{"DUE", "TOKENS", "OUTCOME"}, func(r agent.ScheduleRun) []string {
			spent := ""
			if t := r.Usage.Context(); t > 0 {
				spent = strconv.FormatInt(int64(t), 10)
			}
			return []string{moment(r.Due), spent, outcomeOf(r)}
		})
	})
}

type runFlags struct {
	ofAgent
	NoWait bool
}

func scheduleRun(ctx context.Context, m *cli.Main, c *client, f *runFlags) error {
	var run agent.ScheduleRun
	err := c.Post(ctx, schedulePath(f.Agent, m.Args[0], "/run"), map[string]any{}, &run)
	if err == nil && !f.NoWait {
		run, err = ended(ctx, c, f.Agent, m.Args[0], run)
	}
	if err != nil {
		return err
	}
	if run.State == agent.RunFailed && !m.JSON {
		return fmt.Errorf("the run failed: %s: %w", cli.Safe(run.Reason), tidemark.ErrUnavailable)
	}
	return cli.Either(m, run, func() {
		m.Out.Line(run.State+" in", cli.Safe(string(run.Session)))
		if run.Text != "" {
			m.Out.Line(cli.Safe(run.Text))
		}
	})
}

// ended waits for the end of a run.
func ended(ctx context.Context, c *client, of, id string, run agent.ScheduleRun) (agent.ScheduleRun, error) {
	const pause = 200 * time.Millisecond
	for run.State == agent.RunBegun || run.State == agent.RunRunning {
		select {
		case <-ctx.Done():
			return run, context.Cause(ctx)
		case <-time.After(pause):
		}
		var list scheduleRunsTold
		if err := c.Get(ctx, schedulePath(of, id, "/runs?limit="+strconv.Itoa(agent.MaxScheduleRuns)), &list); err != nil {
			return run, err
		}
		for _, r := range list.Runs {
			if r.Due.Equal(run.Due) {
				run = r
			}
		}
	}
	return run, nil
}

// showing is showSchedule for an answer.
func showing(m *cli.Main) func(agent.Schedule) {
	return func(s agent.Schedule) { showSchedule(m, s) }
}

// servedBy is what a server says of the tools of an agent, which are not all modules of this machine.
type servedBy struct {
	Sources []servedSource `json:"sources"`
	Tools   []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tools"`
}

type servedSource struct {
	Name  string `json:"name"` // empty: modules
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	Tools int    `json:"tools"`

	LeftOut []string `json:"leftOut,omitempty"` // tools that are not used, and why
}

func toolLs(ctx context.Context, m *cli.Main, f *ofAgent) error {
	base, err := m.Named()
	if err != nil {
		return err
	}
	list := []wasi.Installed{}
	if base == "" {
		err = withTools(ctx, m, func(ts *wasi.Tools) error {
			found, err := ts.List()
			list = append(list, found...)
			return err
		})
		if err != nil {
			return err
		}
	}
	of, err := servedTools(ctx, m, base, f.Agent)
	if err != nil {
		return err
	}
	return cli.Either(m, map[string]any{"modules": list, "sources": of.Sources, "tools": of.Tools}, func() {
		printTools(m, list, of, base)
	})
}

// servedTools asks the server that is named, else the one that has this home. One that has no such route, or is
// not there though its file is, offers nothing.
func servedTools(ctx context.Context, m *cli.Main, base, agent string) (servedBy, error) {
	var out servedBy
	named := base != ""
	if !named {
		home, err := m.HomeDir()
		if err != nil {
			return out, err
		}
		base = cli.ReadServerFile(home).URL
	}
	if base == "" {
		return out, nil
	}
	const patience = 20 * time.Second // the server may have to reach its own sources
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := serverAt(m, base).Get(ctx, cli.AgentPath(agent, "/tools"), &out)
	var api *cli.APIError
	if err != nil && (!named || errors.As(err, &api) && api.Status == http.StatusNotFound) {
		return servedBy{}, nil
	}
	return out, err
}

func printTools(m *cli.Main, list []wasi.Installed, of servedBy, base string) {
	const wide = 60
	modules := map[string]bool{}
	if len(list) > 0 {
		rows := [][]string{{"NAME", "SIZE", "ADDED", "READS", "DESCRIPTION"}}
		for _, t := range list {
			modules[t.Name] = true
			text := cli.OneLine(t.Description, wide)
			if t.Broken != "" {
				text = "broken: " + cli.OneLine(t.Broken, 3*wide)
			}
			added := "-"
			if !t.At.IsZero() {
				added = t.At.Local().Format("2006-01-02 15:04")
			}
			rows = append(rows, []string{t.Name, cli.Size(t.Bytes), added, cmp.Or(t.Mount, "-"), text})
		}
		cli.PrintTable(m.Out, rows)
	}
	rows := [][]string{{"SERVER", "TOOLS", "STATE"}}
	for _, s := range of.Sources {
		state := s.State
		if s.Error != "" {
			state += ": " + cli.OneLine(s.Error, 3*wide)
		}
		if s.Name != "" || s.Error != "" {
			rows = append(rows, []string{cmp.Or(cli.OneLine(s.Name, wide), "(modules)"), fmt.Sprint(s.Tools), state})
		}
	}
	if len(rows) > 1 {
		cli.PrintTable(m.Out, rows)
	}
	rows = [][]string{{"LEFT OUT", "WHY"}}
	for _, s := range of.Sources {
		for _, left := range s.LeftOut {
			name, why, _ := strings.Cut(left, ": ")
			rows = append(rows, []string{cli.OneLine(cmp.Or(s.Name, "(modules)")+" "+name, wide), cli.OneLine(why, 3*wide)})
		}
	}
	if len(rows) > 1 {
		cli.PrintTable(m.Out, rows)
	}
	rows = [][]string{{"TOOL OF A SERVER", "DESCRIPTION"}}
	for _, t := range of.Tools {
		if !modules[t.Name] {
			rows = append(rows, []string{cli.OneLine(t.Name, wide), cli.OneLine(t.Description, wide)})
		}
	}
	if len(rows) > 1 {
		cli.PrintTable(m.Out, rows)
	}
	none := len(of.Tools) == 0 && !slices.ContainsFunc(of.Sources, func(s servedSource) bool { return s.Name != "" })
	if len(list) == 0 && none && base == "" {
		m.Out.Line("no tools yet; `tidemark tool add FILE.wasm` installs one, docs/modules.md says how to write it")
	} else if none && base != "" {
		m.Out.Printf("%s offers no tools of others; its modules are listed on its own machine\n", base)
	}
}
