package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/session"
)

// mostLanes bounds the lines that run beside each other in a drawing; what has none is told by its number.
const mostLanes = 8

// lane is the line from an exploration to the actions that depend on it.
type lane struct{ name, last int } // number of the exploration, and the row that needs it last

// lanes are the lines of a drawing, row by row.
type lanes struct {
	numbers map[string]int // of explorations, by name
	last    map[int]int    // row that needs an exploration last, by number
	open    [mostLanes]lane
	wide    int // columns that are ever used
}

// lay finds which rows depend on which.
func (l *lanes) lay(rows []episodeRow) {
	l.numbers, l.last = map[string]int{}, map[int]int{}
	for i := range rows {
		for _, e := range rows[i].list {
			if e.Type == "expl" {
				l.numbers[e.Name] = e.N
			}
		}
	}
	for i := range rows {
		if e := rows[i].one(); e != nil {
			for _, d := range e.Dependencies {
				if n := l.numbers[d]; n > 0 {
					l.last[n] = i
				}
			}
		}
	}
}

// draw returns the lines before a row.
func (l *lanes) draw(i int, row *episodeRow) string {
	e := row.one()
	from := -1 // column in which the line to the mark begins
	var cells [mostLanes]string
	for c := range l.open {
		if cells[c] = " "; l.open[c].name > 0 {
			cells[c] = "│"
		}
	}
	switch {
	case e != nil && e.Type == "expl" && l.last[e.N] > i:
		for c := range l.open {
			if l.open[c].name == 0 {
				l.open[c], from, cells[c] = lane{e.N, l.last[e.N]}, c, "╭"
				l.wide = max(l.wide, c+1)
				break
			}
		}
	case e != nil:
		from = l.join(i, e, &cells)
	}
	var b strings.Builder
	for c, cell := range cells {
		line := " "
		if from >= 0 && c >= from {
			line = "─"
		}
		if cell == " " {
			cell = line
		}
		b.WriteString(cell + line)
	}
	return b.String()
}

// join leads the lines of what an action depends on to it, and ends those that nothing else needs.
func (l *lanes) join(i int, e *session.EpisodeTold, cells *[mostLanes]string) int {
	from := -1
	for c := range l.open {
		needed := false
		for _, d := range e.Dependencies {
			needed = needed || l.open[c].name > 0 && l.numbers[d] == l.open[c].name
		}
		if !needed {
			continue
		}
		ends := l.open[c].last == i
		switch {
		case from < 0 && ends:
			cells[c] = "╰"
		case from < 0:
			cells[c] = "├"
		case ends:
			cells[c] = "┴"
		default:
			cells[c] = "┼"
		}
		if from < 0 {
			from = c
		}
		if ends {
			l.open[c] = lane{}
		}
	}
	return from
}

// on names what an episode depends on: by number, and by name what is not in the drawing.
func (l *lanes) on(e *session.EpisodeTold) string {
	var parts []string
	for _, d := range e.Dependencies {
		if n := l.numbers[d]; n > 0 {
			parts = append(parts, strconv.Itoa(n))
		} else {
			parts = append(parts, oneLine(d, 20))
		}
	}
	return strings.Join(parts, " ")
}

// textEpisodes draws the graph in lines of so many columns.
func textEpisodes(v episodesShown, most, columns int) []string {
	const name, on, gap = 32, 16, 2
	rows := episodeRows(v.Episodes, most)
	var l lanes
	l.lay(rows)
	table := [][]string{{"", "", "#", "TYPE", "NAME", "TOKENS", "CALLS", "ON", "WHAT"}}
	for i := range rows {
		table = append(table, append([]string{l.draw(i, &rows[i])}, episodeCells(&rows[i], &l)...))
	}
	wide := make([]int, len(table[0]))
	for i, row := range table {
		if i > 0 {
			row[0] = string([]rune(row[0])[:2*l.wide])
		}
		row[4], row[7] = fit(row[4], name), fit(row[7], on)
		for c, cell := range row[:len(row)-1] {
			wide[c] = max(wide[c], cells(cell))
		}
	}
	out := make([]string, len(table))
	for i, row := range table {
		var b strings.Builder
		used := 0
		for c, cell := range row[:len(row)-1] {
			if wide[c] == 0 {
				continue
			}
			space := strings.Repeat(" ", wide[c]-cells(cell))
			if c == 2 || c == 5 || c == 6 { // numbers
				cell = space + cell
			} else {
				cell += space
			}
			b.WriteString(cell)
			if used += wide[c]; c > 0 {
				b.WriteString(strings.Repeat(" ", gap))
				used += gap
			}
		}
		b.WriteString(fit(row[len(row)-1], max(columns-used, 12)))
		out[i] = strings.TrimRight(b.String(), " ")
	}
	return out
}

// episodeCells are the columns of a row behind its lines.
func episodeCells(r *episodeRow, l *lanes) []string {
	standing, tokens, calls := r.sums()
	first, last := &r.list[0], &r.list[len(r.list)-1]
	mark, _ := tellState(first.State)
	number := strconv.Itoa(first.N)
	if first.N != last.N {
		number += "-" + strconv.Itoa(last.N)
	}
	out := []string{mark, number, string(first.Type), oneLine(first.Name, 100), count(standing) + "/" + count(tokens), strconv.Itoa(calls), "", ""}
	switch e := r.one(); {
	case e == nil:
		out[2], out[3], out[7] = "-", "", tellFolded(r)
		if r.folded {
			out[0] = "⋮"
		}
	case e.Type == "":
		out[2], out[7] = "-", oneLine(strings.TrimSuffix("unmarked work, "+tellEpisode(e), ", "), 500)
	default:
		out[6], out[7] = l.on(e), oneLine(tellEpisode(e), 500)
	}
	return out
}

// fit cuts a text to so many columns.
func fit(s string, most int) string {
	if cells(s) <= most {
		return s
	}
	n, at := 0, 0
	for i, r := range s {
		if n += runeCells(r); n > most-1 {
			break
		}
		at = i + utf8.RuneLen(r)
	}
	return strings.TrimRight(s[:at], " ") + "…"
}

// cells is how many columns a text takes.
func cells(s string) (n int) {
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

// runeCells is 2 for letters that terminals draw wide: Chinese, Japanese, Korean, pictures.
func runeCells(r rune) int {
	switch {
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// hintOf is all that there is to tell of an episode, in lines.
func hintOf(e *session.EpisodeTold) string {
	_, state := tellState(e.State)
	kind := map[string]string{"expl": "exploration", "act": "action", "": "unmarked work"}[string(e.Type)]
	lines := []string{strings.TrimSpace(fmt.Sprintf("%d, %s %s", e.N, kind, e.Name)),
		fmt.Sprintf("%s: %d of %d tokens stand, %s", state, stands(e), e.Tokens, plural(e.Calls, "call"))}
	for _, p := range [...]struct {
		name string
		list []string
	}{{"depends on", e.Dependencies}, {"changed", e.Changed}, {"read", e.Read}} {
		if len(p.list) > 0 {
			lines = append(lines, p.name+" "+strings.Join(p.list, ", "))
		}
	}
	if e.Description != "" {
		lines = append(lines, e.Description)
	}
	return strings.Join(lines, "\n")
}
