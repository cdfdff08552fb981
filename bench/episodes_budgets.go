package bench

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
)

// Budgets plays one session under several budgets, with an agent that needs what it found before: where that is gone from
// what it is sent, it explores again.
type Budgets struct {
	Budgets []episodes.Budget
	Seed    uint64
	Low     int // low-water mark in percent
	Tasks   int // of the session, 0 for the paper's
	Told    Told
}

// Budgeted is what the session came to under a budget.
type Budgeted struct {
	Name       string          `json:"name"`             // as it was asked for; none, summary
	Budget     tidemark.Tokens `json:"budget,omitempty"` // tokens, 0 for what has none
	Cost       float64         `json:"cost"`
	HitShare   float64         `json:"hit_share"`
	Again      int             `json:"re_explorations"`
	VsUncapped float64         `json:"cost_vs_uncapped"`
	VsSummary  float64         `json:"cost_vs_summary"`
	Turns      int             `json:"turns"`
	Tokens     tidemark.Tokens `json:"tokens"`
	MaxActive  tidemark.Tokens `json:"max_active"`
	Failures   int             `json:"check_failures"`
	Recall     *WithRecall     `json:"with_recall,omitempty"`
}

// WithRecall is the same with an agent that reads back what left.
type WithRecall struct {
	Cost       float64 `json:"cost"`
	HitShare   float64 `json:"hit_share"`
	Recalls    int     `json:"recalls"`
	VsUncapped float64 `json:"cost_vs_uncapped"`
	VsSummary  float64 `json:"cost_vs_summary"`
	Turns      int     `json:"turns"`
}

// Bounds of a budget here. A task at hand takes some 20,000 tokens of the session; more than the largest is uncapped.
const (
	LeastBudget tidemark.Tokens = 20_000
	MostBudget  tidemark.Tokens = 2_000_000
)

// BudgetTable is all budgets, and what they are compared with.
type BudgetTable struct {
	Budgets  []Budgeted `json:"budgets"`
	Uncapped Budgeted   `json:"uncapped"` // nothing leaves, in a window that holds all of it
	Summary  Budgeted   `json:"summary"`  // of all but the newest, at window less reserve of 200,000
}

// budgetShape is the session of the paper's simulation, with needs.
func budgetShape(tasks int) shape {
	s := shapes["paper"]
	s.needs = 0.4
	return s.of(tasks)
}

// windowOf is a window in which a budget is not capped.
func windowOf(b episodes.Budget) compaction.Budget {
	w := window
	if b.Percent == 0 {
		w.Window = max(w.Window, b.Tokens+w.Reserve)
	}
	return w
}

// Run plays the session under each budget, without one, and under summaries.
func (b Budgets) Run() (t BudgetTable, err error) {
	if len(b.Budgets) == 0 || !tasksFit(b.Tasks) {
		return t, fmt.Errorf("%d budgets, %d tasks: %w", len(b.Budgets), b.Tasks, tidemark.ErrInvalid)
	}
	t.Uncapped, err = b.one("none", func() keeper { return uncapped{} })
	if err != nil {
		return t, err
	}
	if t.Summary, err = b.one("summary", func() keeper { return &summing{budget: window} }); err != nil {
		return t, err
	}
	for _, size := range b.Budgets {
		strategy := func() keeper { return evicting{&compaction.Episodes{Budget: size, LowWater: b.Low}, windowOf(size)} }
		row, err := b.one(size.String(), strategy)
		if err != nil {
			return t, err
		}
		row.Budget = size.Of(windowOf(size).Window)
		p, w, err := b.play(strategy(), true)
		if err != nil {
			return t, err
		}
		row.Recall = &WithRecall{Cost: p.cost(), HitShare: p.share(), Recalls: w.recalled, Turns: p.calls}
		t.Budgets = append(t.Budgets, row)
	}
	for i := range t.Budgets {
		row := &t.Budgets[i]
		row.VsUncapped, row.VsSummary = row.Cost/t.Uncapped.Cost, row.Cost/t.Summary.Cost
		row.Recall.VsUncapped, row.Recall.VsSummary = row.Recall.Cost/t.Uncapped.Cost, row.Recall.Cost/t.Summary.Cost
	}
	t.Uncapped.VsUncapped, t.Uncapped.VsSummary = 1, t.Uncapped.Cost/t.Summary.Cost
	t.Summary.VsUncapped, t.Summary.VsSummary = t.Summary.Cost/t.Uncapped.Cost, 1
	return t, nil
}

func (b Budgets) play(k keeper, reads bool) (*play, *worker, error) {
	p := &play{h: newHistory(simFixed), keep: k, reading: reads}
	w := &worker{shape: budgetShape(b.Tasks), seed: b.Seed, on: p}
	err := w.run(b.Told)
	if s, ok := k.(*summing); ok {
		p.extra = s.cost
	}
	return p, w, err
}

func (b Budgets) one(name string, k func() keeper) (Budgeted, error) {
	p, w, err := b.play(k(), false)
	if err != nil {
		return Budgeted{}, fmt.Errorf("budget %s: %w", name, err)
	}
	return Budgeted{Name: name, Cost: p.cost(), HitShare: p.share(), Again: w.again, Turns: p.calls, Tokens: p.tokens, MaxActive: p.largest, Failures: p.failures}, nil
}

// uncapped sends all of a history.
type uncapped struct{}

func (uncapped) send(h *history) (compaction.View, error) { return h.view() }

// summing replaces all but the newest by a summary where a history is over its limit. The call that writes it is sent what it
// sums up, which no cache has; what it writes is not counted, like that of all calls.
type summing struct {
	budget compaction.Budget
	cost   float64
}

// summaryTokens is how long a summary is: as long as ours are asked to be.
const summaryTokens tidemark.Tokens = 1500

func (s *summing) send(h *history) (compaction.View, error) {
	v, err := h.view()
	if err != nil || !s.budget.Over(v) {
		return v, err
	}
	act, err := compaction.Plan([]compaction.Strategy{compaction.Summary{}}, v, s.budget, false)
	if err != nil {
		return v, err
	}
	for i := range act.Edits {
		if act.Edits[i].Summarize {
			text := summaryOf(h.graph, act.Edits[i])
			act.Edits[i].Messages = []tidemark.Message{compaction.Render(compaction.Digest{Text: text}, "", summaryTokens)}
		}
	}
	before := v.Size
	if err := h.act(act.Edits); err != nil {
		return v, err
	}
	if v, err = h.view(); err != nil {
		return v, err
	}
	s.cost += writePrice * float64(before-v.Size)
	return v, nil
}

// summaryOf is a summary that has what the newest explorations of its span learned, as much as it holds: the best that a
// model can write.
func summaryOf(g *episodes.Graph, e tidemark.Edit) string {
	last, _ := position(e.To)
	text := ""
	for i := len(g.Episodes()) - 1; i >= 0; i-- {
		ep := g.Episodes()[i]
		if ep.Description == "" || ep.To.Seq > last {
			continue
		}
		if tidemark.EstimateText(text)+tidemark.EstimateText(ep.Description) > summaryTokens-summaryTokens/5 {
			break
		}
		text += ep.Name + ": " + ep.Description + "\n"
	}
	return text
}
