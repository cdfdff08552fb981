package episodes

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of the files that a line names, of the bytes of each, and of all.
const (
	shownFiles = 12
	shownPath  = 120
	shownBytes = 600
)

// line is what stays of an episode that left whole.
type line struct {
	tokens tidemark.Tokens
	known  bool // they are counted
	placed bool // a run or a block has it
}

// appendLine appends what stays of an episode: of an exploration what was learned and which files it touched, of an action what it
// changed.
func (p *planner) appendLine(b []byte, e *Episode) []byte {
	switch e.Type {
	case Exploration:
		b = append(strconv.AppendQuote(append(b, "exploration "...), e.Name), ": "...)
		b = append(b, oneLine(e.Description)...)
	case Action:
		b = strconv.AppendQuote(append(b, "action "...), e.Name)
	default:
		b = append(b, "work without a mark"...)
	}
	b = strconv.AppendInt(append(b, " ("...), int64(e.Calls), 10)
	if b = append(b, " calls"...); e.Calls == 1 {
		b = b[:len(b)-1]
	}
	if e.Type != Action {
		b = files(b, "; read ", e.Read)
	}
	b = append(files(b, "; changed ", e.Changed), ')')
	if e.Name == "" && p.need.Entry != nil {
		b = append(append(b, ": "...), p.need.Entry(e)...)
	}
	return b
}

func files(b []byte, what string, list []string) []byte {
	begin := len(b)
	for i, path := range list {
		n := i
		if len(b)-begin > shownBytes {
			n = shownFiles
		}
		switch n {
		case shownFiles:
			b = strconv.AppendInt(append(b, " and "...), int64(len(list)-i), 10)
			return append(b, " more"...)
		case 0:
			b = append(b, what...)
		default:
			b = append(b, ", "...)
		}
		if path = oneLine(path); len(path) > shownPath { // its end says more
			path = strings.ToValidUTF8(path[len(path)-shownPath:], "")
			b = append(b, "…"...)
		}
		b = append(b, path...)
	}
	return b
}

// oneLine puts single blanks between words. What a model or a file says ends neither the line nor the bracket around it, so it
// cannot look like a line of ours.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.Map(plain, s)), " ")
}

// plain returns what stands for a character in a line: a blank for those that steer how a text is shown.
func plain(r rune) rune {
	switch {
	case r == '[':
		return '('
	case r == ']':
		return ')'
	case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return ' '
	}
	return r
}

// foldedLine stands for episodes whose lines gave way.
func (g *Graph) foldedLine(list []int) string {
	b := append(strconv.AppendInt(make([]byte, 0, 100), int64(len(list)), 10), " older episodes"...)
	if first, last := g.named(list, false), g.named(list, true); first != "" {
		b = strconv.AppendQuote(append(b, ", from "...), first)
		b = strconv.AppendQuote(append(b, " to "...), last)
	}
	return string(b)
}

// named returns the first name, or the last one, among episodes.
func (g *Graph) named(list []int, last bool) string {
	for i := range list {
		n := list[i]
		if last {
			n = list[len(list)-1-i]
		}
		if n > 0 && n <= len(g.list) && g.list[n-1].Name != "" {
			return g.list[n-1].Name
		}
	}
	return ""
}

// fold keeps the lines within their bound: the oldest become one, which says how many they were. Where the budget is
// not met otherwise, more do.
func (p *planner) fold() {
	all, fresh := p.standing()
	freed := p.removed - p.instated
	var sum tidemark.Tokens // of the lines, as they would stand
	for i := range all {
		for _, n := range all[i].Lines {
			sum += p.line(n).tokens
		}
		if fresh[i] {
			freed += p.replaced(&all[i]) - p.cost(&all[i])
		}
	}
	most, many := p.need.Lines, p.need.Lines > 0 && sum > p.need.Lines
	must := freed < p.need.Least && freed+sum >= p.need.Least
	over := func() bool { return many && sum > most-most/4 || must && freed < p.need.Tokens } // not one more with each turn
	p.out.Runs = p.out.Runs[:0:0]
	for i := range all {
		r, n := &all[i], 0
		if len(r.Lines) > 0 && !fresh[i] && over() {
			freed, fresh[i] = freed+p.replaced(r)-p.cost(r), true
		}
		for n < len(r.Lines) && over() {
			sum, freed = sum-p.line(r.Lines[n]).tokens, freed+p.line(r.Lines[n]).tokens
			n++
		}
		if n > 0 {
			freed += p.folded(r.Folded)
			r.Folded = append(slices.Clone(r.Folded), r.Lines[:n]...)
			slices.Sort(r.Folded)
			r.Lines = r.Lines[n:]
			freed -= p.folded(r.Folded)
		}
		if fresh[i] {
			p.out.Runs = append(p.out.Runs, *r)
		}
	}
	p.out.Freed = freed
}

// replaced is what the lines take that a run takes the place of.
func (p *planner) replaced(r *Run) (n tidemark.Tokens) {
	for k := r.From; k <= r.To; k++ {
		if p.items[k].line != nil {
			n += p.items[k].tokens
		}
	}
	return n
}

// cost is what the lines of a run take.
func (p *planner) cost(r *Run) tidemark.Tokens {
	if len(r.Lines)+len(r.Folded) == 0 {
		return 0
	}
	n := p.head + p.folded(r.Folded)
	for _, e := range r.Lines {
		n += p.line(e).tokens
	}
	return n
}

// folded is what the line of folded episodes takes.
func (p *planner) folded(list []int) tidemark.Tokens {
	if len(list) == 0 {
		return 0
	}
	return tidemark.EstimateText(p.graph.foldedLine(list))
}

// standing lists the lines as they would stand, oldest first; fresh are those of runs of this plan.
func (p *planner) standing() (all []Run, fresh []bool) {
	runs := p.out.Runs
	add := func(r Run, is bool) { all, fresh = append(all, r), append(fresh, is) }
	for _, k := range p.lines {
		for len(runs) > 0 && runs[0].To < k {
			add(runs[0], true)
			runs = runs[1:]
		}
		if len(runs) == 0 || runs[0].From > k { // else a run has taken it in
			add(Run{From: k, To: k, Line: *p.items[k].line}, false)
		}
	}
	for _, r := range runs {
		add(r, true)
	}
	return all, fresh
}

// line is the line of an episode, by its number.
func (p *planner) line(n int) *line {
	if n < 0 || n >= len(p.told) {
		return &line{}
	}
	l := &p.told[n]
	if !l.known && n > 0 {
		p.buf = p.appendLine(p.buf[:0], p.graph.list[n-1])
		escaped := 1 + bytes.Count(p.buf, []byte{'"'}) + bytes.Count(p.buf, []byte{'\\'}) // the end of the line, in JSON
		l.tokens, l.known = tidemark.EstimateChars(tidemark.UTF16Len(p.buf)+1+escaped), true
	}
	return l
}

// Texts around the lines of a run; how to have an episode back stands between.
const (
	linesHead = "[Evicted episodes, oldest first."
	lineHead  = "[Evicted "
)

// text is what stands for episodes that left.
func (p *planner) text(l Line) string {
	b := append(p.buf[:0], linesHead...)
	if p.need.Back != "" {
		b = append(append(b, ' '), p.need.Back...)
	}
	none := true
	if len(l.Folded) > 0 {
		b, none = append(append(b, '\n'), p.graph.foldedLine(l.Folded)...), false
	}
	for _, n := range l.Lines {
		if n > 0 && n < len(p.told) {
			b, none = p.appendLine(append(b, '\n'), p.graph.list[n-1]), false
		}
	}
	p.buf = b
	if none {
		return ""
	}
	return string(append(b, ']'))
}

// alone is a line that stands by itself.
func (p *planner) alone(e *Episode) string {
	b := p.appendLine([]byte(lineHead), e)
	if p.need.Back != "" {
		b = append(append(b, ". "...), p.need.Back...)
	}
	return string(append(b, ']'))
}
