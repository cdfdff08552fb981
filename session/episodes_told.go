package session

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// Episodes is what an agent's work in a conversation is divided into, and how far each piece left the view. Sizes are
// 0 where the strategy episodes is not active.
type Episodes struct {
	Session  string          `json:"sessionId"`
	Enabled  bool            `json:"active"` // the strategy is in force
	Budget   tidemark.Tokens `json:"budget,omitempty"`
	LowWater tidemark.Tokens `json:"lowWater,omitempty"`
	Size     tidemark.Tokens `json:"size"`            // of the view now
	Short    tidemark.Tokens `json:"short,omitempty"` // over the budget
	Held     string          `json:"held,omitempty"`  // why nothing of that may leave
	Active   string          `json:"open,omitempty"`  // the episode that is open
	Episodes []EpisodeTold   `json:"episodes"`        // by place
}

// EpisodeTold is one episode, for people.
type EpisodeTold struct {
	N            int              `json:"n"` // from 1
	Name         string           `json:"name,omitempty"`
	Type         episodes.Type    `json:"type,omitempty"` // expl, act; empty for work that was not marked
	Dependencies []string         `json:"dependencies,omitempty"`
	Description  string           `json:"description,omitempty"`
	Read         []string         `json:"read,omitempty"` // files
	Changed      []string         `json:"changed,omitempty"`
	Calls        int              `json:"calls"`
	Tokens       tidemark.Tokens  `json:"tokens"`   // that it brought
	Standing     tidemark.Tokens  `json:"standing"` // of them in the view
	State        EpisodeState     `json:"state"`
	From         tidemark.EntryID `json:"from"`
	To           tidemark.EntryID `json:"to"`
	Began        time.Time        `json:"began,omitzero"`
	Ended        time.Time        `json:"ended,omitzero"`
}

// EpisodeState says how far an episode left the view.
type EpisodeState string

// The states of an episode.
const (
	EpisodeOpen     EpisodeState = "open"
	EpisodeWhole    EpisodeState = "whole" // all of it stands
	EpisodePartial  EpisodeState = "partial"
	EpisodeGone     EpisodeState = "gone"
	EpisodePrologue EpisodeState = "prologue" // before the first that was marked: it stays
)

// Episodes tells of the episodes of the conversation: of a graph that is made of the log where nobody keeps one.
func (s *Session) Episodes(ctx context.Context) (Episodes, error) {
	v, err := s.View(ctx)
	if err != nil {
		return Episodes{}, err
	}
	out := Episodes{Session: v.Log, Size: v.Size, Episodes: []EpisodeTold{}}
	e := s.episodic()
	if e != nil {
		out.Enabled, out.Budget, out.LowWater, out.Short = true, e.Limit(s.Budget()), e.LowMark(s.Budget()), e.Short(v.View, s.Budget())
	} else {
		e = &compaction.Episodes{}
	}
	err = s.withGraph(ctx, v.Log, func(g *episodes.Graph) error {
		if a := g.Active(); a != nil {
			out.Active = a.Name
		}
		if now := v.View; out.Short > 0 {
			if now.Graph = g; len(e.Plan(now, s.Budget())) == 0 {
				open := ""
				if a := g.Active(); a != nil {
					open = clip.Line(a.String(), shownEpisode)
				}
				out.Held = whyShort(v, open)
			}
		}
		out.Episodes = toldOfGraph(v, g, g.Prologue(e.Prologue(s.Budget())))
		return nil
	})
	if err != nil {
		return Episodes{}, err
	}
	return out, s.TellTimes(ctx, out.Episodes)
}

// toldOfGraph tells of all episodes of a graph; protected says that work before them is prologue.
func toldOfGraph(v View, g *episodes.Graph, protected bool) []EpisodeTold {
	cut := cutEpisodes(v, g)
	out := make([]EpisodeTold, 0, len(g.Episodes()))
	for i, st := range standing(v.View, g) {
		x := st.Episode
		t := EpisodeTold{N: x.N, Name: x.Name, Type: x.Type, Dependencies: slices.Clone(x.Dependencies), Description: x.Description, Read: slices.Clone(x.Read),
			Changed: slices.Clone(x.Changed), Calls: x.Calls, Tokens: x.Tokens, Standing: min(st.Tokens, x.Tokens), State: EpisodeWhole, From: x.Entry, To: x.Last}
		switch {
		case x.Open && x.Type != episodes.Unmarked:
			t.State = EpisodeOpen
		case st.Gone:
			t.State = EpisodeGone
		case cut[i+1]:
			t.State = EpisodePartial
		case x.Early && protected:
			t.State = EpisodePrologue
		}
		out = append(out, t)
	}
	return out
}

// cutEpisodes returns the numbers of the episodes that something was taken out of.
func cutEpisodes(v View, g *episodes.Graph) map[int]bool {
	out, all := map[int]bool{}, g.Episodes()
	for _, sh := range v.Shown {
		if !compaction.IsEpisodes(sh.Edit) {
			continue
		}
		if sh.Block > 0 {
			if e := g.Owner(episodes.Place{Seq: sh.From, Block: sh.Block - 1}); e != nil {
				out[e.N] = true
			}
			continue
		}
		first := sort.Search(len(all), func(i int) bool { return all[i].To.Seq >= sh.From })
		for _, e := range all[first:] {
			if e.From.Seq > sh.To {
				break
			}
			out[e.N] = true
		}
	}
	return out
}

// TellTimes fills in when episodes began and ended.
func (s *Session) TellTimes(ctx context.Context, list []EpisodeTold) error {
	for len(list) > 0 {
		page := list[:min(len(list), markedPage)]
		list = list[len(page):]
		ids := make([]tidemark.EntryID, 0, 2*len(page))
		for _, e := range page {
			ids = append(ids, e.From, e.To)
		}
		rows, err := s.DB.Query(ctx, `SELECT e.id, e.at FROM json_each(?) j CROSS JOIN entries e ON e.id = j.value LIMIT ?`, mustJSON(ids), len(ids))
		if err != nil {
			return fmt.Errorf("times of episodes: %w", err)
		}
		at := make(map[tidemark.EntryID]time.Time, len(rows))
		for _, r := range rows {
			at[tidemark.EntryID(r.Text(0))] = time.UnixMilli(r.Int(1)).UTC()
		}
		for i := range page {
			page[i].Began, page[i].Ended = at[page[i].From], at[page[i].To]
			if page[i].State == EpisodeOpen {
				page[i].Ended = time.Time{}
			}
		}
	}
	return nil
}

// Divided is how a call of the model stood to the budget of episodes: a part of [Anatomy].
type Divided struct {
	Budget   tidemark.Tokens `json:"budget"`
	LowWater tidemark.Tokens `json:"lowWater"`
	Size     tidemark.Tokens `json:"size"`            // of what was sent
	Short    tidemark.Tokens `json:"short,omitempty"` // over the budget
	Open     string          `json:"open,omitempty"`  // episode
	Gone     int             `json:"gone"`            // episodes that left whole
	Partial  int             `json:"partial"`         // and in part
}

// divisions tells how a view stands to the budget of episodes, nil where there is none. It asks for no more of the log
// than what is known already.
func (s *Session) divisions(ctx context.Context, v View) *Divided {
	e := s.episodic()
	if e == nil {
		return nil
	}
	d := &Divided{Budget: e.Limit(s.Budget()), LowWater: e.LowMark(s.Budget()), Size: v.Size, Short: e.Short(v.View, s.Budget())}
	m := s.divided.Swap(nil)
	if m == nil || m.log != v.Log {
		var err error
		if m, err = s.loadGraph(ctx, v.Log); err != nil {
			s.warn("read episodes", err)
			return d
		}
	}
	if a := m.graph.Active(); a != nil {
		d.Open = clip.Line(a.Name, shownEpisode)
	}
	cut := cutEpisodes(v, m.graph)
	for _, sh := range v.Shown {
		for _, n := range compaction.WholeEpisodes(sh.Edit) {
			d.Gone++
			delete(cut, n)
		}
	}
	d.Partial = len(cut)
	s.divided.CompareAndSwap(nil, m)
	return d
}
