package compaction

import (
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/paging"
)

// Episodes is graduated eviction by what the agent marked (CWL, papers/cwl §4.4): over a budget far below the window
// finished actions leave the view, then explorations that nothing depends on any more, each in levels from the most
// recoverable. It asks no model. Its zero value has the paper's budget.
type Episodes struct {
	Budget   episodes.Budget // the zero value is the paper's
	LowWater int             // percent of the budget that an act goes down to, 0 for [episodes.DefaultLowWater]
	Exact    bool            // the provider's own count is asked for before it acts
	Tools    episodes.Tools  // with which level calls leave
}

var _ Strategy = (*Episodes)(nil)

// Name is "episodes".
func (*Episodes) Name() string { return "episodes" }

// Limit is the size above which it acts: the budget, and never more than the window leaves.
func (e *Episodes) Limit(b Budget) tidemark.Tokens {
	return min(e.Budget.Of(b.Window), b.Limit())
}

// LowMark is the size that an act goes down to.
func (e *Episodes) LowMark(b Budget) tidemark.Tokens {
	return episodes.LowMark(e.Limit(b), e.LowWater)
}

// Short is how far a view is over the budget: what could not leave, since it is open, somebody's own words, pinned or
// needed by what is open.
func (e *Episodes) Short(v View, b Budget) tidemark.Tokens { return max(v.Size-e.Limit(b), 0) }

// Prologue is the size up to which unmarked work before the first episode stays.
func (e *Episodes) Prologue(b Budget) tidemark.Tokens { return episodes.PrologueOf(e.Limit(b)) }

// Plan takes out what the agent is done with, down to the low-water mark in one act.
func (e *Episodes) Plan(v View, b Budget) []tidemark.Edit {
	limit := e.Limit(b)
	if v.Size <= limit {
		return nil
	}
	l := e.ledger(v)
	need := episodes.NeedOf(v.Size, v.Fixed+l.Tokens(), limit, e.LowWater)
	need.Back, need.Entry = backByName, backByEntry
	p := l.Plan(need)
	if !p.Worth(limit) {
		return nil
	}
	return episodeEdits(v.Items, p)
}

// urge returns the budget for a view that is to be made smaller though it is within its own: as if it had just come
// over.
func (e *Episodes) urge(v View, b Budget) Budget {
	if limit := e.Limit(b); v.Size <= limit {
		b.Window = b.Reserve + max(v.Size-1, 0)
	}
	return b
}

// States tells how far each episode left a view, by place.
func (e *Episodes) States(v View) []episodes.State {
	return e.ledger(v).States()
}

// ledger counts what a view shows.
func (e *Episodes) ledger(v View) *episodes.Ledger {
	g := v.Graph
	if g == nil { // of a log that nobody keeps a graph of
		g = e.graphOf(v.Items)
	}
	items := v.returned()
	stay := held(items, Cuts(items), []string{DefaultStay})
	out := make([]episodes.Item, len(items))
	for i := range items {
		out[i] = episodeItem(&v.Items[i], stay[i])
	}
	return episodes.NewLedger(g, out)
}

// returned are the items of a view, those pinned that somebody brought back: they do not leave again at once.
func (v View) returned() []Item {
	if len(v.Back) == 0 && len(v.Returned) == 0 {
		return v.Items
	}
	out := slices.Clone(v.Items)
	for i := range out {
		it := &out[i]
		if it.Span() {
			continue
		}
		it.Pinned = it.Pinned || len(v.Back[it.ID]) > 0
		for _, s := range v.Returned {
			it.Pinned = it.Pinned || s.From <= it.Seq && it.Last <= s.To
		}
	}
	return out
}

// NewGraph returns the graph of an empty log, with the tools of the strategy.
func (e *Episodes) NewGraph() *episodes.Graph { return episodes.New(e.tools()) }

// LoadGraph returns a graph of episodes that were saved, see [episodes.Load].
func (e *Episodes) LoadGraph(rows []episodes.Episode, upto int64) *episodes.Graph {
	return episodes.Load(e.tools(), rows, upto)
}

func (e *Episodes) tools() episodes.Tools {
	if e.Tools.Known() {
		return e.Tools
	}
	return episodes.DefaultTools(paging.DefaultTools())
}

// graphOf makes the graph of what a view shows.
func (e *Episodes) graphOf(items []Item) *episodes.Graph {
	g := e.NewGraph()
	for i := range items {
		if it := &items[i]; !it.Span() {
			g.Add(episodes.Message{ID: it.ID, Seq: it.Seq, Tokens: it.Tokens, Content: it.Message})
		}
	}
	return g
}

// episodeItem is an item as a ledger takes it.
func episodeItem(it *Item, stays bool) episodes.Item {
	out := episodes.Item{Seq: it.Seq, Last: it.Last, Message: &it.Message, Tokens: it.Tokens, Stays: stays, Person: personTurn(it)}
	if it.Span() {
		if out.Line = lineAt(it); out.Line == nil {
			out.Stays = true
		}
		return out
	}
	if len(it.Stubbed) == 0 {
		return out
	}
	out.Numbers = make([]int, len(it.Message.Content))
	for at := range out.Numbers {
		out.Numbers[at] = it.Block(at) - 1
	}
	for _, s := range it.Stubbed {
		if l := episodes.LineOf(s.Data); s.Many > 0 && l != nil { // the line of an episode
			out.Numbers[s.At], out.Told = -1, append(out.Told, l.Lines...)
		}
	}
	return out
}

// episodeEdits are the edits of a plan.
func episodeEdits(items []Item, p episodes.Plan) []tidemark.Edit {
	out := make([]tidemark.Edit, 0, max(len(p.Runs), len(p.Blocks)))
	for _, r := range p.Runs {
		e := tidemark.Edit{From: items[r.From].From, To: items[r.To].To, Data: r.Data()}
		if r.Text != "" {
			e.Messages = []tidemark.Message{tidemark.NewText(tidemark.User, r.Text)}
		}
		out = append(out, e)
	}
	for _, r := range p.Blocks {
		e, line := tidemark.Edit{From: items[r.Item].From, Block: r.Number + 1}, episodes.Line{}
		if r.Text != "" {
			e.Blocks, line.Lines = []tidemark.Block{tidemark.Text(r.Text)}, []int{r.Line}
		}
		e.Data = line.Data()
		if n := len(out); n > 0 && out[n-1].From == e.From && out[n-1].Block == e.Block {
			continue // several blocks stand for that one
		}
		out = append(out, e)
	}
	return out
}

// backByName is how lines say the way back.
const backByName = `recall with {"episode": "NAME"} reads one back.`

// backByEntry is how the line of work without a name says it: it goes by the message in which it begins.
func backByEntry(e *episodes.Episode) string {
	return `recall with {"episode": "` + string(e.Entry) + `"}`
}

// lineAt returns what of episodes a span stands for, nil for one of another strategy.
func lineAt(it *Item) *episodes.Line { return episodes.LineOf(it.Data) }

// IsEpisodes reports whether an edit is of this strategy.
func IsEpisodes(e tidemark.Edit) bool { return episodes.LineOf(e.Data) != nil }

// WholeEpisodes returns the numbers of the episodes that an edit stands for.
func WholeEpisodes(e tidemark.Edit) []int {
	l := episodes.LineOf(e.Data)
	if l == nil {
		return nil
	}
	return slices.Concat(l.Folded, l.Lines)
}
