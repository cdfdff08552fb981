package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
)

func (m *Main) memoryCommand() *cobra.Command {
	return group("memory", "List, read, search, edit and restore memory files", `  tidemark memory ls
  tidemark memory cat                       the newest daily file
  tidemark memory cat 2026-01-31            the file of a day
  tidemark memory cat MEMORY.md
  tidemark memory cat DIGEST.md
  tidemark memory search fence
  tidemark memory edit MEMORY.md
  tidemark memory undo MEMORY.md
  tidemark memory ledger                    what newer facts replaced
  tidemark memory digest`,
		m.memoryLs(), m.memoryCat(), m.memorySearch(), m.memoryEdit(), m.memoryUndo(), m.memoryLedger(), m.memoryDigest())
}

// memoryPath is the path of a memory file in the API.
func memoryPath(agent, path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return agentPath(agent, "/memory/"+strings.Join(parts, "/"))
}

func (m *Main) memoryLs() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "ls", Short: "List memory files", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				list, err := pages[agent.File](cmd.Context(), c, agentPath(of, "/memory"), "files")
				if err != nil {
					return err
				}
				if m.json {
					return m.printJSON(list)
				}
				rows := [][]string{{"FILE", "SIZE", "CHANGED"}}
				for _, f := range list {
					rows = append(rows, []string{f.Path, size(f.Size), when(f.Modified)})
				}
				table(m.out, rows)
				return nil
			})
		}}
	agentFlag(c, &of)
	return m.jsonFlag(c)
}

func (m *Main) memoryCat() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "cat [FILE|DAY]", Short: "Print a memory file, the newest daily one when none is named", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				return m.catMemory(cmd.Context(), c, of, strings.Join(args, ""))
			})
		}}
	agentFlag(c, &of)
	return m.jsonFlag(c)
}

// catMemory prints a memory file; an empty path is the newest daily file.
func (m *Main) catMemory(ctx context.Context, c *client, of, path string) error {
	if path == "" {
		list, err := pages[agent.File](ctx, c, agentPath(of, "/memory"), "files")
		if err != nil {
			return err
		}
		for _, f := range list {
			if dir, name := filepath.Split(f.Path); dir == "memory/" && len(name) == len("2006-01-02.md") {
				path = max(path, f.Path)
			}
		}
		if path == "" {
			m.err.line("nothing is remembered yet; memories are written at compaction and at reset")
			if m.json {
				return m.printJSON(nil)
			}
			return nil
		}
		if !m.json {
			m.err.line(m.dim("agents/" + of + "/" + path))
		}
	}
	_, day := daily(path)
	path, err := checked(path)
	if err != nil {
		return err
	}
	var text strings.Builder
	var to io.Writer = m.out
	if m.json {
		to = &text
	}
	err = c.raw(ctx, memoryPath(of, path), to)
	var api *apiError
	if day != "" && errors.As(err, &api) && api.Type == "not_found" {
		api.Message = "there is no memory file for " + day + ": not found"
	}
	if err != nil || !m.json {
		return err
	}
	return m.printJSON(map[string]string{"path": path, "text": text.String()})
}

// daily makes a day the path of its file. day is empty for a file that is none of a day.
func daily(name string) (path, day string) {
	day = strings.TrimSuffix(strings.TrimPrefix(name, "memory/"), ".md")
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return name, ""
	}
	return "memory/" + day + ".md", day
}

// checked is the path of the file that a name stands for. It is looked at here: on its way to a server a URL
// loses what a name such as ../x has of dots.
func checked(name string) (string, error) {
	path, _ := daily(name)
	if memory.CheckPath(path) != nil && memory.CheckPath("memory/"+path) == nil {
		path = "memory/" + path // DIGEST.md, and the files that it links as it names them
	}
	if err := memory.CheckPath(path); err != nil {
		return "", &fixed{err, "`tidemark memory ls` shows the files there are"}
	}
	return path, nil
}

func (m *Main) memorySearch() *cobra.Command {
	var of string
	var limit int
	c := &cobra.Command{Use: "search WORDS", Short: "Find lines of memory", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var out struct {
					Found []agent.Found `json:"found"`
				}
				path := agentPath(of, "/memory-search?limit="+strconv.Itoa(limit)+"&q="+url.QueryEscape(strings.Join(args, " ")))
				if err := c.get(cmd.Context(), path, &out); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(out)
				}
				for _, f := range out.Found {
					m.out.printf("%s:%d: %s\n", f.Path, f.Line, oneLine(f.Text, 300))
				}
				return nothing(m, len(out.Found), "nothing that is remembered has these words")
			})
		}}
	agentFlag(c, &of)
	c.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return m.jsonFlag(c)
}

func (m *Main) memoryUndo() *cobra.Command {
	var of string
	c := &cobra.Command{Use: "undo FILE", Short: "Bring a file's last version back", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				path, err := checked(args[0])
				if err != nil {
					return err
				}
				var f agent.File
				if err := c.post(cmd.Context(), agentPath(of, "/memory-undo"), map[string]string{"path": path}, &f); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(f)
				}
				m.out.printf("%s is as it was before its last edit (%s)\n", f.Path, size(f.Size))
				return nil
			})
		}}
	agentFlag(c, &of)
	return m.jsonFlag(c)
}

func (m *Main) memoryEdit() *cobra.Command {
	var of, from string
	c := &cobra.Command{
		Use: "edit FILE", Short: "Edit a memory or persona file; the version before is kept", Args: cobra.ExactArgs(1),
		Long: `Edit MEMORY.md, a persona file (SOUL.md, IDENTITY.md, USER.md, AGENTS.md,
TOOLS.md) or a daily file in $EDITOR, or replace it by --file. What someone else
wrote meanwhile is never overwritten.`,
		Example: `  tidemark memory edit MEMORY.md
  echo "Answer in Finnish." | tidemark memory edit SOUL.md --file -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error { return m.edit(cmd.Context(), c, of, args[0], from) })
		},
	}
	agentFlag(c, &of)
	c.Flags().StringVar(&from, "file", "", "new text, - for standard input")
	return m.jsonFlag(c)
}

// edit replaces a memory file if nobody else changed it meanwhile.
func (m *Main) edit(ctx context.Context, c *client, of, path, from string) error {
	if from == "" && !m.Terminal {
		return &fixed{errors.New("an editor needs a terminal, and there is none"), "give the new text by --file, - for standard input"}
	}
	path, err := checked(path)
	if err != nil {
		return err
	}
	old, condition, err := readMemory(ctx, c, of, path)
	if err != nil {
		return err
	}
	var text []byte
	if from != "" {
		in, _, err := m.open(from)
		if err != nil {
			return err
		}
		defer in.Close()
		if text, err = io.ReadAll(io.LimitReader(in, memory.MaxFile+1)); err != nil {
			return err
		}
	} else if text, err = m.editor(ctx, filepath.Base(path), old); err != nil {
		return err
	}
	if bytes.Equal(old, text) {
		m.err.line("nothing was changed")
		return nil
	}
	resp, err := c.do(ctx, http.MethodPut, memoryPath(of, path), bytes.NewReader(text), condition...)
	if err != nil {
		var api *apiError
		if errors.As(err, &api) && api.Type == "changed" && from == "" {
			return m.keepText(err, path, text)
		}
		return err
	}
	defer resp.Body.Close()
	var f agent.File
	raw, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		return err
	}
	if m.json {
		return m.printJSON(f)
	}
	m.out.printf("%s written, %s; `tidemark memory undo %s` brings the version before back\n", f.Path, size(f.Size), f.Path)
	return nil
}

// readMemory returns a file and the condition under which it may be replaced.
func readMemory(ctx context.Context, c *client, of, path string) ([]byte, []string, error) {
	resp, err := c.do(ctx, http.MethodGet, memoryPath(of, path), nil)
	var api *apiError
	if errors.As(err, &api) && api.Status == http.StatusNotFound {
		return nil, []string{"If-None-Match", "*"}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	old, err := io.ReadAll(resp.Body)
	return old, []string{"If-Match", resp.Header.Get("ETag")}, err
}

// editor lets a person change a text.
func (m *Main) editor(ctx context.Context, name string, old []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, old, 0o600); err != nil {
		return nil, err
	}
	words := strings.Fields(cmp.Or(m.env("VISUAL"), m.env("EDITOR"), "vi"))
	cmd := exec.CommandContext(ctx, words[0], append(slices.Clone(words[1:]), file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = m.Stdin, m.Stdout, m.Stderr, m.Environ
	if err := cmd.Run(); err != nil {
		return nil, &fixed{fmt.Errorf("editor %s: %w", words[0], err), "set EDITOR, or give the new text by --file"}
	}
	return os.ReadFile(file)
}

// keepText saves what a person wrote when it could not be stored.
func (m *Main) keepText(cause error, path string, text []byte) error {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("tidemark-%d-%s", time.Now().Unix(), filepath.Base(path)))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return errors.Join(cause, err)
	}
	return &fixed{cause, "your text is in " + file + "; edit again and take over from it what is missing"}
}
