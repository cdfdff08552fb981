package bench

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
)

// MaxEpisodes bounds the history of a measured pass: a tenth of what a log may have.
const MaxEpisodes = episodes.MaxEpisodes / 10

// EpisodesPass is one pass of eviction over a history of which nothing had left.
type EpisodesPass struct {
	Episodes int             `json:"episodes"`
	Messages int             `json:"messages"`
	PassMs   float64         `json:"pass_ms"` // median, nothing known before
	Evicted  tidemark.Tokens `json:"evicted_tokens"`
	Failures int             `json:"check_failures"`
	BestMs   float64         `json:"pass_best_ms"` // the fastest
	WarmMs   float64         `json:"warm_ms"`      // median, with what the turn before counted
	GraphMs  float64         `json:"graph_ms"`     // median of making the graph of the whole log
	Tokens   tidemark.Tokens `json:"tokens"`       // before
	Active   tidemark.Tokens `json:"active_tokens"`
	Edits    int             `json:"edits"`
}

// window is that of the model of these measurements.
var window = compaction.Budget{Window: 200_000, Reserve: compaction.DefaultReserve, Keep: compaction.DefaultKeep}

// RunEpisodesPass makes a history of so many episodes and measures a pass over it, by the default budget.
func RunEpisodesPass(n int, seed uint64, told Told) (p EpisodesPass, err error) {
	if n < 2 || n > MaxEpisodes {
		return p, fmt.Errorf("--episodes %d: want 2 to %d: %w", n, MaxEpisodes, tidemark.ErrInvalid)
	}
	h := newHistory(0)
	h.pairs(n, newHand(seed, uint64(n)))
	v, err := h.view()
	if err != nil {
		return p, err
	}
	p = EpisodesPass{Episodes: n, Messages: len(v.Items), Tokens: v.Size}
	var edits []tidemark.Edit
	const rounds = 15
	times := make([][]float64, 3)
	measure := func(what int, f func()) {
		began := time.Now()
		f()
		times[what] = append(times[what], time.Since(began).Seconds()*1000)
	}
	for i := range rounds {
		told.tell("episodes", i, rounds)
		runtime.GC() // what other rounds left is not this one's
		e := &compaction.Episodes{}
		measure(0, func() { edits = e.Plan(v, window) })
		measure(1, func() { edits = e.Plan(v, window) })
		g := e.NewGraph()
		measure(2, func() {
			for i := range h.entries {
				m := &h.entries[i]
				g.Add(episodes.Message{ID: m.ID, Seq: m.Seq, Tokens: m.Tokens, Content: m.Message})
			}
		})
	}
	for i := range times {
		slices.Sort(times[i])
	}
	p.BestMs, p.PassMs, p.WarmMs, p.GraphMs = times[0][0], times[0][rounds/2], times[1][rounds/2], times[2][rounds/2]
	if p.Edits = len(edits); len(edits) == 0 {
		p.Active = v.Size
		return p, nil
	}
	return p, p.apply(h, v, edits)
}

// apply holds what a plan shows, as the strategy behind it is given it and as a session assembles it, against the rules of
// the API and each other.
func (p *EpisodesPass) apply(h *history, v compaction.View, edits []tidemark.Edit) error {
	planned, err := compaction.Preview(v, edits, window)
	if err != nil {
		return err
	}
	if err := h.act(edits); err != nil {
		return err
	}
	stands, err := h.view()
	if err != nil {
		return err
	}
	for _, w := range []compaction.View{planned, stands} {
		if tidemark.Check(w.Messages()) != nil {
			p.Failures++
		}
	}
	if planned.Tokens() != stands.Tokens() || h.graph.Check() != nil {
		p.Failures++
	}
	p.Active = stands.Size
	p.Evicted = v.Size - stands.Size
	return nil
}
