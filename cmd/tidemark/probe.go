package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/probe"
	"github.com/tidemark-ai/tidemark/transcript"
)

// probing is the command of that name.
type probing struct {
	MinSize                 int64
	Tools                   string
	Snapshot, Compare, Date string
}

// options reads the flags.
func (p *probing) options() (o probe.Options, err error) {
	if o.MinSize = p.MinSize; p.MinSize < 0 {
		return o, cli.Usagef("--min-size %d: want 0 or more bytes", p.MinSize)
	} else if p.MinSize == 0 {
		o.MinSize = -1
	}
	if p.Date != "" {
		for _, form := range []string{time.DateOnly, time.RFC3339} {
			if o.Date, err = time.Parse(form, p.Date); err == nil {
				break
			}
		}
		if err != nil {
			return o, cli.Usagef("--date %s: want a day such as 2026-03-07, or a time such as 2026-03-07T12:00:00Z", p.Date)
		}
	}
	if p.Tools != "" {
		if o.Definitions, err = definitions(p.Tools); err != nil {
			return o, cli.Advise(fmt.Errorf("--tools: %w", err), "give the tools of a request to the Messages API: a JSON list of objects with name and input_schema")
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

func runProbe(ctx context.Context, m *cli.Main, p *probing, paths []string) error {
	o, err := p.options()
	if err != nil {
		return err
	}
	var was []byte
	if p.Compare != "" { // before it may be written anew
		if was, err = os.ReadFile(p.Compare); err != nil {
			return cli.Advise(err, "give a file that --snapshot wrote")
		}
	}
	files, err := cli.Logs(paths)
	if err != nil {
		return err
	}
	if err := cli.Spare("--snapshot", p.Snapshot, append(files, p.Tools)); err != nil {
		return err
	}
	c := probe.New(o)
	told := m.Telling()
	for i, file := range files {
		if told != nil {
			told("logs", i, len(files))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := addLog(ctx, c, file); err != nil {
			m.ProgressEnd()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			m.Err.Printf("passed over: %s: %s\n", cli.Safe(file), cli.Safe(err.Error()))
		}
	}
	m.ProgressEnd()
	r := c.Report()
	raw, err := json.MarshalIndent(r)
	if err != nil {
		return err
	}
	if p.Snapshot != "" {
		if err := cli.ToFile(p.Snapshot, func(w io.Writer) error { _, err := w.Write(append(raw, '\n')); return err }); err != nil {
			return err
		}
		m.Err.Line("wrote " + p.Snapshot)
	}
	switch {
	case p.Compare != "":
		return compareProbe(m, was, raw)
	case m.JSON:
		m.Out.Line(string(raw))
	default:
		printProbe(m, r)
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
	head := make([]byte, len(cli.Packed))
	if n, _ := f.ReadAt(head, 0); string(head[:n]) == cli.Packed {
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

// compareProbe prints what is other than in a snapshot.
func compareProbe(m *cli.Main, was, is []byte) error {
	found, err := probe.Compare(was, is)
	if err != nil {
		return cli.Advise(err, "give a file that --snapshot wrote")
	}
	if m.JSON {
		return m.PrintJSON(struct {
			Differences []probe.Difference `json:"differences"`
		}{append([]probe.Difference{}, found...)})
	}
	if len(found) == 0 {
		m.Out.Line("nothing differs")
		return nil
	}
	rows := [][]string{{"FIELD", "WAS", "IS"}}
	for _, d := range found {
		rows = append(rows, []string{cli.Safe(d.Field), dash(d.Was), dash(d.Is)})
	}
	cli.PrintTable(m.Out, rows)
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return cli.Safe(s)
}

func probeLogs(ctx context.Context, m *cli.Main, p *probing) error {
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
	return runProbe(ctx, m, p, m.Args)
}
