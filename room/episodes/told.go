package episodes

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
	"github.com/tidemark-ai/tidemark/room"
)

// Overview is what an agent's work in a conversation is divided into, and how far each piece left the view. Sizes are
// 0 where the strategy episodes is not active.
type Overview struct {
	Session  string          `json:"sessionId"`
	Enabled  bool            `json:"active"` // the strategy is in force
	Budget   tidemark.Tokens `json:"budget,omitempty"`
	LowWater tidemark.Tokens `json:"lowWater,omitempty"`
	Size     tidemark.Tokens `json:"size"`            // of the view now
	Short    tidemark.Tokens `json:"short,omitempty"` // over the budget
	Held     string          `json:"held,omitempty"`  // why nothing of that may leave
	Active   string          `json:"open,omitempty"`  // the episode that is open
	Episodes []Told          `json:"episodes"`        // by place
}

// Told is one episode, for people.
type Told struct {
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
	State        State            `json:"state"`
	From         tidemark.EntryID `json:"from"`
	To           tidemark.EntryID `json:"to"`
	Began        time.Time        `json:"began,omitzero"`
	Ended        time.Time        `json:"ended,omitzero"`
}

// State says how far an episode left the view.
type State string

// The states of an episode.
const (
	Open     State = "open"
	Whole    State = "whole" // all of it stands
	Partial  State = "partial"
	Gone     State = "gone"
	Prologue State = "prologue" // before the first that was marked: it stays
)

// Overview tells of the episodes of the conversation: of a graph that is made of the log where nobody keeps one.
func (s *Room) Overview(ctx context.Context) (Overview, error) {
	log, err := s.Current(ctx)
	if err != nil {
		return Overview{}, err
	}
	v, err := s.Seen(ctx, log)
	if err != nil {
		return Overview{}, err
	}
	out := Overview{Session: v.Log, Size: v.Size}
	e := s.strategy()
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
				out.Held = whyShort(now, openName(g))
			}
		}
		out.Episodes = List(standing(v.View, g), cut(v, g), g.Prologue(e.Prologue(s.Budget())))
		return nil
	})
	if err != nil {
		return Overview{}, err
	}
	return out, s.TellTimes(ctx, out.Episodes)
}

// List tells of all episodes of a graph, for people, without their times. Of those in cut, by number, something left;
// prologue says that work before the first one that was marked stays.
func List(states []episodes.State, cut map[int]bool, prologue bool) []Told {
	out := make([]Told, len(states))
	for i, st := range states {
		x := st.Episode
		out[i] = Told{N: x.N, Name: x.Name, Type: x.Type, Dependencies: slices.Clone(x.Dependencies), Description: x.Description, Read: slices.Clone(x.Read),
			Changed: slices.Clone(x.Changed), Calls: x.Calls, Tokens: x.Tokens, Standing: min(st.Tokens, x.Tokens), State: Whole, From: x.Entry, To: x.Last}
		switch {
		case x.Open && x.Type != episodes.Unmarked:
			out[i].State = Open
		case st.Gone:
			out[i].State = Gone
		case cut[x.N]:
			out[i].State = Partial
		case x.Early && prologue:
			out[i].State = Prologue
		}
	}
	return out
}

// cut returns the numbers of the episodes that something was taken out of.
func cut(v room.Seen, g *episodes.Graph) map[int]bool {
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
func (s *Room) TellTimes(ctx context.Context, list []Told) error {
	for len(list) > 0 {
		page := list[:min(len(list), savedPage)]
		list = list[len(page):]
		var ids []tidemark.EntryID
		for _, e := range page {
			ids = append(ids, e.From, e.To)
		}
		rows, err := s.DB.Query(ctx, `SELECT e.id, e.at FROM json_each(?) j CROSS JOIN entries e ON e.id = j.value LIMIT ?`, room.JSON(ids), len(ids))
		if err != nil {
			return fmt.Errorf("times of episodes: %w", err)
		}
		at := make(map[tidemark.EntryID]time.Time, len(rows))
		for _, r := range rows {
			at[tidemark.EntryID(r.Text(0))] = time.UnixMilli(r.Int(1)).UTC()
		}
		for i := range page {
			page[i].Began, page[i].Ended = at[page[i].From], at[page[i].To]
			if page[i].State == Open {
				page[i].Ended = time.Time{}
			}
		}
	}
	return nil
}

// Divided implements room.EpisodeReader.
func (s *Room) Divided(ctx context.Context, v room.Seen) *room.Divided {
	e := s.strategy()
	if e == nil {
		return nil
	}
	d := &room.Divided{Budget: e.Limit(s.Budget()), LowWater: e.LowMark(s.Budget()), Size: v.Size, Short: e.Short(v.View, s.Budget())}
	g, err := s.takeGraph(ctx, v.Log)
	if err != nil {
		s.Warn("read episodes", err)
		return d
	}
	if a := g.Active(); a != nil {
		d.Open = clip.Line(a.Name, shownName)
	}
	part := cut(v, g.Graph)
	for _, sh := range v.Shown {
		for _, n := range compaction.WholeEpisodes(sh.Edit) {
			d.Gone++
			delete(part, n)
		}
	}
	d.Partial = len(part)
	s.kept.CompareAndSwap(nil, g)
	return d
}
