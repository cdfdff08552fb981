package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/reflection"
	"github.com/tidemark-ai/tidemark/session"
)

// pageSize is how much of a listing is asked for at once.
const pageSize = 500

func (m *Main) sessionsCommand() *cobra.Command {
	return group("sessions", "List, show, set up and search sessions", `  tidemark sessions ls
  tidemark sessions show main
  tidemark sessions set garden --title "The garden" --window 8000
  tidemark sessions search main fence posts`,
		m.sessionsLs(), m.sessionsShow(), m.sessionsSet(), m.sessionsSearch())
}

func (m *Main) sessionsLs() *cobra.Command {
	var agent string
	var all bool
	c := &cobra.Command{Use: "ls", Short: "List sessions, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				list, err := pages[tidemark.SessionInfo](cmd.Context(), c, "/v1/sessions?agent="+url.QueryEscape(agent), "sessions")
				if err != nil {
					return err
				}
				if !all {
					shown := slices.DeleteFunc(slices.Clone(list), func(s tidemark.SessionInfo) bool { return s.Key.Channel() == tidemark.ChannelDelegate })
					if n := len(list) - len(shown); n > 0 && !m.json {
						defer func() { m.err.line(plural(n, "delegated conversation") + " left out; --all lists them") }()
					}
					list = shown
				}
				if m.json {
					return m.printJSON(list)
				}
				rows := [][]string{{"SESSION", "MESSAGES", "CONTEXT", "COMPACTIONS", "RESETS", "UPDATED", "TITLE"}}
				for _, s := range list {
					rows = append(rows, []string{plainKey(string(s.Key)), fmt.Sprint(s.Messages), count(s.ContextTokens) + "/" + count(s.Window),
						fmt.Sprint(s.Compactions), fmt.Sprint(s.Resets), when(s.UpdatedAt), oneLine(s.Title, 60)})
				}
				table(m.out, rows)
				return nil
			})
		}}
	agentFlag(c, &agent)
	c.Flags().BoolVar(&all, "all", false, "also those that an agent delegated work to")
	return m.jsonFlag(c)
}

func (m *Main) agentsCommand() *cobra.Command {
	return m.jsonFlag(&cobra.Command{Use: "agents", Short: "List agents, the owners of sessions, memory and archives", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var out struct {
					Agents []struct {
						ID string `json:"id"`
					} `json:"agents"`
				}
				if err := c.get(cmd.Context(), "/v1/agents", &out); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(out.Agents)
				}
				for _, a := range out.Agents {
					m.out.line(a.ID)
				}
				return nil
			})
		}})
}

func agentFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "agent", "main", "whose")
}

// pages reads a whole listing, page by page. The list is never nil.
func pages[T any](ctx context.Context, c *client, path, name string) ([]T, error) {
	return pagesOf[T](ctx, c, path, name, nil)
}

// pagesOf is pages with what the first page says beside its list, unless head is nil.
func pagesOf[T any](ctx context.Context, c *client, path, name string, head any) ([]T, error) {
	list := []T{}
	cursor := ""
	for {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		var raw json.RawMessage
		if err := c.get(ctx, path+sep+"limit="+strconv.Itoa(pageSize)+"&cursor="+url.QueryEscape(cursor), &raw); err != nil {
			return nil, err
		}
		if head != nil && cursor == "" {
			if err := json.Unmarshal(raw, head); err != nil {
				return nil, fmt.Errorf("listing of %s: %w", name, err)
			}
		}
		var page map[string]json.RawMessage
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("listing of %s: %w", name, err)
		}
		var some []T
		if err := json.Unmarshal(page[name], &some); err != nil {
			return nil, fmt.Errorf("listing of %s: %w", name, err)
		}
		list = append(list, some...)
		next := ""
		if page["next"] != nil {
			if err := json.Unmarshal(page["next"], &next); err != nil {
				return nil, fmt.Errorf("listing of %s: %w", name, err)
			}
		}
		if next == "" || next == cursor {
			return list, nil
		}
		cursor = next
	}
}

func (m *Main) sessionsShow() *cobra.Command {
	return m.jsonFlag(&cobra.Command{Use: "show KEY", Short: "Show one session", Args: oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error { return m.showSession(cmd.Context(), c, args[0]) })
		}})
}

// showSession prints what there is to know of a session.
func (m *Main) showSession(ctx context.Context, c *client, key string) error {
	var raw json.RawMessage
	if err := c.get(ctx, sessionPath(key, ""), &raw); err != nil {
		return err
	}
	if m.json {
		return m.printJSON(raw)
	}
	var s sessionView
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	busy := "no"
	if s.Busy != "" {
		busy = "run " + s.Busy
	}
	compacted, resets := fmt.Sprintf("%d times, next above %s (reserve %s, keep %s)", s.Compactions, count(s.Limit), count(s.Reserve), count(s.Keep)), fmt.Sprint(s.Resets)
	limit := s.Limit
	if isProxied(string(s.Key)) {
		limit = 0
		compacted, resets = "never: its client keeps the history", "none, for the same reason"
	}
	rows := [][]string{
		{"session", string(s.Key)}, {"id", s.ID}, {"title", oneLine(s.Title, 200)},
		{"messages", fmt.Sprint(s.Messages)},
		{"context", towards(s.ContextTokens, limit, s.Window)},
		{"compacted", compacted},
		{"resets", resets},
		{"used", fmt.Sprintf("%s tokens in, %s out since the reset", count(s.Usage.Input+s.Usage.CacheRead+s.Usage.CacheCreation), count(s.Usage.Output))},
		{"created", when(s.CreatedAt)}, {"updated", when(s.UpdatedAt)}, {"in work", busy},
	}
	if s.From != "" && s.From != tidemark.WindowSet.String() {
		rows = append(rows, []string{"window", count(s.Window) + ": " + s.From})
	}
	if s.Skipped > 0 {
		rows = append(rows, []string{"skipped", plural(s.Skipped, "message") + " that recall leaves out (recall.reconcile); recall --all finds them"})
	}
	if _, calls, err := anatomies(ctx, c, key, 0, 1); err == nil { // it stands beside the calls
		var page struct {
			Tuning reflection.Tuning `json:"tuning"`
		}
		if json.Unmarshal(calls, &page) == nil && page.Tuning != (reflection.Tuning{}) {
			rows = append(rows, []string{"tuned", "by reflection " + tellTuning(page.Tuning)})
		}
	}
	if s.Settings != (session.Override{}) {
		own, err := json.Marshal(s.Settings)
		if err != nil {
			return err
		}
		rows = append(rows, []string{"its own", string(own)})
	}
	table(m.out, rows)
	m.tellTracks(ctx, c, key)
	return nil
}

func (m *Main) sessionsSet() *cobra.Command {
	var title, model string
	var window, reserve, keep int64
	var unset []string
	c := &cobra.Command{
		Use: "set KEY", Short: "Give a session a title, a model or limits of its own", Args: cobra.ExactArgs(1),
		Example: `  tidemark sessions set garden --title "The garden"
  tidemark sessions set work --window 32000 --reserve 4000
  tidemark sessions set work --unset window,reserveTokens`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{}
			for _, s := range []struct {
				flag, name string
				value      any
			}{
				{"title", "title", title}, {"model", "model", model}, {"window", "window", window},
				{"reserve", "reserveTokens", reserve}, {"keep", "keepRecentTokens", keep},
			} {
				if cmd.Flags().Changed(s.flag) {
					body[s.name] = s.value
				}
			}
			if _, err := ownWindow(cmd, window); err != nil {
				return err
			}
			for _, name := range unset {
				body[name] = nil
			}
			if len(body) == 0 {
				return usagef("nothing to set: give --title, --model, --window, --reserve, --keep or --unset")
			}
			return m.with(cmd.Context(), func(c *client) error {
				if err := c.call(cmd.Context(), http.MethodPatch, sessionPath(args[0], ""), body, nil); err != nil {
					return err
				}
				return m.showSession(cmd.Context(), c, args[0])
			})
		},
	}
	f := c.Flags()
	f.StringVar(&title, "title", "", "what a person calls it")
	f.StringVar(&model, "model", "", "model of the configured provider")
	f.Int64Var(&window, "window", 0, "context window in tokens")
	f.Int64Var(&reserve, "reserve", 0, "tokens left free for the next reply")
	f.Int64Var(&keep, "keep", 0, "tokens of the newest messages that a compaction leaves alone")
	f.StringSliceVar(&unset, "unset", nil, "take settings back: title, model, window, reserveTokens, keepRecentTokens")
	return m.jsonFlag(c)
}

func (m *Main) sessionsSearch() *cobra.Command {
	var limit int
	c := &cobra.Command{Use: "search KEY WORDS", Short: "Find messages of a session, those before a reset included", Args: cobra.MinimumNArgs(2),
		Example: `  tidemark sessions search main fence posts`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var out struct {
					Found []struct {
						Entry string    `json:"id"`
						At    time.Time `json:"at"`
						Role  string    `json:"role"`
						Text  string    `json:"text"`
					} `json:"found"`
				}
				var raw json.RawMessage
				q := "/search?limit=" + strconv.Itoa(limit) + "&q=" + url.QueryEscape(strings.Join(args[1:], " "))
				if err := c.get(cmd.Context(), sessionPath(args[0], q), &raw); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(raw)
				}
				if err := json.Unmarshal(raw, &out); err != nil {
					return err
				}
				for _, f := range out.Found {
					m.out.printf("%s  %s  %-9s  %s\n", f.Entry, when(f.At), f.Role, oneLine(f.Text, 300))
				}
				return nothing(m, len(out.Found), "no message has these words")
			})
		}}
	c.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return m.jsonFlag(c)
}

// nothing says so when a listing for people is empty.
func nothing(m *Main, n int, text string) error {
	if n == 0 {
		m.err.line(text)
	}
	return nil
}
