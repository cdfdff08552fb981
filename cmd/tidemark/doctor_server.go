package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/skill"
	"github.com/tidemark-ai/tidemark/wasi"
	"github.com/tidemark-ai/tidemark/worker"
)

// health is what a server says at /healthz. One that lets us in says more.
type health struct {
	OK       bool             `json:"ok"`
	Version  string           `json:"version"`
	Status   string           `json:"status"`
	Model    string           `json:"model"`
	Problems []worker.Problem `json:"problems"`
	Warnings []string         `json:"warnings"`
	Channels []worker.Channel `json:"channels"`

	dated bool          // it told the time
	skew  time.Duration // of our clock against its
}

// closed reports whether it lets nobody in, and says so itself.
func (h health) closed() bool {
	return slices.ContainsFunc(h.Problems, func(p worker.Problem) bool { return p.Setting == "TIDEMARK_TOKEN" })
}

// serverTimeout bounds each question to the server.
const serverTimeout = 30 * time.Second

// server checks the server that is named, which has the store, the model and the settings: what lies in
// the home folder of this machine has no part in it.
func (d *doctor) server(ctx context.Context, base string) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	by := "TIDEMARK_SERVER"
	if d.m.Server != "" {
		by = "--server"
	}
	c := serverAt(d.m, base)
	h, err := c.health(ctx)
	if refused := (*cli.APIError)(nil); errors.As(err, &refused) && refused.Type == "unauthorized" {
		d.add("server", fine, "", "%s (%s) answers", base, by)
		d.add("token", bad, refused.Fix(), "%s", err)
		return
	}
	if err != nil {
		d.add("server", bad, cmp.Or(ownFix(err), "check the address given by "+by+": it is the server's, without /v1"), "%s (%s): %s", base, by, err)
		return
	}
	d.add("server", fine, "", "%s (%s) answers, version %s; this is %s\nthe files of this machine are not looked at: unset %[2]s to have them checked",
		base, by, cmp.Or(h.Version, "not told"), node.VersionText())
	in := !h.closed() && d.admitted(ctx, c, h)
	d.problems(h)
	if in {
		d.served(h)
		d.servedWindow(ctx, c)
		d.checks(ctx, c)
		d.nights(ctx, c)
		d.servedSkills(ctx, c)
		d.servedTools(ctx, c)
	}
	if !h.dated {
		d.add("clock", fine, "", "not compared: the server's answer has no date")
	} else if !d.skew("server", h.skew) {
		d.add("clock", fine, "", "as the server's")
	}
}

// servedWindow says how much of the model's window is used, as the conversation has it that was active last and has no
// model or window of its own: it has what all of them learned.
func (d *doctor) servedWindow(ctx context.Context, c *client) {
	const looked = 8
	var page struct {
		Sessions []tidemark.SessionInfo `json:"sessions"`
	}
	if c.Get(ctx, fmt.Sprintf("/v1/sessions?limit=%d", looked), &page) != nil {
		return // it is told elsewhere
	}
	for _, info := range page.Sessions {
		var s sessionView
		if err := c.Get(ctx, cli.SessionPath(string(info.Key), ""), &s); err == nil && s.From != "" && s.Settings.Model == "" && s.Settings.Window == 0 {
			d.windowed = true
			d.add("window", fine, "", "%d tokens: %s", s.Window, s.From)
			return
		}
	}
}

// problems tells what a server says is wrong with it.
func (d *doctor) problems(h health) {
	for _, p := range h.Problems {
		if p.Setting == "storage" { // no setting, but the same list
			d.add("storage", bad, p.Fix, "%s", p.Message)
			continue
		}
		d.add("settings", bad, p.Fix, "%s: %s", cmp.Or(p.Setting, "server"), p.Message)
	}
}

// served tells what a server says that let us in.
func (d *doctor) served(h health) {
	for _, w := range h.Warnings {
		d.add("settings", odd, warningFix(w), "%s", w)
	}
	switch {
	case h.Status == "":
		d.add("settings", odd, "put the newer tidemark there", "the server is too old to tell")
		return
	case len(h.Problems) > 0 && h.OK:
		d.add("settings", odd, "correct what is named above", "what is named above is not in force; the last good ones are")
	case len(h.Problems) == 0:
		d.add("settings", fine, "", "obeyed as they are")
	}
	if len(h.Channels) > 0 { // an older server does not tell
		var texts []string
		for _, ch := range h.Channels {
			texts = append(texts, cli.Safe(ch.Text))
		}
		d.add("channels", fine, "", "%s", strings.Join(texts, ", "))
	}
	if provider, _, _ := strings.Cut(h.Model, " "); provider == config.Offline {
		d.add("model", fine, "", "built-in offline model (the server has no ANTHROPIC_API_KEY or OPENAI_API_KEY, or model.provider asks for it)")
	} else if h.Model != "" {
		d.add("model", fine, "", "%s, and its key is set where it needs one; it was not called", h.Model)
	}
}

// admitted reports whether the server takes our token.
func (d *doctor) admitted(ctx context.Context, c *client, h health) bool {
	var refused *cli.APIError
	err := c.Get(ctx, "/v1/agents", nil)
	switch {
	case err == nil && c.Token == "":
		d.add("token", fine, "", "none is set here, and the server wants none of this machine")
	case err == nil:
		d.add("token", fine, "", "the server takes it (TIDEMARK_TOKEN)")
	case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError:
		d.add("token", bad, refused.Fix(), "%s", err)
	case len(h.Problems) > 0: // of which it tells only whom it lets in
		d.add("token", fine, "", "the server takes it (TIDEMARK_TOKEN)")
	default:
		d.add("server", bad, d.m.Fix(err), "asked for its agents: %s", err)
	}
	return err == nil
}

// health asks a server how it is.
func (c *client) health(ctx context.Context) (h health, err error) {
	resp, err := c.Do(ctx, http.MethodGet, "/healthz", nil)
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, cli.MaxDocument))
	if err != nil {
		return h, fmt.Errorf("read answer of %s: %w", c.Where, err)
	}
	var known struct {
		OK *bool `json:"ok"`
	}
	if json.Unmarshal(raw, &known) != nil || known.OK == nil || json.Unmarshal(raw, &h) != nil {
		return h, errors.New("what answers there is no Tidemark server")
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		h.dated, h.skew = true, time.Since(at)
	}
	return h, nil
}

// ownFix is the advice that an error brings, empty for none.
func ownFix(err error) string {
	var own *cli.Fixed
	if errors.As(err, &own) {
		return own.Fix
	}
	return ""
}

// skillFix is what to do about skills that are none.
const skillFix = "correct what is named, and put it back with `tidemark skill add`; `tidemark skill ls` lists all"

// skillsIn tells of the skills in a bucket of this machine, where there are some.
func (d *doctor) skillsIn(ctx context.Context, blobs tidemark.Blobs) {
	names := []string{node.MainAgent}
	for _, a := range d.cfg.Agents {
		if a.ID != node.MainAgent {
			names = append(names, a.ID)
		}
	}
	for _, name := range names {
		list, more, err := skillsOf(ctx, blobs, name)
		if err != nil {
			d.add("skills", bad, "try again; the bucket answers, as is told above", "agent %s: %s", name, err)
			return
		}
		d.skills(name, list, more)
	}
}

// skillsOf lists what an agent has, whatever its database knows.
func skillsOf(ctx context.Context, blobs tidemark.Blobs, name string) (list []agent.Skill, more bool, err error) {
	db, err := native.OpenDB(":memory:")
	if err != nil {
		return nil, false, err
	}
	defer db.Close()
	a, err := agent.New(agent.Config{Name: name, DB: db, Blobs: blobs, Runtime: native.NewRuntime(nil)})
	if err != nil {
		return nil, false, err
	}
	return a.Skills(ctx)
}

// servedSkills tells of those of a server's main agent. It is silent where there are none, and where it is too old
// to know of any.
func (d *doctor) servedSkills(ctx context.Context, c *client) {
	var out skillList
	if c.Get(ctx, cli.AgentPath(node.MainAgent, "/skills"), &out) == nil {
		d.skills(node.MainAgent, out.Skills, out.More)
	}
}

func (d *doctor) skills(of string, list []agent.Skill, more bool) {
	good := 0
	for _, s := range list {
		if s.Problem == "" {
			good++
			continue
		}
		d.add("skills", odd, skillFix, "%s of agent %s is left out: %s", cli.Safe(s.Name), of, cli.Safe(s.Problem))
	}
	switch {
	case good > skill.MaxListed || more:
		d.add("skills", odd, "remove or join some: the model is told of the first ones by name", "agent %s has %s; a prompt names %d", of, atLeast(good, more), skill.MaxListed)
	case good > 0:
		d.add("skills", fine, "", "agent %s has %s", of, cli.Plural(good, "skill"))
	}
}

func atLeast(n int, more bool) string {
	if more {
		return fmt.Sprintf("over %s", cli.Plural(n, "skill"))
	}
	return cli.Plural(n, "skill")
}

// toolServers looks whether servers of tools can be used as they are configured, with the secrets of this shell. One that
// has the home and answered has its own.
func (d *doctor) toolServers() {
	if d.asked {
		return
	}
	for _, g := range setup.ToolGaps(d.cfg, true) {
		d.add("tools", bad, node.GapFix(g), "%s %s", g.Setting, g.Message)
	}
}

// servedTools tells how the servers of tools are that a server uses, and reports whether it said so. What cannot be used
// as it is configured stands among its problems.
func (d *doctor) servedTools(ctx context.Context, c *client) bool {
	var out servedBy
	if c.Get(ctx, cli.AgentPath(node.MainAgent, "/tools"), &out) != nil {
		return false // it is too old, or lets nobody in, which is told above
	}
	good := 0
	for _, s := range out.Sources {
		for _, left := range s.LeftOut {
			d.add("tools", odd, "mend its definition where it comes from, or leave it out yourself: tools.mcp."+cli.Safe(s.Name)+".allow (docs/tools.md)", "server %s: left out is %s", cli.Safe(s.Name), cli.Safe(left))
		}
		switch {
		case s.Name == "":
		case s.State == "error":
			d.add("tools", odd, "bring it up, or set tools.mcp."+cli.Safe(s.Name)+".enabled to false (docs/tools.md)", "server %s: %s", cli.Safe(s.Name), cli.Safe(s.Error))
		case s.State == "reachable":
			good++
		}
	}
	if good > 0 {
		d.add("tools", fine, "", "%s reached", cli.Plural(good, "server"))
	}
	return true
}

// modules looks at the tools that are installed. None is the usual case, and nothing to say.
func (d *doctor) modules() {
	ts, err := wasi.Open(wasi.Config{Home: d.home, Reserved: node.BuiltInTools})
	if err != nil {
		d.add("tools", bad, "make the folder readable", "%s", err)
		return
	}
	defer ts.Close()
	list, err := ts.List()
	if err != nil {
		d.add("tools", bad, "make the folder readable, or correct what is named", "%s", err)
		return
	}
	broken := 0
	for _, t := range list {
		if t.Broken != "" {
			broken++
			d.add("tools", odd, "mend it, add it again with --force, or take it away with `tidemark tool rm "+cli.Safe(t.Name)+"`", "%s is left out: %s", cli.Safe(t.Name), cli.Safe(t.Broken))
		}
	}
	if n := len(list) - broken; n > 0 {
		d.add("tools", fine, "", "%s installed", cli.Plural(n, "module"))
	}
}

// nights tells what a server's memory left out lately, and of files of the digest that a person edited. It is
// silent where nothing is on.
func (d *doctor) nights(ctx context.Context, c *client) {
	var out struct {
		Night agent.Night `json:"night"`
	}
	if err := c.Get(ctx, cli.AgentPath(node.MainAgent, "/memory/ledger?limit=1"), &out); err != nil {
		return // an older server, or it was told above what it answers
	}
	if n := out.Night; n.Superseded > 0 {
		d.add("memory", fine, "", "%d facts count no more since newer ones replaced or ended them (`tidemark memory ledger`); the last night was %s", n.Superseded, cli.When(n.At))
	}
	var last agent.Consolidated
	switch err := json.Unmarshal(out.Night.Last, &last); {
	case err != nil:
	case last.Waiting == "" && last.Passed > 0:
		d.add("memory", fine, "", "%s never compared with older ones: in three nights the model gave no answer that could be read; later ones are compared", cli.Plural(last.Passed, "new fact"))
	case last.Waiting != "":
		d.add("memory", odd, "mend the model's key, quota or address, or name another one (compaction.model)", "new facts are not compared with older ones: %s", cli.Safe(last.Waiting))
	}
	if n := out.Night; len(n.Edited) > 0 {
		d.add("digest", odd, "take over what you want, then remove your file: the agent goes on with its own", "edited by a person and left as it is: %s; ours stands beside, as .suggested.md", cli.Safe(strings.Join(n.Edited, ", ")))
	}
}
