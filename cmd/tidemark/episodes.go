package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
)

// episodesShown is what GET …/episodes answers.
type episodesShown struct {
	episodic.Overview
	Counts map[episodic.State]int `json:"counts"`
	Total  int                    `json:"total"`
	Next   int                    `json:"next,omitempty"`
}

// Bounds of what is drawn at once without --all, and of a picture.
const (
	mostEpisodeRows = 60
	episodePage     = 1_000 // of one request
)

// readEpisodes reads the newest episodes, or all.
func readEpisodes(ctx context.Context, c *client, key string, all bool) (v episodesShown, err error) {
	if err := c.Get(ctx, cli.SessionPath(key, fmt.Sprintf("/episodes?limit=%d", episodePage)), &v); err != nil {
		return v, err
	}
	for all && v.Next > 0 {
		var older episodesShown
		if err := c.Get(ctx, cli.SessionPath(key, fmt.Sprintf("/episodes?limit=%d&before=%d", episodePage, v.Next)), &older); err != nil {
			return v, err
		}
		if older.Next >= v.Next { // it would never end
			return v, fmt.Errorf("episodes before %d: the server gives those before %d", v.Next, older.Next)
		}
		v.Episodes, v.Next = append(older.Episodes, v.Episodes...), older.Next
	}
	return v, nil
}

// readAlone refuses what has no part in the reading of an entry or an episode.
func readAlone(m *cli.Main, whole string) error {
	args := m.Args
	if len(args) > 0 {
		return cli.Usagef("%s: %s beside --%s: that is read whole, ask for one of them", m.Path(), cli.OneLine(args[0], 80), whole)
	}
	for _, name := range []string{"k", "budget", "all", "since", "until", "scope", "agent", "peer", "entry", "episode"} {
		if name != whole && m.Changed(name) {
			return cli.Usagef("%s: --%s beside --%s: that is read whole, ask for one of them", m.Path(), name, whole)
		}
	}
	return nil
}

// readEpisode prints all that the log has of an episode.
func readEpisode(ctx context.Context, m *cli.Main, key, name string) error {
	return with(ctx, m, func(c *client) error {
		var text strings.Builder
		var page episodic.Text
		for {
			query := url.Values{"episode": {name}, "offset": {strconv.Itoa(page.Next)}}
			at := page.Next
			page = episodic.Text{}
			if err := c.Get(ctx, cli.SessionPath(key, "/recall?"+query.Encode()), &page); err != nil {
				return err
			}
			if text.WriteString(page.Text); page.Next <= at {
				break
			}
		}
		if m.JSON {
			page.Text, page.Next = text.String(), 0
			return m.PrintJSON(page)
		}
		m.Err.Line(page.Episode)
		for line := range strings.Lines(text.String()) {
			m.Out.Line(cli.Safe(strings.TrimRight(line, "\n")))
		}
		return nil
	})
}

// episodeStates are the states in the order of a legend: the mark in a text, and the words.
var episodeStates = []struct {
	state       episodic.State
	mark, words string
}{
	{episodic.Open, "▶", "open"}, {episodic.Whole, "●", "in the context"}, {episodic.Partial, "◐", "partly evicted"},
	{episodic.Gone, "○", "evicted"}, {episodic.Prologue, "■", "prologue"},
}

// tellState returns the mark of a state.
func tellState(state episodic.State) string {
	for _, s := range episodeStates {
		if s.state == state {
			return s.mark
		}
	}
	return "?"
}

// episodeRow is a line of the drawing: an episode, or several in a row that are told together.
type episodeRow struct {
	list   []episodic.Told
	folded bool // old ones that are out; else unmarked work
}

// one returns the episode of a row that has one.
func (r *episodeRow) one() *episodic.Told {
	if len(r.list) == 1 && !r.folded {
		return &r.list[0]
	}
	return nil
}

// sums are the tokens and the calls of a row.
func (r *episodeRow) sums() (standing, tokens tidemark.Tokens, calls int) {
	for _, e := range r.list {
		standing, tokens, calls = standing+stands(&e), tokens+e.Tokens, calls+e.Calls
	}
	return standing, tokens, calls
}

// stands is what stands of an episode: of all that it brought at most, since blocks are counted one by one.
func stands(e *episodic.Told) tidemark.Tokens { return min(e.Standing, e.Tokens) }

// episodeRows makes rows: unmarked work in a row that is in one state is one, and where there are more than most, so are
// episodes that are out, and then the oldest.
func episodeRows(list []episodic.Told, most int) []episodeRow {
	var rows []episodeRow
	for _, e := range list {
		if n := len(rows); n > 0 && e.Type == "" {
			if last := rows[n-1].list[0]; last.Type == "" && last.State == e.State {
				rows[n-1].list = append(rows[n-1].list, e)
				continue
			}
		}
		rows = append(rows, episodeRow{list: []episodic.Told{e}})
	}
	if len(rows) <= most {
		return rows
	}
	const fresh = 3 // a third of the rows are the newest, whatever became of them
	rows = foldRows(rows, func(i int, r episodeRow) bool {
		return i < len(rows)-most/fresh && r.list[0].State == episodic.Gone
	})
	if n := len(rows) - most; n > 0 {
		rows = foldRows(rows, func(i int, _ episodeRow) bool { return i <= n })
	}
	return rows
}

// foldRows makes one of neighbours that may be folded.
func foldRows(rows []episodeRow, may func(int, episodeRow) bool) (out []episodeRow) {
	last := false
	for i, r := range rows {
		is := may(i, r)
		if is && last {
			into := &out[len(out)-1]
			into.list, into.folded = append(into.list, r.list...), true
		} else {
			out = append(out, r)
		}
		last = is
	}
	return out
}

// tellFolded says what a row of several stands for.
func tellFolded(r *episodeRow) string {
	n := map[string]int{}
	for _, e := range r.list {
		n[string(e.Type)]++
	}
	if !r.folded {
		return cli.Plural(len(r.list), "piece") + " of unmarked work"
	}
	var parts []string
	for _, k := range [...][2]string{{"expl", "exploration"}, {"act", "action"}} {
		if n[k[0]] > 0 {
			parts = append(parts, cli.Plural(n[k[0]], k[1]))
		}
	}
	if n[""] > 0 {
		parts = append(parts, cli.Plural(n[""], "piece")+" of unmarked work")
	}
	return strings.Join(parts, ", ")
}

// tellEpisode says what came of an episode: what was learned, else what it changed or read.
func tellEpisode(e *episodic.Told) string {
	files := func(what string, list []string) string {
		if len(list) == 0 {
			return ""
		}
		return what + strings.Join(list, ", ")
	}
	return cmp.Or(e.Description, files("changed ", e.Changed), files("read ", e.Read))
}

// tellBudget says how full the context is; full says it of the budget.
func tellBudget(v episodesShown, full string) string {
	line := "context " + cli.Count(v.Size) + " tokens; the strategy episodes is not active, nothing leaves by it"
	if v.Enabled {
		line = full + " of the budget; over it episodes leave down to " + cli.Count(v.LowWater)
	}
	switch {
	case v.Short > 0 && v.Held != "":
		line += "; " + cli.Count(v.Short) + " over it, and nothing may leave: " + cli.Safe(v.Held)
	case v.Short > 0:
		line += "; " + cli.Count(v.Short) + " over it, and what may leave does so before the next call"
	}
	return line
}

// headEpisodes says how full the context is, and what became of how many.
func headEpisodes(v episodesShown) []string {
	var parts []string
	for _, s := range episodeStates {
		if n := v.Counts[s.state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d %s", s.mark, n, s.words))
		}
	}
	return []string{tellBudget(v, cli.Gauge(v.Size, v.Budget)), cli.Plural(v.Total, "episode") + ": " + strings.Join(parts, ", ")}
}

// printEpisodes draws for people.
func printEpisodes(m *cli.Main, v episodesShown, all bool) {
	if v.Total == 0 {
		m.Err.Line("no episodes: they begin with the first call of a tool")
		return
	}
	for _, l := range headEpisodes(v) {
		m.Out.Line(l)
	}
	most := mostEpisodeRows
	if all {
		most = len(v.Episodes)
	}
	cli.PrintTable(m.Out, episodeTable(v, most))
}

func episodesShow(ctx context.Context, m *cli.Main, c *client, f *struct{ All bool }) error {
	v, err := readEpisodes(ctx, c, m.Args[0], f.All)
	if err != nil {
		return err
	}
	return cli.Either(m, v, func() {
		onTrack(ctx, m, c, m.Args[0])
		printEpisodes(m, v, f.All)
		tellTracks(ctx, m, c, m.Args[0])
	})
}

// episodeTable has a row for each episode, or for several that are told together.
func episodeTable(v episodesShown, most int) [][]string {
	rows := episodeRows(v.Episodes, most)
	numbers := map[string]int{} // of explorations, by name
	for i := range rows {
		for _, e := range rows[i].list {
			if e.Type == "expl" {
				numbers[e.Name] = e.N
			}
		}
	}
	out := [][]string{{"", "#", "TYPE", "NAME", "TOKENS", "CALLS", "ON", "WHAT"}}
	for i := range rows {
		r := &rows[i]
		standing, tokens, calls := r.sums()
		first, last := &r.list[0], &r.list[len(r.list)-1]
		mark, number := tellState(first.State), strconv.Itoa(first.N)
		if first.N != last.N {
			number += "-" + strconv.Itoa(last.N)
		}
		row := []string{mark, number, string(first.Type), cli.OneLine(first.Name, 40), cli.Count(standing) + "/" + cli.Count(tokens), strconv.Itoa(calls), "", ""}
		switch e := r.one(); {
		case e == nil:
			row[2], row[3], row[7] = "-", "", tellFolded(r)
			if r.folded {
				row[0] = "⋮"
			}
		case e.Type == "":
			row[2], row[7] = "-", cli.OneLine(strings.TrimSuffix("unmarked work, "+tellEpisode(e), ", "), 100)
		default:
			row[6], row[7] = dependsOn(e, numbers), cli.OneLine(tellEpisode(e), 100)
		}
		out = append(out, row)
	}
	return out
}

// dependsOn names what an episode depends on: by number, and by name what is not in the table.
func dependsOn(e *episodic.Told, numbers map[string]int) string {
	var parts []string
	for _, d := range e.Dependencies {
		if n := numbers[d]; n > 0 {
			parts = append(parts, strconv.Itoa(n))
		} else {
			parts = append(parts, cli.OneLine(d, 20))
		}
	}
	return strings.Join(parts, " ")
}
