package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// episodesTold is embedded by this name, since its list is called as its type is.
type episodesTold = session.Episodes

// episodesShown is what GET …/episodes answers.
type episodesShown struct {
	episodesTold
	Counts map[session.EpisodeState]int `json:"counts"`
	Total  int                          `json:"total"`
	Next   int                          `json:"next,omitempty"`
}

// Bounds of what is drawn at once without --all, and of a picture.
const (
	mostEpisodeRows  = 60
	mostEpisodeBoxes = 200
	allEpisodeBoxes  = 1_000
	episodePage      = 1_000 // of one request
)

func (m *Main) episodesCommand() *cobra.Command {
	var svg string
	var all bool
	c := &cobra.Command{
		Use: "episodes KEY", Short: "Draw the episodes that an agent marked, and what of them is in the context", Args: oneKey,
		Long: `Draw the episodes of a conversation in their order: explorations, the actions that
rest on them, and work that the agent did not mark. Agents mark their work where
compaction.strategies has "episodes"; the first line says how full its budget is.

The mark in front of each says what became of it, and the second line counts them:
▶ open, ● in the context, ◐ partly evicted, ○ evicted, ■ part of the prologue, which
stays. TOKENS are those that stand, of those that it brought. Lines lead from an
exploration to the actions that depend on it, and ON names its number. What an
episode says, word for word, is read by tidemark recall --episode NAME --session KEY.

Old episodes that are out are folded; --all shows each. --svg draws the same,
explorations at the left and actions at the right; the full text stands where the
pointer rests. Of a conversation whose client keeps the history, KEY means its longest
track and 'KEY#t2' another one.`,
		Example: `  tidemark episodes main
  tidemark episodes main --svg episodes.svg --all
  tidemark episodes main --json | jq '.episodes[] | select(.state == "open")'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if svg != "" && m.json {
				return usagef("--json and --svg: want one of them")
			}
			return m.with(cmd.Context(), func(c *client) error {
				v, err := readEpisodes(cmd.Context(), c, args[0], all)
				switch {
				case err != nil:
					return err
				case svg != "":
					return m.drawEpisodes(svg, args[0], v, all)
				case m.json:
					return m.printJSON(v)
				}
				m.onTrack(cmd.Context(), c, args[0])
				m.printEpisodes(v, all)
				m.tellTracks(cmd.Context(), c, args[0])
				return nil
			})
		},
	}
	c.Flags().StringVar(&svg, "svg", "", "draw into this file, - is standard output")
	c.Flags().BoolVar(&all, "all", false, "every episode, the old ones that are out too")
	m.jsonFlag(c)
	return c
}

// readEpisodes reads the newest episodes, or all.
func readEpisodes(ctx context.Context, c *client, key string, all bool) (v episodesShown, err error) {
	if err := c.get(ctx, sessionPath(key, fmt.Sprintf("/episodes?limit=%d", episodePage)), &v); err != nil {
		return v, err
	}
	for all && v.Next > 0 {
		var older episodesShown
		if err := c.get(ctx, sessionPath(key, fmt.Sprintf("/episodes?limit=%d&before=%d", episodePage, v.Next)), &older); err != nil {
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
func readAlone(cmd *cobra.Command, args []string, whole string) error {
	if len(args) > 0 {
		return usagef("%s: %s beside --%s: that is read whole, ask for one of them", cmd.CommandPath(), oneLine(args[0], 80), whole)
	}
	for _, name := range []string{"k", "budget", "all", "since", "until", "scope", "agent", "peer", "entry", "episode"} {
		if name != whole && cmd.Flags().Changed(name) {
			return usagef("%s: --%s beside --%s: that is read whole, ask for one of them", cmd.CommandPath(), name, whole)
		}
	}
	return nil
}

// readEpisode prints all that the log has of an episode.
func (m *Main) readEpisode(ctx context.Context, key, name string) error {
	return m.with(ctx, func(c *client) error {
		var text strings.Builder
		var page session.EpisodeText
		for {
			query := url.Values{"episode": {name}, "offset": {strconv.Itoa(page.Next)}}
			at := page.Next
			page = session.EpisodeText{}
			if err := c.get(ctx, sessionPath(key, "/recall?"+query.Encode()), &page); err != nil {
				return err
			}
			if text.WriteString(page.Text); page.Next <= at {
				break
			}
		}
		if m.json {
			page.Text, page.Next = text.String(), 0
			return m.printJSON(page)
		}
		m.err.line(page.Episode)
		for line := range strings.Lines(text.String()) {
			m.out.line(safe(strings.TrimRight(line, "\n")))
		}
		return nil
	})
}

// drawEpisodes writes the picture.
func (m *Main) drawEpisodes(path, key string, v episodesShown, all bool) error {
	if len(v.Episodes) == 0 {
		return &fixed{errors.New("no episodes in " + plainKey(key)), "they begin with the first call of a tool"}
	}
	most := mostEpisodeBoxes
	if all {
		most = allEpisodeBoxes
	}
	draw := func(w io.Writer) error { return svgEpisodes(w, key, v, most) }
	if path == "-" {
		return draw(m.out)
	}
	if err := toFile(path, draw); err != nil {
		return err
	}
	m.err.line("wrote " + plural(v.Total, "episode") + " to " + path)
	return nil
}

// episodeStates are the states in the order of a legend: the mark in a text, and the words.
var episodeStates = []struct {
	state       session.EpisodeState
	mark, words string
}{
	{session.EpisodeOpen, "▶", "open"}, {session.EpisodeWhole, "●", "in the context"}, {session.EpisodePartial, "◐", "partly evicted"},
	{session.EpisodeGone, "○", "evicted"}, {session.EpisodePrologue, "■", "prologue"},
}

// tellState returns the mark and the words of a state.
func tellState(state session.EpisodeState) (mark, words string) {
	for _, s := range episodeStates {
		if s.state == state {
			return s.mark, s.words
		}
	}
	return "?", string(state)
}

// episodeRow is a line of the drawing: an episode, or several in a row that are told together.
type episodeRow struct {
	list   []session.EpisodeTold
	folded bool // old ones that are out; else unmarked work
}

// one returns the episode of a row that has one.
func (r *episodeRow) one() *session.EpisodeTold {
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
func stands(e *session.EpisodeTold) tidemark.Tokens { return min(e.Standing, e.Tokens) }

// episodeRows makes rows: unmarked work in a row that is in one state is one, and where there are more than most, so are
// episodes that are out, and then the oldest.
func episodeRows(list []session.EpisodeTold, most int) []episodeRow {
	var rows []episodeRow
	for _, e := range list {
		if n := len(rows); n > 0 && e.Type == "" {
			if last := rows[n-1].list[0]; last.Type == "" && last.State == e.State {
				rows[n-1].list = append(rows[n-1].list, e)
				continue
			}
		}
		rows = append(rows, episodeRow{list: []session.EpisodeTold{e}})
	}
	if len(rows) <= most {
		return rows
	}
	const fresh = 3 // a third of the rows are the newest, whatever became of them
	rows = foldRows(rows, func(i int, r episodeRow) bool {
		return i < len(rows)-most/fresh && r.list[0].State == session.EpisodeGone
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
		return plural(len(r.list), "piece") + " of unmarked work"
	}
	var parts []string
	for _, k := range [...][2]string{{"expl", "exploration"}, {"act", "action"}} {
		if n[k[0]] > 0 {
			parts = append(parts, plural(n[k[0]], k[1]))
		}
	}
	if n[""] > 0 {
		parts = append(parts, plural(n[""], "piece")+" of unmarked work")
	}
	return strings.Join(parts, ", ")
}

// tellEpisode says what came of an episode: what was learned, else what it changed or read.
func tellEpisode(e *session.EpisodeTold) string {
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
	line := "context " + count(v.Size) + " tokens; the strategy episodes is not active, nothing leaves by it"
	if v.Enabled {
		line = full + " of the budget; over it episodes leave down to " + count(v.LowWater)
	}
	switch {
	case v.Short > 0 && v.Held != "":
		line += "; " + count(v.Short) + " over it, and nothing may leave: " + safe(v.Held)
	case v.Short > 0:
		line += "; " + count(v.Short) + " over it, and what may leave does so before the next call"
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
	return []string{tellBudget(v, gauge(v.Size, v.Budget)), plural(v.Total, "episode") + ": " + strings.Join(parts, ", ")}
}

// printEpisodes draws for people.
func (m *Main) printEpisodes(v episodesShown, all bool) {
	if v.Total == 0 {
		m.err.line("no episodes: they begin with the first call of a tool")
		return
	}
	for _, l := range headEpisodes(v) {
		m.out.line(l)
	}
	most := mostEpisodeRows
	if all {
		most = len(v.Episodes)
	}
	for _, l := range textEpisodes(v, most, m.columns()) {
		m.out.line(l)
	}
}

// columns is how wide a line may be.
func (m *Main) columns() int {
	const usual, least = 120, 60
	if n, err := strconv.Atoi(m.env("COLUMNS")); err == nil && n > 0 {
		return max(n, least)
	}
	if f, ok := m.Stdout.(*os.File); ok {
		if n := terminalWidth(f); n > 0 {
			return max(n, least)
		}
	}
	return usual
}
