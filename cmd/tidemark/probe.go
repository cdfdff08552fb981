package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/probe"
	"github.com/tidemark-ai/tidemark/transcript"
)

// maxLogs bounds what is found below the folders that are given.
const maxLogs = 100_000

// probing is the command of that name.
type probing struct {
	minSize                 int64
	tools, chart            string
	snapshot, compare, date string
}

func (m *Main) probeCommand() *cobra.Command {
	p := &probing{minSize: probe.DefaultMinSize}
	c := &cobra.Command{Use: "probe PATH...", Short: "Measure what contexts of recorded sessions were made of", Args: cobra.MinimumNArgs(1),
		Long: `Measure logs of Claude Code (.jsonl): what their contexts were made of, and how much
of it was sent for nothing (Pichay, "Measurement"). A folder is walked, in order of
its names. Nothing is sent or stored, and no text of the logs is printed.

Counted are files of --min-size bytes and more. A session is the main chain of a log
or one subagent's; what two logs hold, as copies and resumed sessions do, counts once.
A call is one request to the model: its message, however many lines that has.

  A           how often a byte of a tool result was sent: sum(size x calls that carry
              it) / sum(size), up to the next compaction; of each session, then the
              median and the 75th and 90th percentile of a class
  CLASS       main, subagent, compact (wrote a summary, or begins with one),
              suggestion (of what to type next), other (no model answered)
  INPUT       tokens as the API reported them, cached ones included; OUTPUT likewise
  CONTENT     bytes of JSON, each once, by what they are; "system" are reminders,
              summaries and what else Claude Code wrote in somebody's name
  SENT        for each call all that was in its context:
    unused definitions  tools not used until then. Logs do not hold them: 18 of 3,505
                        bytes as in the paper, or those of --tools
    static re-sent      what else stands before the messages (system prompt, memory
                        files, used tools), from the second call of a session on; its
                        size is what the first call took beyond the log's messages
    doubled reminders   reminders and names of skills that were there already
    repeated reads      a result while a newer read of the same range is there, too
    dead results        results of 500 bytes and more that reported no error, 4
                        messages of role user and more after they came, if nothing
                        asks for the same (file and range, or equal input) or changes
                        the file any more
    in use              the rest
  TOOL        calls and bytes of results; ADOPTION is the share of sessions with a call
              of the model that used it
  TABLE 6     the paper's projection: what each treatment would save, in tokens of the
              input; its total is of the first three rows. A bound, no promise: what stands
              before the messages is mostly read from the cache
  BYTES/TOKEN how much the context grew from call to call, in bytes of the log and in
              tokens of usage; without usage the estimator of Tidemark says

--snapshot writes the report as JSON, dated by the newest message or --date: the same
logs give the same bytes, wherever they lie. --compare says what is other than in one.`,
		Example: `  tidemark probe ~/.claude/projects
  tidemark probe ~/.claude/projects/x --chart probe.svg --snapshot probe.json
  tidemark probe ~/.claude/projects --compare probe.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			return m.runProbe(ctx, p, args)
		}}
	f := c.Flags()
	f.Int64Var(&p.minSize, "min-size", p.minSize, "bytes of a log that counts; 0 counts all")
	f.StringVar(&p.tools, "tools", "", "JSON file with definitions of tools: a list, or a request that has \"tools\"")
	f.StringVar(&p.chart, "chart", "", "draw a chart (SVG) into this file")
	f.StringVar(&p.snapshot, "snapshot", "", "write the report (JSON) into this file")
	f.StringVar(&p.compare, "compare", "", "tell what is other than in this snapshot")
	f.StringVar(&p.date, "date", "", "date of the report instead of the newest message's, such as 2026-03-07")
	return m.jsonFlag(c)
}

// options reads the flags.
func (p *probing) options() (o probe.Options, err error) {
	if o.MinSize = p.minSize; p.minSize < 0 {
		return o, usagef("--min-size %d: want 0 or more bytes", p.minSize)
	} else if p.minSize == 0 {
		o.MinSize = -1
	}
	if p.date != "" {
		for _, form := range []string{time.DateOnly, time.RFC3339} {
			if o.Date, err = time.Parse(form, p.date); err == nil {
				break
			}
		}
		if err != nil {
			return o, usagef("--date %s: want a day such as 2026-03-07, or a time such as 2026-03-07T12:00:00Z", p.date)
		}
	}
	if p.tools != "" {
		if o.Definitions, err = definitions(p.tools); err != nil {
			return o, &fixed{fmt.Errorf("--tools: %w", err), "give the tools of a request to the Messages API: a JSON list of objects with name and input_schema"}
		}
	}
	return o, nil
}

// definitions reads the sizes of definitions of tools.
func definitions(file string) ([]probe.Definition, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		var request struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if err := json.Unmarshal(raw, &request); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		list = request.Tools
	}
	var out []probe.Definition
	for i, one := range list {
		var d struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(one, &d); err != nil || d.Name == "" {
			return nil, fmt.Errorf("read %s: tool %d has no name: %w", file, i+1, tidemark.ErrInvalid)
		}
		out = append(out, probe.Definition{Name: d.Name, Bytes: int64(len(one))})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read %s: no tools in it: %w", file, tidemark.ErrInvalid)
	}
	return out, nil
}

// logs lists the files that are meant, each once, in order.
func logs(paths []string) (files []string, err error) {
	seen := map[string]bool{}
	add := func(path string) error {
		if path = filepath.Clean(path); seen[path] {
			return nil
		}
		if seen[path] = true; len(files) == maxLogs {
			return &fixed{fmt.Errorf("more than %d logs: %w", maxLogs, tidemark.ErrTooLarge), "give some of the folders at a time"}
		}
		files = append(files, path)
		return nil
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, &fixed{err, "check the path; logs of Claude Code lie below ~/.claude/projects"}
		}
		if !info.IsDir() {
			if err := add(path); err != nil {
				return nil, err
			}
			continue
		}
		err = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(at, ".jsonl") {
				return err
			}
			return add(at)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, &fixed{errors.New("no log (.jsonl) below these paths"), "logs of Claude Code lie below ~/.claude/projects"}
	}
	return files, nil
}

func (m *Main) runProbe(ctx context.Context, p *probing, paths []string) error {
	o, err := p.options()
	if err != nil {
		return err
	}
	var was []byte
	if p.compare != "" { // before it may be written anew
		if was, err = os.ReadFile(p.compare); err != nil {
			return &fixed{err, "give a file that --snapshot wrote"}
		}
	}
	files, err := logs(paths)
	if err != nil {
		return err
	}
	if err := cmp.Or(spare("--chart", p.chart, append(files, p.tools)), spare("--snapshot", p.snapshot, append(files, p.tools))); err != nil {
		return err
	}
	c := probe.New(o)
	told := m.telling()
	for i, file := range files {
		if told != nil {
			told("logs", i, len(files))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := addLog(ctx, c, file); err != nil {
			m.progressEnd()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			m.err.printf("passed over: %s: %s\n", safe(file), safe(err.Error()))
		}
	}
	m.progressEnd()
	r := c.Report()
	raw, err := json.MarshalIndent(r)
	if err != nil {
		return err
	}
	if err := p.write(m, r, raw); err != nil {
		return err
	}
	switch {
	case p.compare != "":
		return m.compareProbe(was, raw)
	case m.json:
		m.out.line(string(raw))
	default:
		m.printProbe(r)
	}
	return nil
}

// addLog reads one file, until its context ends.
func addLog(ctx context.Context, c *probe.Corpus, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, len(packed))
	if n, _ := f.ReadAt(head, 0); string(head[:n]) == packed {
		return fmt.Errorf("it is packed (gzip), unpack it first: %w", tidemark.ErrInvalid)
	}
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	items := func(yield func(transcript.Item, error) bool) {
		for it, err := range transcript.Messages(f, transcript.Options{Chain: transcript.AllChains}) {
			if err := ctx.Err(); err != nil {
				yield(transcript.Item{}, err)
				return
			}
			if !yield(it, err) {
				return
			}
		}
	}
	return c.Add(probe.Log{Name: filepath.Base(file), Size: size, Sum: [sha256.Size]byte(h.Sum(nil)), Items: items})
}

// write writes the files that were asked for.
func (p *probing) write(m *Main, r probe.Report, raw []byte) error {
	for _, file := range []struct {
		path string
		fill func(io.Writer) error
	}{
		{p.chart, func(w io.Writer) error { return drawProbe(w, r) }},
		{p.snapshot, func(w io.Writer) error { _, err := w.Write(append(raw, '\n')); return err }},
	} {
		if file.path == "" {
			continue
		}
		if err := toFile(file.path, file.fill); err != nil {
			return err
		}
		m.err.line("wrote " + file.path)
	}
	return nil
}

// compareProbe prints what is other than in a snapshot.
func (m *Main) compareProbe(was, is []byte) error {
	found, err := probe.Compare(was, is)
	if err != nil {
		return &fixed{err, "give a file that --snapshot wrote"}
	}
	if m.json {
		return m.printJSON(struct {
			Differences []probe.Difference `json:"differences"`
		}{append([]probe.Difference{}, found...)})
	}
	if len(found) == 0 {
		m.out.line("nothing differs")
		return nil
	}
	rows := [][]string{{"FIELD", "WAS", "IS"}}
	for _, d := range found {
		rows = append(rows, []string{safe(d.Field), dash(d.Was), dash(d.Is)})
	}
	table(m.out, rows)
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return safe(s)
}
