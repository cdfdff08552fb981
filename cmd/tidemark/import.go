package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
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
			narrow, err := ownWindow(cmd, window)
			if err != nil {
				return err
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			in, size, err := m.open(args[0])
			if err != nil {
				return &fixed{fmt.Errorf("read log: %w", err), "check the path; - reads standard input"}
			}
			defer in.Close()
			path := sessionPath(key, "/import?format="+format)
			if narrow {
				path += "&window=" + strconv.FormatInt(window, 10)
			}
			return m.with(ctx, func(c *client) error {
				if err := c.ready(); err != nil {
					return err
				}
				return m.replay(ctx, c, path, in, size)
			})
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
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder, want a file", path)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// counter counts what is read through it, and keeps a failure of the reading apart from one of the
// server.
type counter struct {
	io.Reader
	n      atomic.Int64
	broken atomic.Pointer[error]
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		c.broken.Store(&err)
	}
	return n, err
}

// importTries is how often a log is sent whose connection breaks. A server that refuses one in its
// middle closes the connection upon the rest, and its reason may be lost with it.
const importTries = 4

// replayed is what came of an import.
type replayed struct {
	session.ImportResult
	BadLines int
	Warnings []string
}

// send sends a log, again when the connection breaks: what was read of it before is passed over.
func (m *Main) send(ctx context.Context, c *client, path string, in io.Reader, size int64) (replayed, error) {
	file, seekable := in.(io.ReaderAt)
	seekable = seekable && size > 0
	for n := 1; ; n++ {
		if seekable { // an earlier try may still be reading
			in = io.NewSectionReader(file, 0, size)
		}
		read := &counter{Reader: in}
		out, err := m.sendOnce(ctx, c, path, read, size)
		if broken := read.broken.Load(); broken != nil && err != nil && ctx.Err() == nil {
			return out, &fixed{fmt.Errorf("read log: %w", *broken), "check the path; what was read before is in the session, and importing again goes on there"}
		}
		var told *apiError
		lost := err != nil && !errors.As(err, &told) && ctx.Err() == nil && read.n.Load() > 0
		if lost && seekable && c.local == nil && n < importTries {
			continue
		}
		if lost {
			return out, &fixed{err, "import it again: what was read before is in the session, and it goes on there, or says why not"}
		}
		return out, err
	}
}

func (m *Main) sendOnce(ctx context.Context, c *client, path string, read *counter, size int64) (out replayed, err error) {
	defer m.progressEnd()
	err = c.events(ctx, http.MethodPost, path, read, func(name string, data []byte) error {
		if name == "progress" {
			return m.progress(data, read.n.Load(), size)
		}
		if name != "done" {
			return nil
		}
		if err := json.Unmarshal(data, &out.ImportResult); err != nil {
			return err
		}
		var more struct {
			BadLines int      `json:"badLines"`
			Warnings []string `json:"warnings"`
		}
		err := json.Unmarshal(data, &more)
		out.BadLines, out.Warnings = more.BadLines, more.Warnings
		return err
	})
	return out, err
}

// replay sends a log, shows how far it is and prints what came of it.
func (m *Main) replay(ctx context.Context, c *client, path string, in io.Reader, size int64) error {
	out, err := m.send(ctx, c, path, in, size)
	if err != nil {
		return err
	}
	const few = 5 // a person sees what they are like
	for _, w := range out.Warnings[:min(few, len(out.Warnings))] {
		m.err.printf("passed over: %s\n", w)
	}
	if out.BadLines > few {
		m.err.printf("passed over: %s\n", plural(out.BadLines-few, "more line"))
	}
	if out.Messages == 0 {
		return &fixed{errors.New("no message in this file; is it a Claude Code log?"), "give a log of Claude Code (.jsonl), or an export or archive of Tidemark"}
	}
	if m.json {
		return m.printJSON(out.ImportResult)
	}
	table(m.out, [][]string{
		{"messages", fmt.Sprint(out.Messages)}, {"entries", fmt.Sprint(out.Entries)}, {"compactions", fmt.Sprint(out.Compactions)},
		{"archived parts", fmt.Sprint(out.ArchivedParts)}, {"context", towards(out.ContextTokens, 0, out.Window)},
	})
	if out.Skipped > 0 {
		m.out.printf("there from an earlier import: %s\n", plural(out.Skipped, "message"))
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
