package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/json"
)

func (m *Main) archiveCommand() *cobra.Command {
	return group("archive", "List, read, search, verify and restore archives", `  tidemark archive ls
  tidemark archive cat 01K….jsonl.gz | jq -r .role
  tidemark archive search fence posts
  tidemark archive verify
  tidemark archive restore 01K….jsonl.gz --session found`,
		m.archiveLs(), m.archiveCat(), m.archiveSearch(), m.archiveVerify(), m.archiveRestore())
}

// archiveName accepts the key of an archive or its name.
func archiveName(s string) string { return path.Base(s) }

func (m *Main) archiveLs() *cobra.Command {
	var of, session string
	c := &cobra.Command{Use: "ls", Short: "List archives, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var found beside
				list, err := pagesOf[archive.Info](cmd.Context(), c, agentPath(of, "/archives?session="+url.QueryEscape(session)), "archives", &found)
				if err != nil {
					return err
				}
				found.note(m)
				if m.json {
					return m.printJSON(list)
				}
				rows := [][]string{{"ARCHIVE", "SESSION", "WHAT", "MESSAGES", "SIZE", "AT"}}
				for _, a := range list {
					what := "part " + fmt.Sprint(a.Part)
					if a.Whole() {
						what = "whole"
					}
					rows = append(rows, []string{path.Base(a.Key), plainKey(string(a.SessionKey)), what, fmt.Sprint(a.Messages), size(a.Bytes), when(a.At)})
				}
				table(m.out, rows)
				return nil
			})
		}}
	agentFlag(c, &of)
	c.Flags().StringVar(&session, "id", "", "only those of this session id")
	return m.jsonFlag(c)
}

func (m *Main) archiveCat() *cobra.Command {
	var of string
	var raw bool
	c := &cobra.Command{Use: "cat ARCHIVE", Short: "Print the messages of an archive, one a line", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				p := agentPath(of, "/archives/"+url.PathEscape(archiveName(args[0])))
				if !raw {
					p += "?format=jsonl"
				}
				return c.raw(cmd.Context(), p, m.out)
			})
		}}
	agentFlag(c, &of)
	c.Flags().BoolVar(&raw, "raw", false, "the gzip file as it is stored")
	return c
}

func (m *Main) archiveSearch() *cobra.Command {
	var of, session string
	var limit int
	c := &cobra.Command{Use: "search WORDS", Short: "Find messages in archives", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				q := url.Values{"q": {strings.Join(args, " ")}, "session": {session}, "limit": {strconv.Itoa(limit)}}
				var raw json.RawMessage
				if err := c.get(cmd.Context(), agentPath(of, "/archives-search?"+q.Encode()), &raw); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(raw)
				}
				var out struct {
					Hits []archive.Hit `json:"hits"`
				}
				if err := json.Unmarshal(raw, &out); err != nil {
					return err
				}
				for _, h := range out.Hits {
					m.out.printf("%s:%d  %-9s  %s\n", path.Base(h.Key), h.Line, h.Role, oneLine(h.Snippet, 300))
				}
				return nothing(m, len(out.Hits), "no archived message has these words")
			})
		}}
	agentFlag(c, &of)
	c.Flags().StringVar(&session, "id", "", "only in archives of this session id")
	c.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return m.jsonFlag(c)
}

func (m *Main) archiveVerify() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "verify [ARCHIVE]", Short: "Read one archive, or all, to the end and check every checksum", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				return m.verify(cmd.Context(), c, of, strings.Join(args, ""))
			})
		}}
	agentFlag(c, &of)
	return m.jsonFlag(c)
}

// verdicts is what a verification came to.
type verdicts struct {
	Verdicts []archive.Verdict `json:"verdicts"`
	OK       int               `json:"ok"`
	Bad      int               `json:"bad"`
	beside
}

// beside is what lies in the bucket and was not in the index of archives.
type beside struct {
	Added   []string `json:"added,omitempty"`   // archives that the index has from now on
	Stray   []string `json:"stray,omitempty"`   // files that are no archives
	Partial bool     `json:"partial,omitempty"` // there may be more
}

// note tells people of it.
func (b beside) note(m *Main) {
	for _, key := range b.Added {
		m.err.printf("added to the index: %s\n", oneLine(path.Base(key), 200))
	}
	for _, key := range b.Stray {
		m.err.printf("no archive, and passed over: %s\n", oneLine(key, 300))
	}
	if b.Partial {
		m.err.line("there may be more files beside the index; `tidemark archive verify` looks at all")
	}
}

// verify checks one archive or all, and fails when one is damaged.
func (m *Main) verify(ctx context.Context, c *client, of, name string) error {
	var out verdicts
	p := agentPath(of, "/archives-verify")
	var err error
	if name != "" {
		err = c.post(ctx, p, map[string]string{"archive": archiveName(name)}, &out)
	} else {
		err = c.events(ctx, http.MethodPost, p, nil, func(event string, data []byte) error {
			if event == "progress" {
				return m.progress(data, 0, 0)
			}
			return json.Unmarshal(data, &out)
		})
		m.progressEnd()
	}
	if err != nil {
		return err
	}
	if m.json {
		err = m.printJSON(out)
	} else {
		for _, v := range out.Verdicts {
			word := "ok  "
			if !v.OK {
				word = "BAD "
			}
			m.out.printf("%s %s  %s, %s\n", word, path.Base(v.Key), plural(v.Messages, "message"), size(v.Bytes))
			for _, p := range v.Problems {
				m.out.printf("     %s\n", p)
			}
		}
		beside{Added: out.Added}.note(m) // stray files are among the verdicts
		m.out.printf("%s ok, %d damaged", plural(out.OK, "archive"), out.Bad-len(out.Stray))
		if len(out.Added)+len(out.Stray) > 0 {
			m.out.printf(", %d were not in the index, %s", len(out.Added), plural(len(out.Stray), "stray file"))
		}
		m.out.line()
	}
	if err == nil && out.Bad > 0 && out.Bad == len(out.Stray) {
		return &fixed{fmt.Errorf("%s among the archives", plural(out.Bad, "stray file")), "move what is named above to another place; nobody can say what it holds"}
	}
	if err == nil && out.Bad > 0 {
		err = &fixed{errors.New("archives are damaged"), "restore these files from a copy of the bucket; what is not yet reset can be exported with `tidemark export`"}
	}
	return err
}

func (m *Main) archiveRestore() *cobra.Command {
	var session string
	c := &cobra.Command{Use: "restore ARCHIVE", Short: "Read an archive into a new or empty session", Args: cobra.ExactArgs(1),
		Example: `  tidemark archive restore 01K….jsonl.gz --session found`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if session == "" {
				return usagef("--session is missing: into which session?")
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			raw, err := json.Marshal(map[string]string{"archive": archiveName(args[0])})
			if err != nil {
				return err
			}
			return m.with(ctx, func(c *client) error {
				return m.replay(ctx, c, sessionPath(session, "/restore"), strings.NewReader(string(raw)), 0)
			})
		}}
	c.Flags().StringVar(&session, "session", "", "session to restore into")
	return m.jsonFlag(c)
}
