package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// recalled is what GET …/recall answers, as far as it is printed.
type recalled struct {
	Verdict      string   `json:"verdict"`
	Hint         string   `json:"hint"`
	Considered   int      `json:"considered"`
	Reformulated string   `json:"reformulated"`
	Unreached    []string `json:"unreached"`
	Filtered     []struct {
		Reason string `json:"reason"`
		Count  int    `json:"count"`
	} `json:"filtered"`
	Results []struct {
		Key      string    `json:"key"` // of its session, with --scope
		ID       string    `json:"id"`
		At       time.Time `json:"at"`
		Role     string    `json:"role"`
		Coverage float64   `json:"coverage"`
		Text     string    `json:"text"`
	} `json:"results"`
}

// looking is what the command of that name looks for, and where.
type looking struct {
	Session, Since, Until, Scope, Agent, Peer string
	K, Budget                                 int
	All                                       bool
}

// path is the request; within says that the session was named.
func (l looking) path(query string, within bool) string {
	q := url.Values{"q": {query}, "k": {strconv.Itoa(l.K)}, "since": {l.Since}, "until": {l.Until}}
	if l.Budget != 0 { // one below is for the server to refuse
		q.Set("budget", strconv.Itoa(l.Budget))
	}
	if l.All {
		q.Set("all", "true")
	}
	if l.Scope == "session" {
		return cli.SessionPath(l.Session, "/recall?"+q.Encode())
	}
	q.Set("scope", l.Scope)
	q.Set("agent", l.Agent)
	q.Set("peer", l.Peer)
	if within {
		q.Set("session", l.Session)
		q.Del("agent")
	}
	return "/v1/recall?" + q.Encode()
}

// readHandle prints what the handle of a stub stands for. Who has it from a branch may not have named that.
func readHandle(ctx context.Context, m *cli.Main, c *client, key, handle string) error {
	id, _, _ := strings.Cut(handle, "#")
	if strings.TrimSpace(id) == "" || strings.ContainsAny(id, "{}\"/ ") {
		return cli.Usagef("--entry %q: want what stands between the quotes of a stub's recall({\"entry\": \"…\"}), such as 01jx0m2b7k9q#0", cli.OneLine(handle, 80))
	}
	err := showEntry(ctx, m, c, key, handle)
	var answer *cli.APIError
	if errors.As(err, &answer) && answer.Type == "not_found" {
		return cli.Advise(err, "name the session in which the stub stands by --session; `tidemark sessions` lists them")
	}
	return err
}

func printRecalled(m *cli.Main, found recalled, query string) error {
	for _, r := range found.Results {
		if r.Key != "" {
			m.Out.Printf("%s  ", r.Key)
		}
		m.Out.Printf("%s  %s  %-9s  %3.0f %%  %s\n", r.ID, cli.When(r.At), r.Role, 100*r.Coverage, shownAround(r.Text, query, m.Terminal))
	}
	if found.Reformulated != "" {
		m.Err.Line("asked again as: " + found.Reformulated)
	}
	if n := len(found.Unreached); n > 0 {
		m.Err.Line("not answered by " + strings.Join(found.Unreached, ", "))
	}
	for _, f := range found.Filtered {
		m.Err.Line("left out, " + f.Reason + ": " + strconv.Itoa(f.Count))
	}
	if found.Hint != "" {
		m.Err.Line(found.Hint)
	}
	m.Err.Line("verdict: " + found.Verdict + ", of " + strconv.Itoa(found.Considered) + " messages that were considered")
	return nil
}

type recallFlags struct {
	looking
	Entry, Episode string
}

// recallAsked lets a QUERY be left out beside what is read whole.
func recallAsked(m *cli.Main) error {
	for _, whole := range []string{"entry", "episode"} {
		if m.Changed(whole) {
			return readAlone(m, whole)
		}
	}
	if len(m.Args) == 0 {
		return cli.Usagef("%s: want QUERY, got nothing", m.Path())
	}
	return nil
}

func recallCommand(ctx context.Context, m *cli.Main, f *recallFlags) error {
	if m.Changed("episode") {
		return readEpisode(ctx, m, f.Session, f.Episode)
	}
	if m.Changed("entry") {
		return with(ctx, m, func(c *client) error { return readHandle(ctx, m, c, f.Session, f.Entry) })
	}
	if f.Peer != "" && f.Scope != "peer" {
		return fmt.Errorf("--peer %s without --scope peer: add it, or leave --peer out: %w", cli.OneLine(f.Peer, 80), tidemark.ErrInvalid)
	}
	query := strings.Join(m.Args, " ")
	return look(ctx, m, f.path(query, m.Changed("session")), func(found recalled) error { return printRecalled(m, found, query) })
}
