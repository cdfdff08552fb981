package main

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/probe"
)

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
	m.Out.Printf("of %s tokens of input (%s); `tidemark probe --help` says what each figure is\n", cli.Count(tidemark.Tokens(p.Input)), p.Basis)
}
