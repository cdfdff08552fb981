package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

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
func send(ctx context.Context, m *cli.Main, c *client, path string, in io.Reader, size int64) (replayed, error) {
	file, seekable := in.(io.ReaderAt)
	seekable = seekable && size > 0
	for n := 1; ; n++ {
		if seekable { // an earlier try may still be reading
			in = io.NewSectionReader(file, 0, size)
		}
		read := &counter{Reader: in}
		out, err := sendOnce(ctx, m, c, path, read, size)
		if broken := read.broken.Load(); broken != nil && err != nil && ctx.Err() == nil {
			return out, cli.Advise(fmt.Errorf("read log: %w", *broken), "check the path; what was read before is in the session, and importing again goes on there")
		}
		var told *cli.APIError
		lost := err != nil && !errors.As(err, &told) && ctx.Err() == nil && read.n.Load() > 0
		if lost && seekable && c.local == nil && n < importTries {
			continue
		}
		if lost {
			return out, cli.Advise(err, "import it again: what was read before is in the session, and it goes on there, or says why not")
		}
		return out, err
	}
}

func sendOnce(ctx context.Context, m *cli.Main, c *client, path string, read *counter, size int64) (out replayed, err error) {
	defer m.ProgressEnd()
	err = c.Events(ctx, http.MethodPost, path, read, func(name string, data []byte) error {
		if name == "progress" {
			return m.ShowProgress(data, read.n.Load(), size)
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

// playLog sends a log, shows how far it is and prints what came of it.
func playLog(ctx context.Context, m *cli.Main, c *client, path string, in io.Reader, size int64) error {
	out, err := send(ctx, m, c, path, in, size)
	if err != nil {
		return err
	}
	const few = 5 // a person sees what they are like
	for _, w := range out.Warnings[:min(few, len(out.Warnings))] {
		m.Err.Printf("passed over: %s\n", w)
	}
	if out.BadLines > few {
		m.Err.Printf("passed over: %s\n", cli.Plural(out.BadLines-few, "more line"))
	}
	if out.Messages == 0 {
		return cli.Advise(errors.New("no message in this file; is it a Claude Code log?"), "give a log of Claude Code (.jsonl), or an export or archive of Tidemark")
	}
	if m.JSON {
		return m.PrintJSON(out.ImportResult)
	}
	cli.PrintTable(m.Out, [][]string{
		{"messages", fmt.Sprint(out.Messages)}, {"entries", fmt.Sprint(out.Entries)}, {"compactions", fmt.Sprint(out.Compactions)},
		{"archived parts", fmt.Sprint(out.ArchivedParts)}, {"context", cli.Towards(out.ContextTokens, 0, out.Window)},
	})
	if out.Skipped > 0 {
		m.Out.Printf("there from an earlier import: %s\n", cli.Plural(out.Skipped, "message"))
	}
	return nil
}

type importFlags struct {
	Session, Format string
	Window          int64
}

func importLog(ctx context.Context, m *cli.Main, f *importFlags) error {
	if f.Session == "" {
		return cli.Usagef("--session is missing: into which session?")
	}
	narrow, err := ownWindow(m, f.Window)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	in, size, err := m.Open(m.Args[0])
	if err != nil {
		return cli.Advise(fmt.Errorf("read log: %w", err), "check the path; - reads standard input")
	}
	defer in.Close()
	path := cli.SessionPath(f.Session, "/import?format="+f.Format)
	if narrow {
		path += "&window=" + strconv.FormatInt(f.Window, 10)
	}
	return with(ctx, m, func(c *client) error {
		if err := c.ready(); err != nil {
			return err
		}
		return playLog(ctx, m, c, path, in, size)
	})
}
