package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
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

func probeLogs(ctx context.Context, m *cli.Main, p *probing) error {
	ctx, stop := cli.UntilInterrupt(ctx)
	defer stop()
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
	files, err := cli.Logs(m.Args)
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
	return cli.Either(m, struct {
		Differences []probe.Difference `json:"differences"`
	}{append([]probe.Difference{}, found...)}, func() {
		if len(found) == 0 {
			m.Out.Line("nothing differs")
			return
		}
		cli.Columns(m.Out, found, []string{"FIELD", "WAS", "IS"}, func(d probe.Difference) []string {
			return []string{cli.Safe(d.Field), dash(d.Was), dash(d.Is)}
		})
	})
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return cli.Safe(s)
}

// printProbe prints a report for people.
func printProbe(m *cli.Main, r probe.Report) {
	f := r.Files
	m.Out.Printf("%s of %s: %s with %s, dated %s\n", cli.Plural(f.Logs, "log"), cli.Size(f.Bytes), cli.Plural(r.Sessions, "session"), cli.Plural(r.Calls, "call"), cmp.Or(r.Date, "none"))
	for _, told := range []struct {
		n           int
		thing, what string
	}{
		{f.Small, "log", fmt.Sprintf("below --min-size %d left out", r.Protocol.MinSize)},
		{f.Copies, "log", "left out: equal to another"},
		{r.Held, "session", "left out: another log holds all its calls"},
		{f.Unread, "log", "left out: not to be read to the end"},
		{f.Damaged, "line", "passed over: not to be read"},
	} {
		if told.n > 0 {
			m.Out.Printf("  %s %s\n", cli.Plural(told.n, told.thing), told.what)
		}
	}
	if r.Sessions == 0 {
		return
	}
	rows := [][]string{{"CLASS", "SESSIONS", "CALLS", "CONTENT", "INPUT", "OUTPUT", "A MEDIAN", "P75", "P90"}}
	for _, k := range r.Classes {
		a := k.Amplification
		rows = append(rows, append([]string{string(k.Class), strconv.Itoa(k.Sessions), strconv.Itoa(k.Calls), cli.Size(k.Content),
			cli.Count(tidemark.Tokens(k.Input)), cli.Count(tidemark.Tokens(k.Output))}, times(a, a.Median), times(a, a.P75), times(a, a.P90)))
	}
	m.Out.Line()
	cli.PrintTable(m.Out, rows)
	bars(m, "CONTENT", r.Kinds)
	bars(m, "SENT", r.Sent.Parts)
	m.Out.Printf("%s went out with %s", cli.Size(r.Sent.Bytes), cli.Plural(r.Calls, "call"))
	if r.Sent.Prefix > 0 {
		m.Out.Printf("; of each %s tokens stood before the messages", cli.Count(tidemark.Tokens(r.Sent.Prefix)))
	}
	m.Out.Line()
	probeTools(m, r.Tools)
	probeTokens(m, r)
}

// times is an amplification, empty where there is none.
func times(a probe.Spread, v float64) string {
	if a.Sessions == 0 {
		return "-"
	}
	return cli.FixedPoint(v, 1) + "x"
}

// bars prints shares as a table.
func bars(m *cli.Main, head string, of []probe.Share) {
	rows := [][]string{{head, "BYTES", "SHARE"}}
	for _, s := range of {
		if s.Bytes > 0 {
			rows = append(rows, []string{s.Name, cli.Size(s.Bytes), cli.InPercent(s.Share)})
		}
	}
	m.Out.Line()
	cli.PrintTable(m.Out, rows)
}

func probeTools(m *cli.Main, t probe.ToolsReport) {
	rows := [][]string{{"TOOL", "SESSIONS", "CALLS", "RESULTS", "SHARE", "MEAN", "ADOPTION"}}
	const most = 25
	for i, one := range t.List {
		if i == most {
			break
		}
		rows = append(rows, []string{cli.Safe(one.Name), strconv.Itoa(one.Sessions), strconv.Itoa(one.Calls), cli.Size(one.Bytes), cli.InPercent(one.Share), cli.Size(int64(one.Mean)), cli.InPercent(one.Adoption)})
	}
	m.Out.Line()
	cli.PrintTable(m.Out, rows)
	if more := len(t.List) - most; more > 0 {
		m.Out.Printf("and %s; --json has all\n", cli.Plural(more, "more tool"))
	}
	m.Out.Printf("a session used %s of %s that are known (median of %s)\n", cli.FixedPoint(t.Median, 1), cli.Plural(t.Known, "tool"), cli.Plural(t.Active, "session"))
}

func probeTokens(m *cli.Main, r probe.Report) {
	u, t, p := r.Usage, r.Tokens, r.Projection
	m.Out.Line()
	if u.Calls > 0 {
		m.Out.Printf("USAGE of %s: %s tokens in, %s of them read from the cache; %s a call; %s out\n", cli.Plural(u.Calls, "call"), cli.Count(tidemark.Tokens(u.Effective)), cli.InPercent(u.CacheRead), cli.Count(tidemark.Tokens(u.PerCall)), cli.Count(tidemark.Tokens(u.Output)))
		m.Out.Printf("in to out %s:1 as reported, %s:1 by the size of the replies (logs often hold the figure of a reply that had just begun)\n", cli.FixedPoint(u.InOut, 0), cli.FixedPoint(u.InOutBytes, 0))
	}
	m.Out.Printf("BYTES/TOKEN %s by %s", cli.FixedPoint(t.BytesPerToken, 2), t.Basis)
	if t.Basis == "usage" {
		m.Out.Printf(", over %s of calls; with it the log explains %s of the input", cli.Plural(t.Pairs, "pair"), cli.InPercent(t.Explained))
	}
	m.Out.Line()
	rows := [][]string{{"TABLE 6", "TOKENS SAVED", "OF INPUT", "A CALL", "KNOWN FROM"}}
	row := func(s probe.Saving) {
		rows = append(rows, []string{s.Treatment, cli.Count(tidemark.Tokens(s.Tokens)), cli.InPercent(s.Share), cli.Count(tidemark.Tokens(s.PerCall)), s.Basis})
	}
	for i, s := range p.Rows {
		if i == 3 {
			row(p.Table6)
		}
		row(s)
	}
	row(p.All)
	m.Out.Line()
	cli.PrintTable(m.Out, rows)
	m.Out.Printf("of %s tokens of input (%s); `tidemark-bench probe --help` says what each figure is\n", cli.Count(tidemark.Tokens(p.Input)), p.Basis)
}
