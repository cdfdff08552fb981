package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/reflection"
	finder "github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/task"
	"github.com/tidemark-ai/tidemark/session"
)

// ofAgent is the flag of what belongs to an agent.
type ofAgent struct{ Agent string }

// found is that of what is looked for.
type search struct {
	ofAgent
	ID    string
	Limit int
}

type sessionsFlags struct {
	ofAgent
	All bool
}

func sessionsLs(ctx context.Context, m *cli.Main, c *client, f *sessionsFlags) error {
	list, err := pages[tidemark.SessionInfo](ctx, c, "/v1/sessions"+cli.Query("agent", f.Agent), "sessions")
	if err != nil {
		return err
	}
	if !f.All {
		shown := slices.DeleteFunc(slices.Clone(list), func(s tidemark.SessionInfo) bool { return s.Key.Channel() == tidemark.ChannelDelegate })
		if n := len(list) - len(shown); n > 0 && !m.JSON {
			defer func() { m.Err.Line(cli.Plural(n, "delegated conversation") + " left out; --all lists them") }()
		}
		list = shown
	}
	return cli.Rows(m, list, []string{"SESSION", "MESSAGES", "CONTEXT", "COMPACTIONS", "RESETS", "UPDATED", "TITLE"}, func(s tidemark.SessionInfo) []string {
		return []string{cli.PlainKey(string(s.Key)), fmt.Sprint(s.Messages), cli.Count(s.ContextTokens) + "/" + cli.Count(s.Window),
			fmt.Sprint(s.Compactions), fmt.Sprint(s.Resets), cli.When(s.UpdatedAt), cli.OneLine(s.Title, 60)}
	})
}

// agentNames is what a server says of its agents.
type agentNames struct {
	Agents []struct {
		ID string `json:"id"`
	} `json:"agents"`
}

func agents(ctx context.Context, m *cli.Main, c *client) error {
	var out agentNames
	if err := c.Get(ctx, "/v1/agents", &out); err != nil {
		return err
	}
	return cli.Either(m, out.Agents, func() {
		for _, a := range out.Agents {
			m.Out.Line(a.ID)
		}
	})
}

func sessionsShow(ctx context.Context, m *cli.Main, c *client) error {
	return showSession(ctx, m, c, m.Args[0])
}

// sessionView is a session as the API shows it.
type sessionView struct {
	tidemark.SessionInfo
	Busy     string           `json:"busy"`
	Settings session.Override `json:"settings"`
	From     string           `json:"windowFrom"`
	Limit    tidemark.Tokens  `json:"limit"`
	Reserve  tidemark.Tokens  `json:"reserve"`
	Keep     tidemark.Tokens  `json:"keep"`
}

// showSession prints what there is to know of a session.
func showSession(ctx context.Context, m *cli.Main, c *client, key string) error {
	return answer(ctx, m, c, http.MethodGet, cli.SessionPath(key, ""), nil, func(s sessionView) {
		busy := "no"
		if s.Busy != "" {
			busy = "run " + s.Busy
		}
		compacted, resets := fmt.Sprintf("%d times, next above %s (reserve %s, keep %s)", s.Compactions, cli.Count(s.Limit), cli.Count(s.Reserve), cli.Count(s.Keep)), fmt.Sprint(s.Resets)
		limit := s.Limit
		if isProxied(string(s.Key)) {
			limit = 0
			compacted, resets = "never: its client keeps the history", "none, for the same reason"
		}
		rows := [][]string{
			{"session", string(s.Key)}, {"id", s.ID}, {"title", cli.OneLine(s.Title, 200)}, {"messages", fmt.Sprint(s.Messages)},
			{"context", cli.Towards(s.ContextTokens, limit, s.Window)}, {"compacted", compacted}, {"resets", resets},
			{"used", fmt.Sprintf("%s tokens in, %s out since the reset", cli.Count(s.Usage.Input+s.Usage.CacheRead+s.Usage.CacheCreation), cli.Count(s.Usage.Output))},
			{"created", cli.When(s.CreatedAt)}, {"updated", cli.When(s.UpdatedAt)}, {"in work", busy},
		}
		if s.From != "" && s.From != tidemark.WindowSet.String() {
			rows = append(rows, []string{"window", cli.Count(s.Window) + ": " + s.From})
		}
		if s.Skipped > 0 {
			rows = append(rows, []string{"skipped", cli.Plural(s.Skipped, "message") + " that recall leaves out (recall.reconcile); recall --all finds them"})
		}
		if _, calls, err := anatomies(ctx, c, key, 0, 1); err == nil { // it stands beside the calls
			if t := tuningOf(calls); t != (reflection.Tuning{}) {
				rows = append(rows, []string{"tuned", "by reflection " + tellTuning(t)})
			}
		}
		if s.Settings != (session.Override{}) {
			own, _ := json.Marshal(s.Settings) // of texts and numbers it cannot fail
			rows = append(rows, []string{"its own", string(own)})
		}
		cli.PrintTable(m.Out, rows)
		tellTracks(ctx, m, c, key)
	})
}

type setFlags struct {
	Title, Model          string
	Window, Reserve, Keep int64
	Unset                 []string
}

func sessionsSet(ctx context.Context, m *cli.Main, f *setFlags) error {
	body := map[string]any{}
	for _, s := range []struct {
		flag, name string
		value      any
	}{
		{"title", "title", f.Title}, {"model", "model", f.Model}, {"window", "window", f.Window},
		{"reserve", "reserveTokens", f.Reserve}, {"keep", "keepRecentTokens", f.Keep},
	} {
		if m.Changed(s.flag) {
			body[s.name] = s.value
		}
	}
	if _, err := ownWindow(m, f.Window); err != nil {
		return err
	}
	for _, name := range f.Unset {
		body[name] = nil
	}
	if len(body) == 0 {
		return cli.Usagef("nothing to set: give --title, --model, --window, --reserve, --keep or --unset")
	}
	return with(ctx, m, func(c *client) error {
		if _, err := c.session(ctx, m.Args[0]); err != nil { // else a name with a slip of the pen would become a session
			return err
		}
		if err := c.Call(ctx, http.MethodPatch, cli.SessionPath(m.Args[0], ""), body, nil); err != nil {
			return err
		}
		return showSession(ctx, m, c, m.Args[0])
	})
}

func sessionsSearch(ctx context.Context, m *cli.Main, f *struct{ Limit int }) error {
	type hits struct {
		Found []finder.Found `json:"found"`
	}
	return look(ctx, m, cli.SessionPath(m.Args[0], "/search"+cli.Query("limit", strconv.Itoa(f.Limit), "q", strings.Join(m.Args[1:], " "))), func(out hits) {
		for _, h := range out.Found {
			m.Out.Printf("%s  %s  %-9s  %s\n", h.Entry, cli.When(h.At), h.Role, cli.OneLine(h.Text, 300))
		}
		cli.Nothing(m, len(out.Found), "no message has these words")
	})
}

// taskFlags are the changes that a person asks for.
type taskFlags struct {
	Goal, Loop, Constraint, Event, Done, Pin, Unpin cli.Repeated
	Phase                                           string
	New                                             bool
}

func showTask(ctx context.Context, m *cli.Main, f *taskFlags) error {
	method, body := http.MethodGet, any(nil)
	if change := f.change(); len(change) > 0 {
		method, body = http.MethodPost, change
	}
	return ask(ctx, m, method, cli.SessionPath(m.Args[0], "/task"), body, func(v task.View) {
		for _, i := range v.Items {
			m.Out.Printf("%-4s  %-10s  %-6s  %s  %s  %s\n", i.Name, i.Kind, i.By, cli.When(i.At), i.Entry, cli.OneLine(i.Text, 200))
		}
		for _, id := range v.Pinned {
			m.Out.Printf("pinned  %s\n", id)
		}
		for _, x := range v.Superseded {
			m.Out.Printf("superseded  %s by %s: %s\n", x.Entry, x.By, cli.OneLine(x.Reason, 200))
		}
		how := "kept by the agent or a person"
		if !v.Kept {
			how = "what was said last, and open calls; nobody keeps a card here"
		}
		m.Err.Line("phase: " + string(v.Phase) + "; " + how)
		if len(v.Cut) > 0 {
			m.Err.Line("without room on the card that the model is shown: " + strings.Join(v.Cut, ", "))
		}
		for _, n := range v.Notes {
			m.Err.Line("not done: " + n)
		}
	})
}

// change is the body of the request; it is empty when nothing is to be changed.
func (f *taskFlags) change() map[string]any {
	out := map[string]any{}
	type added struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	}
	var add []added
	for _, k := range []struct {
		kind  string
		texts []string
	}{{"goal", f.Goal}, {"loop", f.Loop}, {"constraint", f.Constraint}, {"event", f.Event}} {
		for _, text := range k.texts {
			add = append(add, added{k.kind, text})
		}
	}
	if len(add) > 0 {
		out["add"] = add
	}
	for name, list := range map[string][]string{"close": f.Done, "pin": f.Pin, "unpin": f.Unpin} {
		if len(list) > 0 {
			out[name] = list
		}
	}
	if f.Phase != "" {
		out["phase"] = f.Phase
	}
	if f.New {
		out["new"] = true
	}
	return out
}

// questions lists what waits in the conversations of all agents.
func (c *client) questions(ctx context.Context) ([]tidemark.Question, error) {
	var agents agentNames
	if err := c.Get(ctx, "/v1/agents", &agents); err != nil {
		return nil, err
	}
	out := []tidemark.Question{}
	for _, a := range agents.Agents {
		var page struct {
			Approvals []tidemark.Question `json:"approvals"`
		}
		if err := c.Get(ctx, cli.AgentPath(a.ID, "/approvals"), &page); err != nil {
			return nil, err
		}
		out = append(out, page.Approvals...)
	}
	return out, nil
}

func approvalsLs(ctx context.Context, m *cli.Main, c *client) error {
	list, err := c.questions(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 && !m.JSON {
		m.Out.Line("No tool call waits for you.")
		return nil
	}
	return cli.Rows(m, list, []string{"CODE", "TOOL", "SESSION", "UNTIL", "WITH"}, func(q tidemark.Question) []string {
		return []string{q.Code, cli.Safe(q.Tool), string(q.Session), q.Expires.Local().Format(time.DateTime), cli.Safe(cli.Cut(q.Input, 100))}
	})
}

// decideCall allows or denies the call that has a code.
func decideCall(allow bool) func(context.Context, *cli.Main, *client) error {
	return func(ctx context.Context, m *cli.Main, c *client) error {
		list, err := c.questions(ctx)
		if err != nil {
			return err
		}
		agent := node.MainAgent
		for _, q := range list {
			if strings.EqualFold(q.Code, m.Args[0]) {
				agent = q.Session.Agent()
			}
		}
		var out struct {
			Code    string       `json:"code"`
			Allow   bool         `json:"allow"`
			Session tidemark.Key `json:"session"`
			Tool    string       `json:"tool"`
		}
		err = c.Post(ctx, cli.AgentPath(agent, "/approvals"), map[string]any{"code": m.Args[0], "allow": allow}, &out)
		if status := cli.StatusOf(err); status == http.StatusNotFound || status == http.StatusConflict {
			return cli.Advise(err, "`tidemark approvals ls` lists the calls that wait")
		}
		if err != nil {
			return err
		}
		return cli.Either(m, out, func() {
			did := map[bool]string{true: "allowed:", false: "denied:"}[allow]
			m.Out.Line(did, cli.Safe(out.Tool), "in", string(out.Session))
		})
	}
}
