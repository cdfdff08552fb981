package main

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
)

// Bounds of figures: more would be a smear.
const (
	maxDots    = 3000
	maxCurves  = 200
	maxBars    = 20
	shownAbout = 46 // percent: Figure 4 of the paper shows such a session
)

// Colours of figures, of those of the chart.
const (
	paintMixed = "tool"
	paintTalk  = "model"
	paintPlain = "tool" // of costs without a trim
	paintTrim  = "note"
)

// partPaints are those of costlogs.PartNames.
var partPaints = []string{"tool", "summary", "model", "read", "note", "stub", "other"}

// figure is a chart of one part whose two axes are numbers.
type figure struct {
	*chart
	mostX, mostY float64
}

const figureBottom = chartTop + chartHeight

func newFigure(mostX, mostY float64) *figure {
	c := newChart(1)
	c.bar = chartWidth
	return &figure{c, mostX, max(mostY, 1e-9)}
}

func (f *figure) px(v float64) float64 { return chartLeft + chartWidth*v/f.mostX }
func (f *figure) py(v float64) float64 { return figureBottom - chartHeight*v/f.mostY }

// ticks writes figures below the axis at each step.
func (f *figure) ticks(step float64, text func(float64) string, title string) {
	for v := 0.0; v <= f.mostX+step/1000; v += step {
		fmt.Fprintf(&f.b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="dim" x="%.1f" y="%d" text-anchor="middle">%s</text>`,
			f.px(v), f.px(v), figureBottom, figureBottom+5, f.px(v), figureBottom+19, text(v))
	}
	f.below(title)
}

// below names the axis.
func (f *figure) below(title string) {
	fmt.Fprintf(&f.b, `<text class="dim" x="%d" y="%d" text-anchor="middle">%s</text>`, chartLeft+chartWidth/2, figureBottom+40, html.EscapeString(title))
}

// across draws a line at a height, and says what it is.
func (f *figure) across(v float64, says string) {
	fmt.Fprintf(&f.b, `<line class="cut" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`,
		chartLeft, chartLeft+chartWidth, f.py(v), f.py(v), chartLeft+chartWidth-4, f.py(v)-5, html.EscapeString(says))
}

// along draws a line upwards, and says what it is at the level-th line from above.
func (f *figure) along(v float64, paint, says string, level int, left bool) {
	anchor, at := "start", f.px(v)+6
	if v > f.mostX*0.8 || left && v > f.mostX*0.2 {
		anchor, at = "end", f.px(v)-6
	}
	fmt.Fprintf(&f.b, `<line stroke="var(--%s)" stroke-width="2" stroke-dasharray="6 4" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text x="%.1f" y="%d" text-anchor="%s">%s</text>`,
		paint, f.px(v), f.px(v), chartTop, figureBottom, at, chartTop+16+18*level, anchor, html.EscapeString(says))
}

// roundUp is the next number whose quarters are round.
func roundUp(v float64) float64 {
	if !(v > 0) {
		return scaleLines
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 6, 8, 10, 20} {
		if v <= m*unit {
			return m * unit
		}
	}
	return v
}

// drawReductions is Figure 2: how many sessions a trim makes smaller by how much.
func drawReductions(w io.Writer, sessions []costlogs.Session, by reckoning) error {
	t := by.tables
	const bins, wide = 20, 5
	var n [2][bins]int
	tallest := 1
	for i := range sessions {
		at := min(max(int(by.trim(&sessions[i]).Reduction)/wide, 0), bins-1)
		kind := 0
		if sessions[i].Profile == costlogs.Conversational {
			kind = 1
		}
		n[kind][at]++
		tallest = max(tallest, n[0][at]+n[1][at])
	}
	top := (tallest + scaleLines - 1) / scaleLines * scaleLines
	f := newFigure(100, float64(top))
	f.head(figureBottom+90, fmt.Sprintf("Histogram of %s: median %.0f %%, mean %.0f %%", cli.Plural(len(sessions), "session"), t.Reduction.Median, t.Reduction.Mean), "Figure 2: token reduction")
	f.axis(chartTop, chartHeight, tidemark.Tokens(top), "sessions")
	f.columns, f.bar = bins, chartWidth/bins
	for i := range bins {
		f.stack(i, figureBottom, chartHeight, tidemark.Tokens(top), []string{paintMixed, paintTalk}, func(k string) tidemark.Tokens {
			if k == paintMixed {
				return tidemark.Tokens(n[0][i])
			}
			return tidemark.Tokens(n[1][i])
		})
		f.tell(f.x(i), f.bar, fmt.Sprintf("%d to %d %%: %d mixed, %d conversational", i*wide, (i+1)*wide, n[0][i], n[1][i]))
	}
	f.ticks(2*wide, whole, "token reduction, percent")
	f.along(t.Reduction.Median, "person", fmt.Sprintf("median %.1f %%", t.Reduction.Median), 1, t.Reduction.Median <= t.Reduction.Mean)
	f.along(t.Reduction.Mean, "bad", fmt.Sprintf("mean %.1f %%", t.Reduction.Mean), 0, t.Reduction.Mean < t.Reduction.Median)
	f.legend(figureBottom+66, []swatch{{paintMixed, "mixed (results of tools 15 % of the bytes or more)"}, {paintTalk, "conversational"}})
	return f.end(w)
}

func whole(v float64) string { return cli.FixedPoint(v, 0) }

// tell lays a field over a column that tells all.
func (f *figure) tell(x, wide float64, says string) {
	fmt.Fprintf(&f.b, `<rect class="hit" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s</title></rect>`, x, chartTop, wide, chartHeight, html.EscapeString(says))
}

// drawBreakEvens is Figure 3: from which turn on a trim pays, by how much it takes.
func drawBreakEvens(w io.Writer, sessions []costlogs.Session, by reckoning) error {
	f := newFigure(100, float64(cost.TableCap)+4)
	f.head(figureBottom+90, fmt.Sprintf("Break-even turn against reduction of %s", cli.Plural(len(sessions), "session")), "Figure 3: break-even against reduction"+firstOf(len(sessions), maxDots))
	const step = 15
	for v := 0.0; v <= float64(cost.TableCap); v += step {
		fmt.Fprintf(&f.b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="dim" x="%d" y="%.1f" text-anchor="end">%.0f</text>`, chartLeft, chartLeft+chartWidth, f.py(v), f.py(v), chartLeft-8, f.py(v)+4, v)
	}
	fmt.Fprintf(&f.b, `<text class="dim" x="%d" y="%d">break-even, turns; 60 is 60 or later</text>`, chartLeft, chartTop-8)
	f.across(5, "5 turns: worth it")
	f.across(15, "15 turns: worth it in a long session")
	f.ticks(10, whole, "token reduction, percent")
	for i := range sessions[:min(len(sessions), maxDots)] {
		s, t := &sessions[i], by.trim(&sessions[i])
		x, y := f.px(min(max(t.Reduction, 0), 100)), f.py(float64(t.BreakEven.Capped()))
		says := html.EscapeString(fmt.Sprintf("%s, %s\n%.1f %% of %d tokens\nbreak-even: %s", cli.OneLine(s.String(), 60), s.Profile, t.Reduction, t.Pre, cli.TurnsOf(t.BreakEven)))
		if s.Profile == costlogs.Mixed {
			fmt.Fprintf(&f.b, `<rect x="%.1f" y="%.1f" width="10" height="10" fill="var(--%s)" fill-opacity=".75" stroke="var(--fg)" stroke-width=".7"><title>%s</title></rect>`, x-5, y-5, paintMixed, says)
		} else {
			fmt.Fprintf(&f.b, `<circle cx="%.1f" cy="%.1f" r="5" fill="var(--%s)" fill-opacity=".6" stroke="var(--fg)" stroke-width=".7"><title>%s</title></circle>`, x, y, paintTalk, says)
		}
	}
	f.legend(figureBottom+66, []swatch{{paintMixed, "mixed, as squares"}, {paintTalk, "conversational, as circles"}})
	return f.end(w)
}

// firstOf says in a title that not all are drawn.
func firstOf(n, most int) string {
	if n <= most {
		return ""
	}
	return fmt.Sprintf(" (the first %d of %d are drawn)", most, n)
}

// costs are what turns cost, with and without a trim before the first.
type costs struct {
	name         string
	first, later float64 // with a trim
	without      float64 // a turn
	reduction    float64
	even         cost.Turns
}

func (k costs) with(n float64) float64 { return k.first + (n-1)*k.later }

// paperCosts are those of a session by the paper.
func paperCosts(s *costlogs.Session, m cost.Model) costs {
	t, without := s.Paper, m.Turn(s.Paper.Pre)
	return costs{cli.OneLine(s.String(), 60), without + t.Penalty, without - t.Savings, without, t.Reduction, t.BreakEven}
}

// liveCosts are those by what is known of it, with a warm cache.
func liveCosts(s *costlogs.Session) costs {
	t := s.Live.Working()
	return costs{cli.OneLine(s.String(), 60), t.First, t.FirstWithout - t.Savings, t.FirstWithout, t.Reduction, t.BreakEven}
}

// shown picks the session that Figure 4 shows: of those whose reduction is about that of the paper's, the one with the
// largest context.
func shown(all []costs) int {
	const about = 3 // percent
	away := func(k costs) float64 { return math.Abs(k.reduction - shownAbout) }
	nearest := math.Inf(1)
	for _, k := range all {
		nearest = min(nearest, away(k))
	}
	best := -1
	for i, k := range all {
		if away(k) <= max(nearest, about) && (best < 0 || k.without > all[best].without) {
			best = i
		}
	}
	return best
}

// drawCosts is Figure 4: what turns cost so far, of one session, and faintly of others.
func drawCosts(w io.Writer, all []costs, at int, title string) error {
	turns, one := float64(cost.TableCap), all[at]
	most := max(one.without*turns, one.with(turns))
	others := all
	if len(others) > maxCurves {
		others = others[:maxCurves]
	}
	for _, k := range others {
		most = max(most, k.without*turns, k.with(turns))
	}
	f := newFigure(turns, roundUp(most))
	f.head(figureBottom+90, fmt.Sprintf("Cumulative cost over 60 turns of a session with %.0f %% reduction: break-even at %s", one.reduction, cli.TurnsOf(one.even)), title)
	f.scale(chartTop, chartHeight, "dollars of input so far", func(i int) string { return cli.FixedPoint(f.mostY*float64(i)/scaleLines, 2) })
	f.ticks(10, whole, "turns")
	line := func(a, b float64, paint, rest string) {
		fmt.Fprintf(&f.b, `<line stroke="var(--%s)" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`, paint, f.px(1), f.py(a), f.px(turns), f.py(b), rest)
	}
	for i, k := range others {
		if i != at {
			line(k.without, k.without*turns, paintPlain, `stroke-opacity=".22"`)
			line(k.with(1), k.with(turns), paintTrim, `stroke-opacity=".22"`)
		}
	}
	fmt.Fprintf(&f.b, `<polygon fill="var(--%s)" fill-opacity=".14" points="%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f"/>`, paintTrim,
		f.px(1), f.py(one.without), f.px(turns), f.py(one.without*turns), f.px(turns), f.py(one.with(turns)), f.px(1), f.py(one.with(1)))
	line(one.without, one.without*turns, paintPlain, `stroke-width="3.5"`)
	line(one.with(1), one.with(turns), paintTrim, `stroke-width="3.5"`)
	if n := float64(one.even); one.even <= cost.TableCap && n >= 1 {
		f.meeting(one, n)
	}
	f.legend(figureBottom+66, []swatch{{paintPlain, "without a trim"}, {paintTrim, "with a trim"}, {"bg", fmt.Sprintf("thick: %s, %.0f %% reduction", one.name, one.reduction)}})
	return f.end(w)
}

// meeting marks where the two costs meet at turn n, and says so where no line of the two runs: right below; where the
// axis is too near, above both, and a thin line leads there; at the right edge, left above.
func (f *figure) meeting(k costs, n float64) {
	const room, wide, high = 40, 160, 12 // of the words, and what they need below
	x, y := f.px(n), f.py(k.with(n))
	at, anchor, to := y+20, "start", x+10
	switch {
	case to+wide > chartLeft+chartWidth:
		at, anchor, to = y-high, "end", x-10
	case y > figureBottom-room:
		end := n + wide*f.mostX/chartWidth
		at, to = max(f.py(max(k.without*end, k.with(end)))-high, chartTop+high), x
		fmt.Fprintf(&f.b, `<line stroke="var(--fg)" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x, x, y, at+4)
	}
	fmt.Fprintf(&f.b, `<circle cx="%.1f" cy="%.1f" r="6" fill="var(--bg)" stroke="var(--fg)" stroke-width="2.5"/><text x="%.1f" y="%.1f" text-anchor="%s" paint-order="stroke" stroke="var(--bg)" stroke-width="4">break-even: %s</text>`,
		x, y, to, at, anchor, cli.TurnsOf(k.even))
}

// drawComposition is Figure 5: what sessions are made of, those with the largest contexts.
func drawComposition(w io.Writer, sessions []costlogs.Session) error {
	list := make([]*costlogs.Session, 0, len(sessions))
	for i := range sessions {
		list = append(list, &sessions[i])
	}
	slices.SortStableFunc(list, func(a, b *costlogs.Session) int { return cmp.Compare(b.Live.Pre, a.Live.Pre) })
	all := len(list)
	list = list[:min(all, maxBars)]
	slices.SortStableFunc(list, func(a, b *costlogs.Session) int { return cmp.Compare(b.Paper.Reduction, a.Paper.Reduction) })
	f := newFigure(float64(max(len(list), 1)), 100)
	title := "Figure 5: what the live part of each log is made of, by bytes; the largest reduction first"
	if all > maxBars {
		title += fmt.Sprintf(" (the %d largest contexts of %d)", maxBars, all)
	}
	f.head(figureBottom+150, "Composition of "+cli.Plural(len(list), "session")+" in percent of bytes", title)
	f.scale(chartTop, chartHeight, "percent of the bytes", func(i int) string { return whole(100 * float64(i) / scaleLines) })
	f.columns, f.bar = len(list), min(2*widestBar, chartWidth/float64(max(len(list), 1)))
	for i, s := range list {
		f.parts(i, s.Composition, s.LiveBytes, s.String())
		fmt.Fprintf(&f.b, `<text class="dim" text-anchor="end" transform="translate(%.1f %d) rotate(-40)">%s</text>`, f.x(i)+f.bar/2+4, figureBottom+14, html.EscapeString(label(s.Path)))
	}
	f.partsLegend(figureBottom + 104)
	return f.end(w)
}

// label names a log by its file, so that it fits below a column.
func label(path string) string {
	const most = 12
	if r := []rune(cli.OneLine(strings.TrimSuffix(filepath.Base(path), ".jsonl"), 4*most)); len(r) > most {
		return string(r[:most-1]) + "…"
	} else if len(r) > 0 {
		return string(r)
	}
	return "unnamed"
}

// parts draws a column of a composition, in shares of whole.
func (f *figure) parts(i int, c costlogs.Composition, whole int64, name string) {
	parts := c.Parts()
	const scaled = 1 << 20
	f.stack(i, figureBottom, chartHeight, scaled, partPaints, func(k string) tidemark.Tokens {
		return tidemark.Tokens(float64(parts[slices.Index(partPaints, k)].Bytes) / float64(max(whole, 1)) * scaled)
	})
	lines := []string{cli.OneLine(name, 60)}
	for at, p := range parts {
		if p.Bytes > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s, %d %%", costlogs.PartNames[at], cli.Size(p.Bytes), p.Percent))
		}
	}
	f.tell(f.x(i), f.bar, strings.Join(lines, "\n"))
}

func (f *figure) partsLegend(y int) {
	var legend []swatch
	for i, name := range costlogs.PartNames {
		legend = append(legend, swatch{partPaints[i], name})
	}
	f.legend(y, legend)
}

// drawBeforeAfter draws the live part of one log before and after a trim, to one scale.
func drawBeforeAfter(w io.Writer, s costlogs.Session) error {
	f := newFigure(2, 100)
	f.head(figureBottom+90, "Bytes of the live log before and after a trim", "What the live log is made of, before and after")
	f.scale(chartTop, chartHeight, "bytes", func(i int) string { return cli.Size(s.LiveBytes * int64(i) / scaleLines) })
	f.columns, f.bar = 2, 240
	f.parts(0, s.Composition, s.LiveBytes, "before")
	f.parts(1, s.After, s.LiveBytes, "after")
	for i, name := range []string{"before", "after"} {
		fmt.Fprintf(&f.b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, f.x(i)+f.bar/2, figureBottom+20, name)
	}
	f.columns, f.bar = 1, chartWidth
	f.partsLegend(figureBottom + 52)
	return f.end(w)
}

// drawCompactions is Figure 1 for each compaction that the tool made itself: tokens of messages before and after.
func drawCompactions(w io.Writer, of []costlogs.Compaction) error {
	drawn := of[max(0, len(of)-maxBars):]
	most := tidemark.Tokens(scaleLines)
	for _, k := range drawn {
		most = max(most, k.MessagesBefore, k.MessagesAfter)
	}
	top := tidemark.Tokens(roundUp(float64(most)))
	f := newFigure(1, 1)
	f.head(figureBottom+80, "Tokens of messages before and after "+cli.Plural(len(drawn), "native compaction"), "Figure 1: messages before and after a native compaction"+lastOf(len(of), maxBars))
	f.axis(chartTop, chartHeight, top, "tokens of messages")
	f.columns, f.bar = len(drawn), min(4*widestBar, chartWidth/float64(len(drawn)))
	for i, k := range drawn {
		half, gap := f.bar*0.36, f.bar*0.14
		for j, n := range []tidemark.Tokens{k.MessagesBefore, k.MessagesAfter} {
			h := chartHeight * float64(n) / float64(top)
			fmt.Fprintf(&f.b, `<rect fill="var(--%s)" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, []string{paintPlain, paintTrim}[j], f.x(i)+gap+float64(j)*half, figureBottom-h, half, h)
		}
		fmt.Fprintf(&f.b, `<text class="dim" x="%.1f" y="%d" text-anchor="middle">%.0f %%</text>`, f.x(i)+f.bar/2, figureBottom+19, 100-lessOf(k))
		f.tell(f.x(i), f.bar, fmt.Sprintf("Line %d, %s\n%s to %s of messages\n%s to %s of the context (%s, %s)", k.Line, cli.When(k.At), cli.Count(k.MessagesBefore), cli.Count(k.MessagesAfter), cli.Count(k.Before), cli.Count(k.After), k.BeforeBasis, k.AfterBasis))
	}
	f.below("what was left of the messages")
	f.legend(figureBottom+62, []swatch{{paintPlain, "before"}, {paintTrim, "after, with what was said up to the next call"}})
	return f.end(w)
}

// lessOf is by how many percent the messages became smaller.
func lessOf(k costlogs.Compaction) float64 {
	return 100 * float64(k.MessagesBefore-k.MessagesAfter) / float64(max(k.MessagesBefore, 1))
}

func lastOf(n, most int) string {
	if n <= most {
		return ""
	}
	return fmt.Sprintf(" (the last %d of %d)", most, n)
}
