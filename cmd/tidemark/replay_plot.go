package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
)

const (
	maxPlotted = 1000 // columns of a plot, of requests or of sessions
	maxTitle   = 60   // characters of the name of a session
	parts      = 1000 // of a ratio of 1, as heights are counted
)

// policyPaints are the colours of policies, of those of the anatomy.
var policyPaints = map[string]string{"cost": "model", "lru": "recall", "fifo": "tool", "batch": "note", "cost-optimal": "person", "min": "summary"}

// plot gathers what a replay draws: of one session its requests, of several what each cost by each policy.
type plot struct {
	policies []string
	traces   []trace // of the first session, by policy; none once there is a second
	sessions []plottedSession
	ratios   []float64 // of all sessions, added up, by policy
	faults   []int     // the same
	seen     int
}

// trace is what a policy made of the requests of a session, in columns of one request or more.
type trace struct {
	requests int
	every    int // requests of a column
	columns  []plotColumn
	cost     float64
	base     float64
	relaxed  bool // a bound, whose requests are of no plan
}

type plotColumn struct {
	in, out    int     // bytes of the largest of its requests
	cost, base float64 // up to its last
	faults     int
}

// plottedSession is what one of several sessions came to, by policy.
type plottedSession struct {
	name     string
	requests int
	ratios   []float64
	faults   []int
}

func newPlot(policies []string) *plot {
	n := len(policies)
	return &plot{policies: policies, traces: make([]trace, n), ratios: make([]float64, n), faults: make([]int, n)}
}

// add takes a request by a policy.
func (p *plot) add(policy int, d *paging.Decision) {
	if p.traces != nil {
		p.traces[policy].add(d)
	}
}

// add takes a request. When the columns are all used, two become one.
func (t *trace) add(d *paging.Decision) {
	t.every = max(t.every, 1)
	t.cost += paging.Cost(d.Out, d.Same)
	t.base += paging.Cost(d.In, d.SameIn)
	at := t.requests / t.every
	t.requests++
	if at == maxPlotted {
		for i := range maxPlotted / 2 {
			a, b := t.columns[2*i], t.columns[2*i+1]
			t.columns[i] = plotColumn{max(a.in, b.in), max(a.out, b.out), b.cost, b.base, a.faults + b.faults}
		}
		t.columns, t.every, at = t.columns[:maxPlotted/2], 2*t.every, maxPlotted/2
	}
	if at == len(t.columns) {
		t.columns = append(t.columns, plotColumn{})
	}
	c := &t.columns[at]
	c.in, c.out, c.cost, c.base = max(c.in, d.In), max(c.out, d.Out), t.cost, t.base
	for _, f := range d.Fault {
		if !f.Again {
			c.faults++
		}
	}
}

// ended takes what a session came to, by policy. One without requests is no column.
func (p *plot) ended(rows []sessionTotals) {
	if rows[0].Requests == 0 {
		return
	}
	s := plottedSession{name: titleOf(rows[0].Session), requests: rows[0].Requests}
	for i, row := range rows {
		s.ratios, s.faults = append(s.ratios, row.Ratio), append(s.faults, row.Faults)
		p.ratios[i] += row.Ratio
		p.faults[i] += row.Faults
		if p.seen == 0 {
			p.traces[i].relaxed = row.Relaxed > 0
		}
	}
	if p.seen++; p.seen > 1 {
		p.traces = nil
	}
	if len(p.sessions) < maxPlotted {
		p.sessions = append(p.sessions, s)
	}
}

// draw writes the plot as an SVG that needs nothing else.
func (p *plot) draw(w io.Writer) error {
	if p.traces != nil {
		return p.drawSession(w)
	}
	return p.drawSessions(w)
}

// drawSession draws the requests of one session: above their bytes, below what they cost up to each.
func (p *plot) drawSession(w io.Writer) error {
	first := p.traces[0] // all have the same columns
	c := newChart(max(1, len(first.columns)))
	c.bar = float64(chartWidth) / float64(c.columns)
	name, most, dear := "no session", 1, 1.0
	if len(p.sessions) > 0 {
		name = p.sessions[0].name
	}
	for _, t := range p.traces {
		for _, col := range t.columns {
			most, dear = max(most, col.in, col.out), max(dear, col.cost, col.base)
		}
	}
	c.most, c.cost = tidemark.Tokens(most)*21/20, tidemark.Tokens(dear*1.05)
	c.head(chartBottom+120, "Replay", fmt.Sprintf("%s: %s by policy", name, plural(first.requests, "request")))
	c.axis(chartTop, chartHeight, c.most, "bytes of a request; ○ a fault: something is read again that had left")
	c.axis(chartLower, chartCost, c.cost, "cost so far, in bytes at the list price of input")
	legend := []swatch{{"dim", fmt.Sprintf("nothing replaced %s", count(tidemark.Tokens(first.base)))}}
	c.curve("dim", first.columns, true)
	for i, t := range p.traces {
		if t.relaxed {
			legend = append(legend, swatch{p.paint(i), p.policies[i] + ": a bound that is no plan, see the table"})
			continue
		}
		c.curve(p.paint(i), t.columns, false)
		legend = append(legend, swatch{p.paint(i), fmt.Sprintf("%s %s, %s, %s", p.policies[i], count(tidemark.Tokens(t.cost)), p.ratio(t.cost, t.base), plural(p.faults[i], "fault"))})
	}
	for i := range first.columns {
		c.number(i, int64(i*first.every))
		c.hit(i, p.tell(i))
	}
	fmt.Fprintf(&c.b, `<text class="dim" x="%d" y="%d">request, from 0</text>`, chartLeft, chartBottom+38)
	c.legend(chartBottom+64, legend)
	return c.end(w)
}

func (p *plot) paint(policy int) string { return policyPaints[p.policies[policy]] }

func (p *plot) ratio(cost, base float64) string { return fixedPoint(cost/max(base, 1), 3) }

// titleOf is the name of a session, cut where it is long.
func titleOf(session string) string {
	if name := []rune(strings.Join(strings.Fields(safe(session)), " ")); len(name) > maxTitle {
		return string(name[:maxTitle]) + "…"
	} else if len(name) > 0 {
		return string(name)
	}
	return "unnamed"
}

// curve draws a policy in both parts; plain is what would be with nothing replaced.
func (c *chart) curve(paint string, columns []plotColumn, plain bool) {
	line := func(lower, height int, top tidemark.Tokens, value func(plotColumn) float64) {
		var points strings.Builder
		for i, col := range columns {
			fmt.Fprintf(&points, " %.1f,%.1f", c.x(i)+c.bar/2, float64(lower)-float64(height)*value(col)/float64(top))
		}
		dash := ""
		if plain {
			dash = ` stroke-dasharray="2 4"`
		}
		fmt.Fprintf(&c.b, `<polyline fill="none" stroke="var(--%s)" stroke-width="1.7" stroke-linejoin="round"%s points="%s"/>`, paint, dash, strings.TrimSpace(points.String()))
	}
	line(chartTop+chartHeight, chartHeight, c.most, func(col plotColumn) float64 {
		if plain {
			return float64(col.in)
		}
		return float64(col.out)
	})
	line(chartBottom, chartCost, c.cost, func(col plotColumn) float64 {
		if plain {
			return col.base
		}
		return col.cost
	})
	if plain {
		return
	}
	for i, col := range columns {
		if col.faults > 0 {
			fmt.Fprintf(&c.b, `<circle cx="%.1f" cy="%.1f" r="3.2" fill="var(--bg)" stroke="var(--%s)" stroke-width="1.5"/>`,
				c.x(i)+c.bar/2, chartTop+chartHeight-chartHeight*float64(col.out)/float64(c.most), paint)
		}
	}
}

// tell says in lines what a column is.
func (p *plot) tell(i int) string {
	first := p.traces[0]
	lines := []string{fmt.Sprintf("Request %d", i*first.every)}
	if last := min((i+1)*first.every, first.requests) - 1; last > i*first.every {
		lines[0] = fmt.Sprintf("Requests %d to %d", i*first.every, last)
	}
	lines = append(lines, fmt.Sprintf("nothing replaced: %s, cost so far %.0f", size(int64(first.columns[i].in)), first.columns[i].base))
	for at, t := range p.traces {
		if t.relaxed {
			continue
		}
		says := fmt.Sprintf("%s: %s, cost so far %.0f", p.policies[at], size(int64(t.columns[i].out)), t.columns[i].cost)
		if n := t.columns[i].faults; n > 0 {
			says += ", " + plural(n, "fault")
		}
		lines = append(lines, says)
	}
	return strings.Join(lines, "\n")
}

// drawSessions draws a group of columns for each session: above the cost by that of the same requests with nothing replaced,
// below the faults. The mean stands as a line.
func (p *plot) drawSessions(w io.Writer) error {
	c := newChart(len(p.sessions))
	c.bar = min(widestBar*float64(len(p.policies)), chartWidth/float64(c.columns))
	top, faults := 1.0, 1
	for _, s := range p.sessions {
		top, faults = max(top, slices.Max(s.ratios)), max(faults, slices.Max(s.faults))
	}
	const step = parts * scaleLines / 10 // so that each line of the scale is a tenth or more of them
	c.most, c.cost = (tidemark.Tokens(top*parts*1.02)+step-1)/step*step, (tidemark.Tokens(faults)+scaleLines-1)/scaleLines*scaleLines
	title := plural(p.seen, "session") + ": cost by that with nothing replaced"
	if p.seen > len(p.sessions) {
		title += fmt.Sprintf(" (the first %d are drawn)", len(p.sessions))
	}
	c.head(chartBottom+120, "Replay", title)
	c.scale(chartTop, chartHeight, "cost of a session, nothing replaced being 1; dashed the mean over all", func(i int) string {
		return fixedPoint(float64(c.most)*float64(i)/scaleLines/parts, 2)
	})
	c.axis(chartLower, chartCost, c.cost, "faults of a session")
	var legend []swatch
	one := chartTop + chartHeight - chartHeight*parts/float64(c.most)
	fmt.Fprintf(&c.b, `<line class="limit" x1="%d" x2="%.1f" y1="%.1f" y2="%.1f"/>`, chartLeft, c.x(c.columns), one, one)
	for i, s := range p.sessions {
		c.group(i, s, p)
		c.number(i, int64(i+1))
	}
	for i, name := range p.policies {
		mean := p.ratios[i] / float64(max(p.seen, 1))
		y := chartTop + chartHeight - chartHeight*mean*parts/float64(c.most)
		fmt.Fprintf(&c.b, `<line stroke="var(--%s)" stroke-width="1.5" stroke-dasharray="6 4" x1="%d" x2="%.1f" y1="%.1f" y2="%.1f"/>`, p.paint(i), chartLeft, c.x(c.columns), y, y)
		if slices.Contains(paging.Bounds(), name) {
			name += " (a bound)"
		}
		legend = append(legend, swatch{p.paint(i), fmt.Sprintf("%s: mean %s, %s", name, fixedPoint(mean, 3), plural(p.faults[i], "fault"))})
	}
	for i, s := range p.sessions {
		lines := []string{fmt.Sprintf("Session %d: %s, %s", i+1, s.name, plural(s.requests, "request"))}
		for at, name := range p.policies {
			lines = append(lines, fmt.Sprintf("%s: %s, %s", name, fixedPoint(s.ratios[at], 3), plural(s.faults[at], "fault")))
		}
		c.hit(i, strings.Join(lines, "\n"))
	}
	fmt.Fprintf(&c.b, `<text class="dim" x="%d" y="%d">session, in the order in which they were read</text>`, chartLeft, chartBottom+38)
	c.legend(chartBottom+64, legend)
	return c.end(w)
}

// group draws the columns of one session.
func (c *chart) group(i int, s plottedSession, p *plot) {
	gap := min(8, c.bar/4)
	wide := (c.bar - gap) / float64(len(p.policies))
	for at := range p.policies {
		x := c.x(i) + gap/2 + float64(at)*wide
		for _, part := range []struct {
			bottom int
			high   float64
		}{
			{chartTop + chartHeight, chartHeight * s.ratios[at] * parts / float64(c.most)},
			{chartBottom, chartCost * float64(s.faults[at]) / float64(cmp.Or(c.cost, 1))},
		} {
			if part.high > 0 {
				fmt.Fprintf(&c.b, `<rect fill="var(--%s)" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`, p.paint(at), x, float64(part.bottom)-part.high, wide, part.high)
			}
		}
	}
}
