package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/probe"
)

// printProbe prints a report for people.
func (m *Main) printProbe(r probe.Report) {
	f := r.Files
	m.out.printf("%s of %s: %s with %s, dated %s\n", plural(f.Logs, "log"), size(f.Bytes), plural(r.Sessions, "session"), plural(r.Calls, "call"), cmp.Or(r.Date, "none"))
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
			m.out.printf("  %s %s\n", plural(told.n, told.thing), told.what)
		}
	}
	if r.Sessions == 0 {
		return
	}
	rows := [][]string{{"CLASS", "SESSIONS", "CALLS", "CONTENT", "INPUT", "OUTPUT", "A MEDIAN", "P75", "P90"}}
	for _, k := range r.Classes {
		a := k.Amplification
		rows = append(rows, append([]string{string(k.Class), strconv.Itoa(k.Sessions), strconv.Itoa(k.Calls), size(k.Content),
			count(tidemark.Tokens(k.Input)), count(tidemark.Tokens(k.Output))}, times(a, a.Median), times(a, a.P75), times(a, a.P90)))
	}
	m.out.line()
	table(m.out, rows)
	m.bars("CONTENT", r.Kinds)
	m.bars("SENT", r.Sent.Parts)
	m.out.printf("%s went out with %s", size(r.Sent.Bytes), plural(r.Calls, "call"))
	if r.Sent.Prefix > 0 {
		m.out.printf("; of each %s tokens stood before the messages", count(tidemark.Tokens(r.Sent.Prefix)))
	}
	m.out.line()
	m.probeTools(r.Tools)
	m.probeTokens(r)
}

// times is an amplification, empty where there is none.
func times(a probe.Spread, v float64) string {
	if a.Sessions == 0 {
		return "-"
	}
	return fixedPoint(v, 1) + "x"
}

func fixedPoint(v float64, places int) string { return strconv.FormatFloat(v, 'f', places, 64) }

func inPercent(share float64) string { return fixedPoint(100*share, 1) + " %" }

// barOf draws a share.
func barOf(share float64) string {
	const cells = 30
	return strings.Repeat("█", int(share*cells+.5))
}

// bars prints shares as a table with bars.
func (m *Main) bars(head string, of []probe.Share) {
	rows := [][]string{{head, "BYTES", "SHARE", ""}}
	for _, s := range of {
		if s.Bytes > 0 {
			rows = append(rows, []string{s.Name, size(s.Bytes), inPercent(s.Share), barOf(s.Share)})
		}
	}
	m.out.line()
	table(m.out, rows)
}

func (m *Main) probeTools(t probe.ToolsReport) {
	rows := [][]string{{"TOOL", "SESSIONS", "CALLS", "RESULTS", "SHARE", "MEAN", "ADOPTION", ""}}
	const most = 25
	for i, one := range t.List {
		if i == most {
			break
		}
		rows = append(rows, []string{safe(one.Name), strconv.Itoa(one.Sessions), strconv.Itoa(one.Calls), size(one.Bytes), inPercent(one.Share), size(int64(one.Mean)), inPercent(one.Adoption), barOf(one.Adoption)})
	}
	m.out.line()
	table(m.out, rows)
	if more := len(t.List) - most; more > 0 {
		m.out.printf("and %s; --json has all\n", plural(more, "more tool"))
	}
	m.out.printf("a session used %s of %s that are known (median of %s)\n", fixedPoint(t.Median, 1), plural(t.Known, "tool"), plural(t.Active, "session"))
}

func (m *Main) probeTokens(r probe.Report) {
	u, t, p := r.Usage, r.Tokens, r.Projection
	m.out.line()
	if u.Calls > 0 {
		m.out.printf("USAGE of %s: %s tokens in, %s of them read from the cache; %s a call; %s out\n", plural(u.Calls, "call"), count(tidemark.Tokens(u.Effective)), inPercent(u.CacheRead), count(tidemark.Tokens(u.PerCall)), count(tidemark.Tokens(u.Output)))
		m.out.printf("in to out %s:1 as reported, %s:1 by the size of the replies (logs often hold the figure of a reply that had just begun)\n", fixedPoint(u.InOut, 0), fixedPoint(u.InOutBytes, 0))
	}
	m.out.printf("BYTES/TOKEN %s by %s", fixedPoint(t.BytesPerToken, 2), t.Basis)
	if t.Basis == "usage" {
		m.out.printf(", over %s of calls; with it the log explains %s of the input", plural(t.Pairs, "pair"), inPercent(t.Explained))
	}
	m.out.line()
	rows := [][]string{{"TABLE 6", "TOKENS SAVED", "OF INPUT", "A CALL", "KNOWN FROM"}}
	row := func(s probe.Saving) {
		rows = append(rows, []string{s.Treatment, count(tidemark.Tokens(s.Tokens)), inPercent(s.Share), count(tidemark.Tokens(s.PerCall)), s.Basis})
	}
	for i, s := range p.Rows {
		if i == 3 {
			row(p.Table6)
		}
		row(s)
	}
	row(p.All)
	m.out.line()
	table(m.out, rows)
	m.out.printf("of %s tokens of input (%s); `tidemark probe --help` says what each figure is\n", count(tidemark.Tokens(p.Input)), p.Basis)
}

// probeColors are the colours of kinds and parts, of those of the anatomy.
var probeColors = map[string]string{"tool results": "tool", "tool inputs": "read", "model text": "model", "person text": "person", "thinking": "note",
	"images": "recall", "system": "system", "other": "other", "unused definitions": "tools", "static re-sent": "system", "doubled reminders": "summary",
	"repeated reads": "recall", "dead results": "tool", "in use": "note"}

// drawProbe draws a column for each session, as the anatomy does for each call: above what was said in it, by kind, below
// what was sent, by use.
func drawProbe(w io.Writer, r probe.Report) error {
	c := newChart(max(1, len(r.List)))
	c.most, c.cost = 1, 1
	for _, s := range r.List {
		c.most, c.cost = max(c.most, tidemark.Tokens(s.Content)), max(c.cost, tidemark.Tokens(s.Sent))
	}
	c.most, c.cost = c.most*21/20, c.cost*21/20
	c.head(chartBottom+100, "Probe", fmt.Sprintf("%s, %s: what was said, and what was sent", plural(r.Sessions, "session"), plural(r.Calls, "call")))
	c.axis(chartTop, chartHeight, c.most, "bytes said, each once")
	c.axis(chartLower, chartCost, c.cost, "bytes sent")
	kinds, parts := probePaints(r.Kinds), probePaints(r.Sent.Parts)
	for i, s := range r.List {
		c.stack(i, chartTop+chartHeight, chartHeight, c.most, kinds, heights(kinds, s.Kinds[:]))
		c.stack(i, chartBottom, chartCost, c.cost, parts, heights(parts, s.Parts[:]))
		c.hit(i, fmt.Sprintf("Session %s, %s\n%s, %s said, %s sent, %s of it waste\nA %.1f", s.Session, s.Class, plural(s.Calls, "call"), size(s.Content), size(s.Sent), inPercent(s.Waste), s.Amplification))
	}
	for i, of := range [][]probe.Share{r.Kinds, r.Sent.Parts} {
		var legend []swatch
		for _, one := range of {
			legend = append(legend, swatch{probeColors[one.Name], one.Name})
		}
		c.legend(chartBottom+32+22*i, legend)
	}
	return c.end(w)
}

// probePaints are the colours of shares, each once.
func probePaints(of []probe.Share) (paints []string) {
	for _, s := range of {
		paints = append(paints, probeColors[s.Name])
	}
	return paints
}

// heights gives bytes by their colour.
func heights(paints []string, bytes []int64) func(string) tidemark.Tokens {
	return func(paint string) tidemark.Tokens { return tidemark.Tokens(bytes[slices.Index(paints, paint)]) }
}
