package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
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
	key, since, until, scope, agent, peer string
	k, budget                             int
	all                                   bool
}

// path is the request; within says that the session was named.
func (l looking) path(query string, within bool) string {
	q := url.Values{"q": {query}, "k": {strconv.Itoa(l.k)}, "since": {l.since}, "until": {l.until}}
	if l.budget != 0 { // one below is for the server to refuse
		q.Set("budget", strconv.Itoa(l.budget))
	}
	if l.all {
		q.Set("all", "true")
	}
	if l.scope == "session" {
		return sessionPath(l.key, "/recall?"+q.Encode())
	}
	q.Set("scope", l.scope)
	q.Set("agent", l.agent)
	q.Set("peer", l.peer)
	if within {
		q.Set("session", l.key)
		q.Del("agent")
	}
	return "/v1/recall?" + q.Encode()
}

func (m *Main) recallCommand() *cobra.Command {
	var l looking
	var entry, episode *string
	c := &cobra.Command{Use: "recall QUERY", Short: "Find what was said, as the model's tool does",
		Args: func(cmd *cobra.Command, args []string) error {
			for _, whole := range []string{"entry", "episode"} {
				if cmd.Flags().Changed(whole) {
					return readAlone(cmd, args, whole)
				}
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		Long: `Find messages of a session, those that were evicted, summarised or archived
included, and say how far the find can be trusted: confident, weak or nothing.
Names, numbers and rare words find best. Without --session it is the session main.

--scope agent searches all sessions of an agent, --scope peer those with one peer: at
most eight that may hold the words. --session beside it: only what that one may find.

--entry ID, in the place of QUERY, prints one message whole, and --entry ID#N its block N:
what stood where a stub says recall({"entry": "ID#N"}), to the byte into a file or a pipe.

--episode NAME, in the place of QUERY, reads back what an agent marked by that name,
word for word, whatever of it left the context. tidemark episodes KEY lists the names;
work without a name goes by its "from" in tidemark episodes KEY --json.`,
		Example: `  tidemark recall "which port does the staging server use" --session main
  tidemark recall NEEDLE_FACT_7 --session main -k 3 --since 2026-05-01 --json
  tidemark recall "the key of the boathouse" --scope agent
  tidemark recall "opening hours" --scope peer --peer whatsapp:+4915123456789
  tidemark recall --entry '01jx0m2b7k9q#0' --session 'work#try-one' > original.txt
  tidemark recall --episode "auth flow" --session main`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("episode") {
				return m.readEpisode(cmd.Context(), l.key, *episode)
			}
			if cmd.Flags().Changed("entry") {
				return m.with(cmd.Context(), func(c *client) error { return m.readHandle(cmd.Context(), c, l.key, *entry) })
			}
			if l.peer != "" && l.scope != "peer" {
				return fmt.Errorf("--peer %s without --scope peer: add it, or leave --peer out: %w", oneLine(l.peer, 80), tidemark.ErrInvalid)
			}
			return m.with(cmd.Context(), func(c *client) error {
				path := l.path(strings.Join(args, " "), cmd.Flags().Changed("session"))
				var raw json.RawMessage
				if err := c.get(cmd.Context(), path, &raw); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(raw)
				}
				var found recalled
				if err := json.Unmarshal(raw, &found); err != nil {
					return err
				}
				return m.printRecalled(found, strings.Join(args, " "))
			})
		}}
	f := c.Flags()
	entry = f.String("entry", "", "read this entry whole, or with #N its block N, as a stub names it")
	episode = f.String("episode", "", "read this episode back, by its name")
	f.StringVar(&l.key, "session", "main", "key of the session")
	f.IntVarP(&l.k, "k", "k", 8, "how many at most")
	f.IntVar(&l.budget, "budget", 0, "tokens that the texts may have together; different ones come first then (0: no bound)")
	f.BoolVar(&l.all, "all", false, "also turns that the reconciler skipped (recall.reconcile)")
	f.StringVar(&l.since, "since", "", "from this day or time on, such as 2026-05-31")
	f.StringVar(&l.until, "until", "", "up to this day or time")
	f.StringVar(&l.scope, "scope", "session", "how far: session, agent or peer")
	f.StringVar(&l.agent, "agent", "main", "whose sessions, with --scope")
	f.StringVar(&l.peer, "peer", "", "whose conversations, with --scope peer")
	return m.jsonFlag(c)
}

// readHandle prints what the handle of a stub stands for. Who has it from a branch may not have named that.
func (m *Main) readHandle(ctx context.Context, c *client, key, handle string) error {
	id, _, _ := strings.Cut(handle, "#")
	if strings.TrimSpace(id) == "" || strings.ContainsAny(id, "{}\"/ ") {
		return usagef("--entry %q: want what stands between the quotes of a stub's recall({\"entry\": \"…\"}), such as 01jx0m2b7k9q#0", oneLine(handle, 80))
	}
	err := m.showEntry(ctx, c, key, handle)
	var answer *apiError
	if errors.As(err, &answer) && answer.Type == "not_found" {
		return &fixed{err, "name the session in which the stub stands by --session; `tidemark sessions` lists them"}
	}
	return err
}

func (m *Main) printRecalled(found recalled, query string) error {
	for _, r := range found.Results {
		if r.Key != "" {
			m.out.printf("%s  ", r.Key)
		}
		m.out.printf("%s  %s  %-9s  %3.0f %%  %s\n", r.ID, when(r.At), r.Role, 100*r.Coverage, shownAround(r.Text, query, m.Terminal))
	}
	if found.Reformulated != "" {
		m.err.line("asked again as: " + found.Reformulated)
	}
	if n := len(found.Unreached); n > 0 {
		m.err.line("not answered by " + strings.Join(found.Unreached, ", "))
	}
	for _, f := range found.Filtered {
		m.err.line("left out, " + f.Reason + ": " + strconv.Itoa(f.Count))
	}
	if found.Hint != "" {
		m.err.line(found.Hint)
	}
	m.err.line("verdict: " + found.Verdict + ", of " + strconv.Itoa(found.Considered) + " messages that were considered")
	return nil
}
