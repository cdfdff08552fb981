package main

import (
	"fmt"
	"html"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// Measures of the picture, in pixels. Time goes down; explorations stand at the left, actions at the right.
const (
	boxWidth   = 396
	boxHeight  = 40
	boxPitch   = 50
	boxesWidth = 2*boxWidth + 200
	boxEdge    = 16
	boxesTop   = 92
	boxLetters = 46 // of a name
	boxWords   = 62 // of what is below it
	boxMore    = 24 // height of a row that stands for several
)

// episodesStyle has the colours of the states, light and dark.
const episodesStyle = `svg{font:12px system-ui,sans-serif;--bg:#fff;--fg:#1c2430;--dim:#667080;--line:#d5dae1;--box:#f6f7f9;--open:#0f7a8a;--whole:#2b6fd6;--partial:#c77700;--gone:#8c8c8c;--prologue:#7b4fc9}
@media(prefers-color-scheme:dark){svg{--bg:#14181f;--fg:#e6e9ee;--dim:#98a2b0;--line:#38404c;--box:#1b212a;--open:#4fc3d3;--whole:#6ea8fe;--partial:#f0b355;--gone:#8c8c8c;--prologue:#b296f2}}
.bg{fill:var(--bg)}text{fill:var(--fg)}.dim{fill:var(--dim)}.box{fill:var(--box);stroke:var(--line)}.gone .box,.more{stroke-dasharray:4 3;fill:none;stroke:var(--line)}.gone text{fill:var(--dim)}.loose .box{stroke-dasharray:1 3;stroke:var(--dim)}
.name{font-weight:600}.gone .name{font-weight:400}.edge{fill:none;stroke:var(--dim);stroke-width:1.2;opacity:.65}.edge:hover{stroke:var(--fg);stroke-width:2.4;opacity:1}.tip{fill:var(--dim)}.had{fill:var(--line)}
.open .mark,.open .has{fill:var(--open)}.whole .mark,.whole .has{fill:var(--whole)}.partial .mark,.partial .has{fill:var(--partial)}.prologue .mark,.prologue .has{fill:var(--prologue)}.gone .mark{fill:none;stroke:var(--gone);stroke-width:1.6}.partial .ring{fill:none;stroke:var(--partial);stroke-width:1.6}`

// svgEpisodes writes the graph as an SVG that needs nothing else.
func svgEpisodes(w io.Writer, key string, v episodesShown, most int) error {
	rows := episodeRows(v.Episodes, most)
	d := &episodesDrawing{chart: &chart{}, at: map[string]float64{}}
	for _, r := range rows {
		for _, e := range r.list {
			d.most = max(d.most, e.Tokens)
		}
	}
	tops := make([]float64, len(rows))
	y := float64(boxesTop)
	for i := range rows {
		if tops[i] = y; rows[i].one() != nil {
			y += boxPitch
		} else {
			y += boxMore + boxPitch - boxHeight
		}
	}
	d.begin(key, v, y)
	for i := range rows { // lines lie below the boxes
		d.edges(&rows[i], tops[i])
	}
	for i := range rows {
		d.row(&rows[i], tops[i])
	}
	return d.end(w)
}

// episodesDrawing is the picture in work.
type episodesDrawing struct {
	*chart
	at   map[string]float64 // middle of explorations, by name
	most tidemark.Tokens    // that an episode brought
}

// begin writes the head.
func (d *episodesDrawing) begin(key string, v episodesShown, height float64) {
	title := "Episodes of " + key
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-label="%[3]s"><style>%[4]s</style><rect class="bg" width="100%%" height="100%%"/>`,
		boxesWidth+2*boxEdge, int(height)+boxEdge, html.EscapeString(title), episodesStyle)
	fmt.Fprintf(&d.b, `<text x="%d" y="24" font-size="15" font-weight="600">%s</text>`, boxEdge, html.EscapeString(title))
	fmt.Fprintf(&d.b, `<text class="dim" x="%d" y="44">%s</text>`, boxEdge, html.EscapeString(tellBudget(v, fmt.Sprintf("%s of %s tokens", count(v.Size), count(v.Budget)))))
	x := float64(boxEdge)
	for _, s := range episodeStates {
		if v.Counts[s.state] == 0 {
			continue
		}
		words := fmt.Sprintf("%d %s", v.Counts[s.state], s.words)
		fmt.Fprintf(&d.b, `<g class="%s">`, s.state)
		d.mark(s.state, x+6, 66)
		fmt.Fprintf(&d.b, `<text x="%.0f" y="70">%s</text></g>`, x+18, words)
		x += float64(40 + 7*len(words))
	}
	fmt.Fprintf(&d.b, `<text class="dim" x="%.0f" y="70">the bar: what stands of what it brought</text>`, x+8)
}

// mark draws the shape of a state, so that it needs no colour.
func (d *episodesDrawing) mark(state session.EpisodeState, x, y float64) {
	switch state {
	case session.EpisodeOpen:
		fmt.Fprintf(&d.b, `<path class="mark" d="M%.0f %.0fl11 6l-11 6z"/>`, x-5, y-6)
	case session.EpisodePartial:
		fmt.Fprintf(&d.b, `<circle class="ring" cx="%.0f" cy="%.0f" r="5"/><path class="mark" d="M%.0f %.0fa5 5 0 0 0 0 10z"/>`, x, y, x, y-5)
	case session.EpisodePrologue:
		fmt.Fprintf(&d.b, `<rect class="mark" x="%.0f" y="%.0f" width="10" height="10"/>`, x-5, y-5)
	default:
		fmt.Fprintf(&d.b, `<circle class="mark" cx="%.0f" cy="%.0f" r="5"/>`, x, y)
	}
}

// boxLeft is where the box of a type begins.
func boxLeft(e *session.EpisodeTold) float64 {
	if e.Type == "act" {
		return boxEdge + boxesWidth - boxWidth
	}
	return boxEdge
}

// edges leads lines from explorations, whose boxes are above, to an action.
func (d *episodesDrawing) edges(r *episodeRow, y float64) {
	middle := y + boxHeight/2
	e := r.one()
	if e == nil {
		for _, in := range r.list {
			if in.Type == "expl" {
				d.at[in.Name] = y + boxMore/2
			}
		}
		return
	}
	if e.Type == "expl" {
		d.at[e.Name] = middle
	}
	for _, name := range e.Dependencies {
		from, ok := d.at[name]
		if !ok {
			continue
		}
		x, to := float64(boxEdge+boxWidth), boxLeft(e)
		fmt.Fprintf(&d.b, `<path class="edge" d="M%.0f %.1fC%.0f %.1f %.0f %.1f %.0f %.1f"><title>%s</title></path>`,
			x, from, x+90, from, to-90, middle, to-7, middle, html.EscapeString(safe(e.Name+" depends on "+name)))
	}
	if len(e.Dependencies) > 0 {
		fmt.Fprintf(&d.b, `<path class="tip" d="M%.0f %.1fl-8 -4v8z"/>`, boxLeft(e), middle)
	}
}

// row draws an episode, or a line that stands for several.
func (d *episodesDrawing) row(r *episodeRow, y float64) {
	e := r.one()
	if e == nil {
		first, last := r.list[0], r.list[len(r.list)-1]
		standing, tokens, _ := r.sums()
		class := first.State
		if r.folded {
			class = session.EpisodeGone
		}
		fmt.Fprintf(&d.b, `<g class="%s"><rect class="more" x="%d" y="%.1f" width="%d" height="%d" rx="5"/>`, class, boxEdge, y, boxWidth, boxMore)
		d.mark(class, boxEdge+14, y+boxMore/2)
		fmt.Fprintf(&d.b, `<text class="dim" x="%d" y="%.1f">%d to %d: %s, %s of %s tokens</text></g>`,
			boxEdge+28, y+boxMore/2+4, first.N, last.N, tellFolded(r), count(standing), count(tokens))
		return
	}
	x := boxLeft(e)
	class := string(e.State)
	if e.Type == "" {
		class += " loose"
	}
	name := e.Name
	if name == "" {
		name = "unmarked work"
	}
	fmt.Fprintf(&d.b, `<g class="%s"><title>%s</title><rect class="box" x="%.0f" y="%.1f" width="%d" height="%d" rx="5"/>`, class, html.EscapeString(safe(hintOf(e))), x, y, boxWidth, boxHeight)
	d.mark(e.State, x+14, y+13)
	fmt.Fprintf(&d.b, `<text class="name" x="%.0f" y="%.1f">%s</text><text class="dim" x="%.0f" y="%.1f" text-anchor="end">%s/%s</text>`,
		x+28, y+17, html.EscapeString(fit(fmt.Sprintf("%d  %s", e.N, oneLine(name, 100)), boxLetters)), x+boxWidth-8, y+17, count(stands(e)), count(e.Tokens))
	fmt.Fprintf(&d.b, `<text class="dim" x="%.0f" y="%.1f" font-size="11">%s</text>`, x+28, y+31, html.EscapeString(fit(oneLine(tellEpisode(e), 500), boxWords)))
	const inset = 6
	full := float64(boxWidth - 2*inset)
	if d.most > 0 && e.Tokens > 0 {
		had := full * float64(e.Tokens) / float64(d.most)
		has := had * float64(stands(e)) / float64(e.Tokens)
		fmt.Fprintf(&d.b, `<rect class="had" x="%.1f" y="%.1f" width="%.1f" height="3"/><rect class="has" x="%.1f" y="%.1f" width="%.1f" height="3"/>`,
			x+inset, y+boxHeight-5, had, x+inset, y+boxHeight-5, has)
	}
	d.b.WriteString("</g>")
}
