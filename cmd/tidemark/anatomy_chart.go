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

// anatomyStyle has the colours of the page, light and dark.
const anatomyStyle = `svg{font:12px system-ui,sans-serif;--bg:#fff;--fg:#1c2430;--dim:#667080;--line:#d5dae1;--bad:#b3261e;
--system:#6b7686;--tools:#a7b0bc;--summary:#7b4fc9;--marker:#4b2f8f;--stub:#c08be0;--person:#0f7a8a;--model:#2b6fd6;--tool:#c77700;--recall:#b0377a;--note:#5c8f2f;--other:#8c8c8c;--read:#7d5a33;--cached:#dcc9ae;--out:#e0b100}
@media(prefers-color-scheme:dark){svg{--bg:#14181f;--fg:#e6e9ee;--dim:#98a2b0;--line:#38404c;--bad:#ff8a80;
--system:#8a95a5;--tools:#5b6674;--summary:#b296f2;--marker:#d9c8ff;--stub:#7e5aa6;--person:#4fc3d3;--model:#6ea8fe;--tool:#f0b355;--recall:#ee86bb;--note:#a3d977;--other:#767676;--read:#b08a5e;--cached:#54452f;--out:#fff08a}}
svg .bg{fill:var(--bg)}svg text{fill:var(--fg)}svg .dim{fill:var(--dim)}svg .grid{stroke:var(--line)}svg .limit{stroke:var(--bad);fill:none;stroke-width:1.5}
svg .cut{stroke:var(--fg);stroke-dasharray:3 3}svg .reset{stroke:var(--bad)}svg .hit{fill:transparent}svg .hit:hover{fill:var(--fg);fill-opacity:.08}svg .bad{fill:var(--bad)}svg .limits{fill:var(--bad)}`

// Measures of the chart, in pixels.
const (
	chartLeft   = 64
	chartTop    = 46
	chartHeight = 300
	chartCost   = 110 // of the lower part
	chartGap    = 46
	chartRight  = 24
	chartWidth  = 1000
	widestBar   = 36
)

// chart is a drawing in work.
type chart struct {
	b     strings.Builder
	calls []session.Anatomy
	bar   float64         // width of a column with its gap
	most  tidemark.Tokens // at the top of the upper part
	cost  tidemark.Tokens // and of the lower
}

// drawAnatomy writes the records as an SVG that needs nothing else.
func drawAnatomy(w io.Writer, key string, calls []session.Anatomy) error {
	c := &chart{calls: calls, bar: min(widestBar, float64(chartWidth)/float64(len(calls)))}
	for _, a := range calls {
		c.most = max(c.most, a.Limit, a.Size, stacked(a))
		c.cost = max(c.cost, a.Usage.Input+a.Usage.CacheCreation+a.Usage.CacheRead+a.Usage.Output)
	}
	c.most, c.cost = max(c.most, 1)*21/20, max(c.cost, 1)*21/20
	const bottom = chartTop + chartHeight + chartGap + chartCost
	width, height := chartLeft+chartWidth+chartRight, bottom+86
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Anatomy of %s"><style>%s</style><rect class="bg" width="100%%" height="100%%"/>`,
		width, height, html.EscapeString(key), anatomyStyle)
	fmt.Fprintf(&c.b, `<text x="%d" y="20" font-size="15" font-weight="600">%s: what %s saw, and what it cost</text>`, chartLeft, html.EscapeString(key), plural(len(calls), "model call"))
	c.axis(chartTop, chartHeight, c.most, "tokens of the context")
	c.axis(chartTop+chartHeight+chartGap, chartCost, c.cost, "tokens of the call")
	for i, a := range calls {
		c.column(i, a)
	}
	c.limits()
	for i := range calls {
		c.cuts(i)
	}
	for i, a := range calls {
		c.label(i, a, bottom)
	}
	c.legend(bottom + 44)
	c.b.WriteString("</svg>\n")
	_, err := io.WriteString(w, c.b.String())
	return err
}

// portion returns the tokens of one part of a context.
func portion(a session.Anatomy, kind string) tidemark.Tokens {
	switch kind {
	case "system":
		return a.System
	case "tools":
		return a.Tools
	case "other":
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

// x is the left edge of a column.
func (c *chart) x(i int) float64 { return chartLeft + float64(i)*c.bar }

// axis draws the lines of a part and their figures.
func (c *chart) axis(top, height int, most tidemark.Tokens, title string) {
	const lines = 4
	for i := range lines + 1 {
		y := float64(top) + float64(height)*float64(lines-i)/lines
		fmt.Fprintf(&c.b, `<line class="grid" x1="%d" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="dim" x="%d" y="%.1f" text-anchor="end">%s</text>`,
			chartLeft, chartLeft+c.bar*float64(len(c.calls)), y, y, chartLeft-8, y+4, count(most*tidemark.Tokens(i)/lines))
	}
	fmt.Fprintf(&c.b, `<text class="dim" x="%d" y="%d">%s</text>`, chartLeft, top-8, title)
}

// stack draws the portions of a column from the bottom up.
func (c *chart) stack(i, bottom, height int, most tidemark.Tokens, kinds []string, of func(string) tidemark.Tokens) {
	y := float64(bottom)
	gap := min(2, c.bar/5)
	for _, k := range kinds {
		h := float64(height) * float64(of(k)) / float64(most)
		if h <= 0 {
			continue
		}
		y -= h
		fmt.Fprintf(&c.b, `<rect fill="var(--%s)" x="%.1f" y="%.2f" width="%.1f" height="%.2f"/>`, k, c.x(i)+gap/2, y, c.bar-gap, h)
	}
}

// column draws a call: its context, its cost, and a field over both that tells all.
func (c *chart) column(i int, a session.Anatomy) {
	c.stack(i, chartTop+chartHeight, chartHeight, c.most, anatomyParts, func(k string) tidemark.Tokens { return portion(a, k) })
	c.stack(i, chartTop+chartHeight+chartGap+chartCost, chartCost, c.cost, anatomyCosts, func(k string) tidemark.Tokens { return costOf(a, k) })
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
func (c *chart) limits() {
	var path strings.Builder
	y := 0.0
	for i, a := range c.calls {
		y = chartTop + chartHeight*(1-float64(a.Limit)/float64(c.most))
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1fL%.1f %.1f", verb, c.x(i), y, c.x(i)+c.bar, y)
	}
	fmt.Fprintf(&c.b, `<path class="limit" d="%s"/><text class="limits" x="%.1f" y="%.1f" text-anchor="end">limit %s</text>`,
		path.String(), c.x(len(c.calls)), y-5, count(c.calls[len(c.calls)-1].Limit))
}

// cuts marks compactions and resets before a call.
func (c *chart) cuts(i int) {
	if i == 0 {
		return
	}
	var class, what string
	was, is := c.calls[i-1], c.calls[i]
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
func (c *chart) label(i int, a session.Anatomy, bottom int) {
	const room = 40
	if every := max(1, int(room/c.bar)); i%every == 0 {
		fmt.Fprintf(&c.b, `<text class="dim" x="%.1f" y="%d" text-anchor="middle">%d</text>`, c.x(i)+c.bar/2, bottom+18, a.N)
	}
	if a.Stop == "error" {
		fmt.Fprintf(&c.b, `<text class="bad" x="%.1f" y="%d" text-anchor="middle">✕</text>`, c.x(i)+c.bar/2, chartTop+chartHeight+16)
	}
	fmt.Fprintf(&c.b, `<rect class="hit" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s</title></rect>`,
		c.x(i), chartTop, c.bar, bottom-chartTop, html.EscapeString(tellCall(a)))
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

// legend names the colours.
func (c *chart) legend(y int) {
	x := chartLeft
	for _, k := range append(slices.Clone(anatomyParts), anatomyCosts...) {
		const swatch, letter, space = 16, 7, 16
		if wide := swatch + letter*len(anatomyNames[k]); x+wide > chartLeft+chartWidth {
			x, y = chartLeft, y+20
		}
		fmt.Fprintf(&c.b, `<rect fill="var(--%s)" x="%d" y="%d" width="11" height="11"/><text x="%d" y="%d">%s</text>`, k, x, y-10, x+swatch, y, anatomyNames[k])
		x += swatch + letter*len(anatomyNames[k]) + space
	}
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
