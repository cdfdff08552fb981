package main

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// treatmentPaints are the colours of treatments, of those of the anatomy.
var treatmentPaints = map[string]string{bench.Direct: "dim", "observe": "other", "trim": "note", "page": "model", "page+trim": "tool"}

// treatedPlot draws sessions under their treatments: two charts each, in one page that needs nothing else.
type treatedPlot []treatedSession

// treatedCurve is a treatment at its calls of the main thread.
type treatedCurve struct {
	name                        string
	tokens, cost, share, faults []float64 // of the call; up to it, the other three
}

// curveOf takes the calls of a treatment, thinned to what a plot has room for.
func curveOf(t bench.Treated) treatedCurve {
	c := treatedCurve{name: t.Treatment}
	cost, read, all := 0.0, 0.0, 0.0
	mains := 0
	for _, s := range t.Series {
		if isMain(s.Thread) {
			mains++
		}
	}
	every := 1 + mains/maxPlotted
	n := 0
	for _, s := range t.Series {
		cost, read, all = cost+s.Cost, read+float64(s.Read), all+float64(s.Tokens)
		if !isMain(s.Thread) {
			continue
		}
		if n%every == 0 {
			c.tokens, c.cost = append(c.tokens, float64(s.Tokens)), append(c.cost, cost)
			c.share, c.faults = append(c.share, 100*read/max(all, 1)), append(c.faults, float64(s.Missing))
		}
		n++
	}
	return c
}

// isMain reports whether a thread is the one that is drawn: that of a made session, or a log.
func isMain(name string) bool { return name == "main" || name == "" }

// draw writes the page.
func (p treatedPlot) draw(w io.Writer) error {
	if _, err := io.WriteString(w, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Treatments</title></head><body>\n"); err != nil {
		return err
	}
	for _, s := range p {
		var curves []treatedCurve
		for _, t := range s.Treatments {
			curves = append(curves, curveOf(t))
		}
		title := cli.TitleOf(s.Session)
		err := drawTreated(w, title, curves,
			treatedPart{"tokens of a call of the main thread", func(c treatedCurve) []float64 { return c.tokens }},
			treatedPart{"cost so far, in input tokens of the list price", func(c treatedCurve) []float64 { return c.cost }})
		if err == nil {
			err = drawTreated(w, title, curves,
				treatedPart{"share of the input so far that was read from the cache, in percent", func(c treatedCurve) []float64 { return c.share }},
				treatedPart{"faults so far: what the agent needed had left", func(c treatedCurve) []float64 { return c.faults }})
		}
		if err == nil {
			err = writeTreated(w, s)
		}
		if err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "</body></html>\n")
	return err
}

// treatedPart is a part of a chart.
type treatedPart struct {
	title string
	of    func(treatedCurve) []float64
}

func (p treatedPart) most(curves []treatedCurve) tidemark.Tokens {
	most := 1.0
	for _, c := range curves {
		for _, v := range p.of(c) {
			most = max(most, v)
		}
	}
	return (tidemark.Tokens(most*1.05) + scaleLines) / scaleLines * scaleLines
}

// drawTreated draws one chart.
func drawTreated(w io.Writer, title string, curves []treatedCurve, upper, lower treatedPart) error {
	columns := 1
	for _, c := range curves {
		columns = max(columns, len(c.tokens))
	}
	c := newChart(columns)
	c.bar = float64(chartWidth) / float64(columns)
	c.most, c.cost = upper.most(curves), lower.most(curves)
	c.head(chartBottom+80, title, title)
	c.axis(chartTop, chartHeight, c.most, upper.title)
	c.axis(chartLower, chartCost, c.cost, lower.title)
	var legend []swatch
	for _, curve := range curves {
		c.line(curve.name, upper.of(curve), chartTop+chartHeight, chartHeight, c.most)
		c.line(curve.name, lower.of(curve), chartBottom, chartCost, c.cost)
		legend = append(legend, swatch{treatmentPaints[curve.name], curve.name})
	}
	c.legend(chartBottom+44, legend)
	return c.end(w)
}

// line draws the values of a treatment.
func (c *chart) line(name string, values []float64, bottom, height int, most tidemark.Tokens) {
	var points strings.Builder
	for i, v := range values {
		fmt.Fprintf(&points, " %.1f,%.1f", c.x(i)+c.bar/2, float64(bottom)-float64(height)*v/float64(most))
	}
	dash := ""
	if name == bench.Direct {
		dash = ` stroke-dasharray="5 3"`
	}
	fmt.Fprintf(&c.b, `<polyline fill="none" stroke="var(--%s)" stroke-width="1.7" stroke-linejoin="round"%s points="%s"><title>%s</title></polyline>`,
		treatmentPaints[name], dash, strings.TrimSpace(points.String()), html.EscapeString(name))
}

// writeTreated writes the table below the charts.
func writeTreated(w io.Writer, s treatedSession) error {
	var b strings.Builder
	b.WriteString(`<table style="font:13px system-ui,sans-serif;border-spacing:18px 3px">`)
	for i, row := range treatedRows(s.Treatments) {
		b.WriteString("<tr>")
		for n, cell := range row {
			kind := "td"
			if i == 0 || n == 0 {
				kind = "th"
			}
			fmt.Fprintf(&b, `<%s align="%s">%s</%s>`, kind, []string{"left", "right"}[min(n, 1)], html.EscapeString(strings.TrimSpace(cell)), kind)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// maxPlotted bounds the columns of a plot.
const maxPlotted = 1000
