package bench

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// Prices of input by the list price of a token, as with the prompt cache of the Messages API
// (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching): what is read from the cache, what is written to it.
const (
	readPrice  = 0.1
	writePrice = 1.25
)

// simFixed is the system prompt and the tools of a simulated agent: the paper's is below 1,000 tokens (papers/cwl §6.1), and
// its tools.
const simFixed tidemark.Tokens = 3000

// keeper is a way to keep a context: it returns what is sent for a history.
type keeper interface {
	send(h *history) (compaction.View, error)
}

// meter counts what calls come to, with a prompt cache that keeps the request before.
type meter struct {
	last     []compaction.Item
	calls    int
	tokens   tidemark.Tokens // of the input of all calls
	hits     tidemark.Tokens
	largest  tidemark.Tokens
	breaks   int    // calls of which the cache had not all of the request before
	failures int    // views that break a rule of the API
	peak     uint64 // bytes of heap in use
}

// call counts a request.
func (m *meter) call(v compaction.View) {
	hit := tidemark.Tokens(0)
	if m.calls > 0 {
		hit = v.Fixed
		i := 0
		for i < min(len(v.Items), len(m.last)) && alike(v.Items[i].Message, m.last[i].Message) == len(v.Items[i].Message.Content) &&
			len(v.Items[i].Message.Content) == len(m.last[i].Message.Content) {
			hit += v.Items[i].Tokens
			i++
		}
		if i < len(m.last) {
			m.breaks++
			if i < len(v.Items) {
				for _, b := range v.Items[i].Message.Content[:alike(v.Items[i].Message, m.last[i].Message)] {
					hit += tidemark.EstimateBlock(b)
				}
			}
		}
	}
	m.calls++
	m.tokens += v.Size
	m.hits += hit
	m.largest = max(m.largest, v.Size)
	if tidemark.Check(v.Messages()) != nil {
		m.failures++
	}
	m.last = append(m.last[:0], v.Items...)
	const often = 200 // calls
	if m.calls%often == 0 {
		m.weigh()
	}
}

// weigh notes how much of the heap is in use.
func (m *meter) weigh() {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	m.peak = max(m.peak, s.HeapAlloc)
}

func (m *meter) cost() float64 {
	return readPrice*float64(m.hits) + writePrice*float64(m.tokens-m.hits)
}

func (m *meter) share() float64 { return float64(m.hits) / float64(max(m.tokens, 1)) }

// alike counts the first blocks that two messages of one role share.
func alike(a, b tidemark.Message) (n int) {
	if a.Role != b.Role {
		return 0
	}
	for n < min(len(a.Content), len(b.Content)) && sameBlock(&a.Content[n], &b.Content[n]) {
		n++
	}
	return n
}

func sameBlock(a, b *tidemark.Block) bool {
	return a.Type == b.Type && a.Text == b.Text && a.ID == b.ID && a.ToolUseID == b.ToolUseID && a.Name == b.Name && bytes.Equal(a.Input, b.Input) &&
		slices.EqualFunc(a.Content, b.Content, func(a, b tidemark.Block) bool { return sameBlock(&a, &b) })
}

// play is a stage on which each call is counted.
type play struct {
	meter
	h    *history
	keep keeper
}

func (p *play) say(text string) error {
	p.h.add(tidemark.NewText(tidemark.User, text), tidemark.FromPerson)
	return nil
}

func (p *play) call(reply tidemark.Message, results *tidemark.Message) error {
	v, err := p.keep.send(p.h)
	if err != nil {
		return err
	}
	p.meter.call(v)
	p.h.add(reply, tidemark.FromModel)
	if results != nil {
		p.h.add(*results, tidemark.FromTool)
	}
	return nil
}

// evicting keeps the view that the strategy left, as a session does.
type evicting struct {
	*compaction.Episodes
	budget compaction.Budget
}

func (k evicting) send(h *history) (compaction.View, error) {
	v, err := h.view()
	if err != nil {
		return v, err
	}
	edits := k.Plan(v, k.budget)
	if len(edits) == 0 {
		return v, nil
	}
	if err := h.act(edits); err != nil {
		return v, err
	}
	return h.view()
}

// recomputing decides anew before each call, of all of the history, what leaves, down to the budget, and keeps nothing of
// that: as the reference does it.
type recomputing struct {
	*compaction.Episodes
	budget compaction.Budget
}

func (k recomputing) send(h *history) (compaction.View, error) {
	v, err := h.view()
	if err != nil {
		return v, err
	}
	return compaction.Preview(v, k.Plan(v, k.budget), k.budget)
}

// window is that of the model of these measurements.
var window = compaction.Budget{Window: 200_000, Reserve: compaction.DefaultReserve, Keep: compaction.DefaultKeep}

// Simulations are sessions that can be simulated.
var Simulations = []string{"paper", "pairs"}

// shapes of the simulations, see docs/benchmarks.md. That of paper is such that 89 tasks take what the paper says of them,
// 80 million tokens.
var shapes = map[string]shape{
	"paper": {tasks: 89, explores: [2]int{3, 4}, acts: [2]int{3, 6}, second: 0.1},
	"pairs": {tasks: 60, fixed: true},
}

// Simulated is what a simulated session came to.
type Simulated struct {
	Turns     int             `json:"turns"`
	Tokens    tidemark.Tokens `json:"tokens"`     // of the input of all calls
	MaxActive tidemark.Tokens `json:"max_active"` // the largest context
	HitShare  float64         `json:"hit_share"`
	CostRatio float64         `json:"cost_ratio"`      // by deciding anew before each call
	CostKept  float64         `json:"cost_ratio_kept"` // by a kept view without a low-water mark
	Simulated string          `json:"simulate"`
	Tasks     int             `json:"tasks"`
	Budget    tidemark.Tokens `json:"budget"`
	LowWater  int             `json:"low_water_percent"`
	Breaks    int             `json:"prefix_breaks"`
	Cost      float64         `json:"cost"`
	Failures  int             `json:"check_failures"`
	PeakHeap  uint64          `json:"peak_heap_bytes"`
	Log       tidemark.Tokens `json:"log_tokens"` // of all messages
	Anew      Baseline        `json:"recomputed"`
	Kept      Baseline        `json:"kept_without_low_water"`
}

// Baseline is what the same session came to otherwise.
type Baseline struct {
	Cost     float64         `json:"cost"`
	HitShare float64         `json:"hit_share"`
	Breaks   int             `json:"prefix_breaks"`
	Tokens   tidemark.Tokens `json:"tokens"`
}

func (m *meter) baseline() Baseline { return Baseline{m.cost(), m.share(), m.breaks, m.tokens} }

// MaxTasks bounds a simulated session.
const MaxTasks = 500

func tasksFit(n int) bool { return n == 0 || n >= 2 && n <= MaxTasks }

// of is a shape with so many tasks, 0 for its own.
func (s shape) of(tasks int) shape {
	if tasks > 0 {
		s.tasks = tasks
	}
	return s
}

// Simulate plays a session of so many tasks, 0 for its own, under the strategy with a low-water mark in percent, and both
// ways without one.
func Simulate(name string, tasks int, seed uint64, low int, told Told) (s Simulated, err error) {
	sh, ok := shapes[name]
	if !ok || !tasksFit(tasks) {
		return s, fmt.Errorf("simulation %s with %d tasks: want one of %v: %w", name, tasks, Simulations, tidemark.ErrInvalid)
	}
	sh = sh.of(tasks)
	one := func(k keeper) (*play, error) {
		p := &play{h: newHistory(simFixed), keep: k}
		w := worker{shape: sh, seed: seed, on: p}
		if err := w.run(told); err != nil {
			return p, err
		}
		p.weigh()
		return p, nil
	}
	e := &compaction.Episodes{LowWater: low}
	ours, err := one(evicting{e, window})
	if err != nil {
		return s, err
	}
	s = Simulated{Turns: ours.calls, Tokens: ours.tokens, MaxActive: ours.largest, HitShare: ours.share(), Simulated: name, Tasks: sh.tasks, Budget: e.Limit(window),
		LowWater: low, Breaks: ours.breaks, Cost: ours.cost(), Failures: ours.failures, PeakHeap: ours.peak}
	for _, ep := range ours.h.graph.Episodes() {
		s.Log += ep.Tokens
	}
	kept, err := one(evicting{&compaction.Episodes{LowWater: 100}, window})
	if err != nil {
		return s, err
	}
	anew, err := one(recomputing{&compaction.Episodes{LowWater: 100}, window})
	if err != nil {
		return s, err
	}
	s.Kept, s.Anew = kept.baseline(), anew.baseline()
	s.CostRatio, s.CostKept = s.Cost/max(s.Anew.Cost, 1), s.Cost/max(s.Kept.Cost, 1)
	return s, nil
}
