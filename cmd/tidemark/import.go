package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

func (m *Main) importCommand() *cobra.Command {
	var key, format string
	var window int64
	c := &cobra.Command{
		Use: "import FILE|-", Short: "Replay another tool's log through a session", Args: cobra.ExactArgs(1),
		Long: `Replay a log of Claude Code, or an export or archive of Tidemark, through a
session as if it had been said there: the context is compacted whenever it is
over the limit of the session's window. A log that was cut off goes on where it
ended when it is imported again.`,
		Example: `  tidemark import ~/.claude/projects/x/1f2e.jsonl --session work --window 32000
  tidemark import - --session copy < export.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				return usagef("--session is missing: into which session?")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			in, size, err := m.open(args[0])
			if err != nil {
				return &fixed{fmt.Errorf("read log: %w", err), "check the path; - reads standard input"}
			}
			defer in.Close()
			path := sessionPath(key, "/import?format="+format)
			if window != 0 {
				path += "&window=" + strconv.FormatInt(window, 10)
			}
			return m.with(ctx, func(c *client) error { return m.replay(ctx, c, path, in, size) })
		},
	}
	f := c.Flags()
	f.StringVar(&key, "session", "", "session to import into")
	f.Int64Var(&window, "window", 0, "the session's context window, in tokens")
	f.StringVar(&format, "format", "auto", "claude, jsonl or auto")
	return m.jsonFlag(c)
}

// open opens a file, or standard input. size is 0 when it is not known.
func (m *Main) open(path string) (in io.ReadCloser, size int64, err error) {
	if path == "-" {
		return io.NopCloser(m.Stdin), 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	return f, size, nil
}

// counter counts what is read through it.
type counter struct {
	io.Reader
	n atomic.Int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// replay sends a log, shows how far it is and prints what came of it.
func (m *Main) replay(ctx context.Context, c *client, path string, in io.Reader, size int64) error {
	read := &counter{Reader: in}
	var out session.ImportResult
	var more struct {
		BadLines int      `json:"badLines"`
		Warnings []string `json:"warnings"`
	}
	err := c.events(ctx, http.MethodPost, path, read, func(name string, data []byte) error {
		if name == "progress" {
			return m.progress(data, read.n.Load(), size)
		}
		if name != "done" {
			return nil
		}
		if err := json.Unmarshal(data, &out); err != nil {
			return err
		}
		return json.Unmarshal(data, &more)
	})
	m.progressEnd()
	if err != nil {
		return err
	}
	for _, w := range more.Warnings {
		m.err.printf("passed over: %s\n", w)
	}
	if more.BadLines > len(more.Warnings) {
		m.err.printf("passed over: %d more lines\n", more.BadLines-len(more.Warnings))
	}
	if m.json {
		return m.printJSON(out)
	}
	table(m.out, [][]string{
		{"messages", fmt.Sprint(out.Messages)}, {"entries", fmt.Sprint(out.Entries)}, {"compactions", fmt.Sprint(out.Compactions)},
		{"archived parts", fmt.Sprint(out.ArchivedParts)}, {"context", gauge(out.ContextTokens, out.Window)},
	})
	if out.Skipped > 0 {
		m.out.printf("%d messages were there from an earlier import\n", out.Skipped)
	}
	return nil
}

// progress shows how far long work is, when a person sees it.
func (m *Main) progress(data []byte, read, size int64) error {
	var p struct {
		Done, Total int
		Key         string
	}
	if err := json.Unmarshal(data, &p); err != nil || !m.Progress {
		return err
	}
	text := fmt.Sprintf("%d messages", p.Done)
	if p.Total > 0 {
		text = fmt.Sprintf("%d of %d archives", p.Done, p.Total)
	} else if size > 0 {
		const percent = 100
		text += fmt.Sprintf(", %d%% of %s read", read*percent/size, ofSize(size))
	}
	m.err.printf("\r\x1b[K%s", text)
	return nil
}

func ofSize(n int64) string { return size(n) }

func (m *Main) progressEnd() {
	if m.Progress {
		m.err.put("\r\x1b[K")
	}
}
