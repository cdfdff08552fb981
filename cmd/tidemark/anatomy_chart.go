package main

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// anatomyParts is what a context is made of, from the bottom of a column up: what stays first.
var anatomyParts = []string{"system", "tools", "summary", "marker", "stub", "person", "model", "tool", "recall", "note", "other"}

// anatomyCosts is what a call was charged for, from the bottom of a column up.
var anatomyCosts = []string{"cached", "read", "out"}

// anatomyNames are the parts as people read them: in the chart, and in capitals in the table.
var anatomyNames = map[string]string{"system": "System", "tools": "Schemas", "summary": "Summary", "marker": "Marker", "stub": "Stub",
	"person": "Person", "model": "Model", "tool": "Tool", "recall": "Recall", "note": "Pushed", "other": "Other",
	"read": "Read", "cached": "Cached", "out": "Out"}

// drawAnatomy writes the records as an SVG that needs nothing else.
func drawAnatomy(w io.Writer, key string, calls []session.Anatomy) error {
	c := newChart(len(calls))
	for _, a := range calls {
		c.most = max(c.most, a.Limit, a.Size, stacked(a))
		c.cost = max(c.cost, a.Usage.Input+a.Usage.CacheCreation+a.Usage.CacheRead+a.Usage.Output)
	}
	c.most, c.cost = max(c.most, 1)*21/20, max(c.cost, 1)*21/20
	c.head(chartBottom+86, "Anatomy of "+key, fmt.Sprintf("%s: what %s saw, and what it cost", key, plural(len(calls), "model call")))
	c.axis(chartTop, chartHeight, c.most, "tokens of the context")
	c.axis(chartLower, chartCost, c.cost, "tokens of the call")
	for i, a := range calls {
		c.column(i, a)
	}
	c.limits(calls)
	for i := 1; i < len(calls); i++ {
		c.cuts(i, calls[i-1], calls[i])
	}
	for i, a := range calls {
		c.label(i, a)
	}
	var legend []swatch
	for _, k := range append(slices.Clone(anatomyParts), anatomyCosts...) {
		legend = append(legend, swatch{k, anatomyNames[k]})
	}
	c.legend(chartBottom+44, legend)
	return c.end(w)
}

// portion returns the tokens of one part of a context.
func portion(a session.Anatomy, kind string) tidemark.Tokens {
	switch kind {
	case "system":
		return a.System
	case "tools":
		return a.Tools
	case "other":
		if a.Proxy != nil { // what it is made of is the client's
			return a.Size
		}
		n := tidemark.Tokens(0)
		for k, p := range a.Parts {
			if anatomyNames[k] == "" {
				n += p.Tokens
			}
		}
		return n
	}
	return a.Parts[kind].Tokens
}

// stacked is the height of a column.
func stacked(a session.Anatomy) tidemark.Tokens {
	n := tidemark.Tokens(0)
	for _, k := range anatomyParts {
		n += portion(a, k)
	}
	return n
}

// column draws a call: its context, its cost, and a field over both that tells all.
func (c *chart) column(i int, a session.Anatomy) {
	c.stack(i, chartTop+chartHeight, chartHeight, c.most, anatomyParts, func(k string) tidemark.Tokens { return portion(a, k) })
	c.stack(i, chartBottom, chartCost, c.cost, anatomyCosts, func(k string) tidemark.Tokens { return costOf(a, k) })
}

func costOf(a session.Anatomy, kind string) tidemark.Tokens {
	switch kind {
	case "cached":
		return a.Usage.CacheRead
	case "read":
		return a.Usage.Input + a.Usage.CacheCreation
	}
	return a.Usage.Output
}

// limits draws the size at which the context is compacted, which may change on the way.
func (c *chart) limits(calls []session.Anatomy) {
	var path strings.Builder
	y := 0.0
	for i, a := range calls {
		y = chartTop + chartHeight*(1-float64(a.Limit)/float64(c.most))
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1fL%.1f %.1f", verb, c.x(i), y, c.x(i)+c.bar, y)
	}
	fmt.Fprintf(&c.b, `<path class="limit" d="%s"/><text class="limits" x="%.1f" y="%.1f" text-anchor="end">limit %s</text>`,
		path.String(), c.x(len(calls)), y-5, count(calls[len(calls)-1].Limit))
}

// cuts marks compactions and resets before a call.
func (c *chart) cuts(i int, was, is session.Anatomy) {
	var class, what string
	switch {
	case was.Session != is.Session:
		class, what = "reset", "reset"
	case is.Cycle > was.Cycle:
		class, what = "cut", plural(is.Cycle-was.Cycle, "compaction")
	default:
		return
	}
	const middle = chartTop + chartHeight
	fmt.Fprintf(&c.b, `<g><title>%s before call %d: %s to %s tokens</title>`, what, is.N, count(cmp.Or(was.Context, was.Size)), count(is.Size))
	for _, y := range [][2]int{{chartTop, middle}, {middle + chartGap, middle + chartGap + chartCost}} { // not through the headings
		fmt.Fprintf(&c.b, `<line class="%s" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, class, c.x(i), c.x(i), y[0], y[1])
	}
	c.b.WriteString("</g>")
}

// label writes the number of a call where there is room, marks one that failed, and lays the field over it
// that tells all.
func (c *chart) label(i int, a session.Anatomy) {
	c.number(i, a.N)
	if a.Stop == "error" {
		fmt.Fprintf(&c.b, `<text class="bad" x="%.1f" y="%d" text-anchor="middle">✕</text>`, c.x(i)+c.bar/2, chartTop+chartHeight+16)
	}
	c.hit(i, tellCall(a))
}

// tellCall says in lines what a call was.
func tellCall(a session.Anatomy) string {
	lines := []string{fmt.Sprintf("Call %d, %s, %s", a.N, time.UnixMilli(a.At).UTC().Format("2006-01-02 15:04 UTC"), a.Model),
		fmt.Sprintf("%d of %d tokens, %.1f %%, compaction cycle %d", a.Size, a.Limit, a.Full, a.Cycle)}
	for _, k := range anatomyParts {
		if n := portion(a, k); n > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d", anatomyNames[k], n))
		}
	}
	lines = append(lines, fmt.Sprintf("Read: %d, cached: %d, out: %d", costOf(a, "read"), costOf(a, "cached"), costOf(a, "out")))
	if a.Topic != nil {
		lines = append(lines, "Topic: "+topicOf(a))
	}
	if a.Error != "" {
		lines = append(lines, "Failed: "+a.Error)
	}
	return strings.Join(lines, "\n")
}

// pageStyle is of the page around the chart.
const pageStyle = `:root{color-scheme:light dark}body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem;background:light-dark(#fff,#14181f);color:light-dark(#1c2430,#e6e9ee)}
svg{inline-size:100%;block-size:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin-block-start:1rem}div{overflow-x:auto}
table{font-size:12px}th{font-size:10px}th,td{padding:.15rem .3rem;text-align:end;white-space:nowrap;border-block-end:1px solid light-dark(#d5dae1,#38404c)}th{font-weight:600}td:last-child,th:last-child{text-align:start;white-space:normal;min-inline-size:7rem}`

// pageAnatomy writes a page with chart and table; no script, and nothing from elsewhere.
func pageAnatomy(w io.Writer, key string, calls []session.Anatomy) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Anatomy of %s</title><style>%s</style></head><body>\n",
		html.EscapeString(key), pageStyle)
	if err := drawAnatomy(&b, key, calls); err != nil {
		return err
	}
	b.WriteString("<div><table>\n")
	for i, row := range anatomyRows(calls) {
		cell := "td"
		if i == 0 {
			cell = "th"
		}
		b.WriteString("<tr>")
		for _, text := range row {
			fmt.Fprintf(&b, "<%s>%s</%s>", cell, html.EscapeString(text), cell)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div></body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
