package main

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// chartStyle has the colours of the page, light and dark.
const chartStyle = `svg{font:12px system-ui,sans-serif;--bg:#fff;--fg:#1c2430;--dim:#667080;--line:#d5dae1;--bad:#b3261e;
--system:#6b7686;--tools:#a7b0bc;--summary:#7b4fc9;--marker:#4b2f8f;--stub:#c08be0;--person:#0f7a8a;--model:#2b6fd6;--tool:#c77700;--recall:#b0377a;--note:#5c8f2f;--other:#8c8c8c;--read:#7d5a33;--cached:#dcc9ae;--out:#e0b100}
@media(prefers-color-scheme:dark){svg{--bg:#14181f;--fg:#e6e9ee;--dim:#98a2b0;--line:#38404c;--bad:#ff8a80;
--system:#8a95a5;--tools:#5b6674;--summary:#b296f2;--marker:#d9c8ff;--stub:#7e5aa6;--person:#4fc3d3;--model:#6ea8fe;--tool:#f0b355;--recall:#ee86bb;--note:#a3d977;--other:#767676;--read:#b08a5e;--cached:#54452f;--out:#fff08a}}
svg .bg{fill:var(--bg)}svg text{fill:var(--fg)}svg .dim{fill:var(--dim)}svg .grid{stroke:var(--line)}svg .limit{stroke:var(--bad);fill:none;stroke-width:1.5}
svg .cut{stroke:var(--fg);stroke-dasharray:3 3}svg .reset{stroke:var(--bad)}svg .hit{fill:transparent}svg .hit:hover{fill:var(--fg);fill-opacity:.08}svg .bad{fill:var(--bad)}svg .limits{fill:var(--bad)}`

// Measures of a chart, in pixels: an upper and a lower part, which have the same columns.
const (
	chartLeft   = 64
	chartTop    = 46
	chartHeight = 300
	chartCost   = 110 // of the lower part
	chartGap    = 46
	chartRight  = 24
	chartWidth  = 1000
	chartLower  = chartTop + chartHeight + chartGap // where the lower part begins
	chartBottom = chartLower + chartCost            // and ends
	widestBar   = 36
	scaleLines  = 4 // of a part, above its zero
)

// chart is a drawing in work: an SVG that needs nothing else.
type chart struct {
	b       strings.Builder
	columns int
	bar     float64 // width of a column with its gap
}

func newChart(columns int) *chart {
	return &chart{columns: columns, bar: min(widestBar, float64(chartWidth)/float64(columns))}
}

// head begins the drawing.
func (c *chart) head(height int, label, title string) {
	const width = chartLeft + chartWidth + chartRight
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s"><style>%s</style><rect class="bg" width="100%%" height="100%%"/>`,
		width, height, html.EscapeString(label), chartStyle)
	fmt.Fprintf(&c.b, `<text x="%d" y="20" font-size="15" font-weight="600">%s</text>`, chartLeft, html.EscapeString(title))
}

// end ends it and writes it out.
func (c *chart) end(w io.Writer) error {
	c.b.WriteString("</svg>\n")
	_, err := io.WriteString(w, c.b.String())
	return err
}

// x is the left edge of a column.
func (c *chart) x(i int) float64 { return chartLeft + float64(i)*c.bar }

// axis draws the lines of a part and their figures.
func (c *chart) axis(top, height int, most tidemark.Tokens, title string) {
	c.scale(top, height, title, func(i int) string { return cli.Count(most * tidemark.Tokens(i) / scaleLines) })
}

// scale draws the lines of a part; says gives the words of the one that is i of scaleLines high.
func (c *chart) scale(top, height int, title string, says func(i int) string) {
	for i := range scaleLines + 1 {
		y := float64(top) + float64(height)*float64(scaleLines-i)/scaleLines
		fmt.Fprintf(&c.b, `<line class="grid" x1="%d" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="dim" x="%d" y="%.1f" text-anchor="end">%s</text>`,
			chartLeft, c.x(c.columns), y, y, chartLeft-8, y+4, says(i))
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

// swatch is a colour and what it stands for.
type swatch struct{ paint, name string }

// legend names the colours, from the left, in as many lines as that takes.
func (c *chart) legend(y int, of []swatch) {
	x := chartLeft
	for _, s := range of {
		const square, letter, space = 16, 7, 16
		wide := square + letter*len(s.name)
		if x+wide > chartLeft+chartWidth {
			x, y = chartLeft, y+20
		}
		fmt.Fprintf(&c.b, `<rect fill="var(--%s)" x="%d" y="%d" width="11" height="11"/><text x="%d" y="%d">%s</text>`, s.paint, x, y-10, x+square, y, html.EscapeString(s.name))
		x += wide + space
	}
}
