// Package cost says what a context costs, what making it smaller costs once and saves from then on, and after how many
// turns that pays: by the model of papers/cmv §4.1, to the figure, and by a truer one beside it. It reads no logs (package
// cost/logs does) and does not predict bills. Begin with [Model]; formulas are pure, and prices come from a file with a
// date and a source.
package cost

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tidemark-ai/tidemark"
)

// perMillion is the number of tokens that a price is for.
const perMillion = 1e6

// DefaultHitRate is the share of a turn's tokens that comes from the cache, as papers/cmv §4.2 assumes it.
const DefaultHitRate = 0.9

// TableCap is the horizon of tables and figures (papers/cmv §4.2): a break-even behind it counts as this many turns.
const TableCap Turns = 60

// Turns is a number of turns. Turn 1 is the first behind a trim.
type Turns int64

// Never is a break-even that does not come.
const Never Turns = math.MaxInt64

// Capped returns the turns as tables and figures show them.
func (t Turns) Capped() Turns { return min(t, TableCap) }

// String gives the number, or "never".
func (t Turns) String() string {
	if t == Never {
		return "never"
	}
	return strconv.FormatInt(int64(t), 10)
}

// MarshalJSON gives the number, and null for never: JSON has no infinity, and a large number would be taken for one.
func (t Turns) MarshalJSON() ([]byte, error) {
	if t == Never {
		return []byte("null"), nil
	}
	return []byte(t.String()), nil
}

// Verdict is what a break-even means to a person.
type Verdict string

// Verdicts, with the bounds of the known implementation: up to 5 turns, up to 15, more.
const (
	Worth     Verdict = "worth it"
	LongRun   Verdict = "worth it in a long session"
	NotNeeded Verdict = "not needed"
)

// Verdict says what the break-even means.
func (t Turns) Verdict() Verdict {
	const soon, late = 5, 15
	switch {
	case t <= soon:
		return Worth
	case t <= late:
		return LongRun
	}
	return NotNeeded
}

// Model is the cost of turns over a context at a price. Costs are in dollars.
type Model struct {
	Price   Price
	HitRate float64 // 0 to 1: the share of the tokens of a turn that is read from the cache
}

// Check says what is wrong with the model: tidemark.ErrInvalid.
func (m Model) Check() error {
	if !(m.HitRate >= 0 && m.HitRate <= 1) { // not a number is neither
		return fmt.Errorf("a hit rate is a number from 0 to 1, not %v: %w", m.HitRate, tidemark.ErrInvalid)
	}
	return m.Price.check()
}

// Turn is what one turn in the middle of a session costs: C(T, h) of papers/cmv §4.1.
func (m Model) Turn(context tidemark.Tokens) float64 {
	return float64(context) / perMillion * (m.HitRate*m.Price.CacheRead + (1-m.HitRate)*m.Price.CacheWrite)
}

// Cold is what a turn costs of which nothing is in the cache: C_cold(T) of papers/cmv §4.1.
func (m Model) Cold(context tidemark.Tokens) float64 {
	return float64(context) / perMillion * m.Price.CacheWrite
}

// Trim is what making a context smaller costs and saves.
type Trim struct {
	Pre       tidemark.Tokens `json:"pre"`
	Post      tidemark.Tokens `json:"post"`
	Reduction float64         `json:"reduction"` // percent of Pre
	Penalty   float64         `json:"penalty"`   // dollars, once
	Savings   float64         `json:"savings"`   // dollars a turn
	BreakEven Turns           `json:"break_even"`
}

// Paper is the cost model of papers/cmv §4.1: the first turn behind the trim finds nothing in the cache. The penalty
// is below 0 when that turn costs less than a turn before.
func (m Model) Paper(pre, post tidemark.Tokens) Trim {
	penalty := m.Cold(post) - m.Turn(pre)
	savings := m.Turn(pre) - m.Turn(post)
	return Trim{pre, post, reduction(pre, post), penalty, savings, breakEven(penalty, savings)}
}

// reduction is by how much post is smaller, in percent.
func reduction(pre, post tidemark.Tokens) float64 {
	if pre <= 0 {
		return 0
	}
	return 100 * float64(pre-post) / float64(pre)
}

// breakEven is the turn from which on the savings have paid the penalty. A share of a turn that is nothing but the
// rounding of floating point is no turn.
func breakEven(penalty, savings float64) Turns {
	const rounding = 1e-9
	if savings <= 0 || math.IsNaN(penalty/savings) {
		return Never
	}
	n := math.Ceil(penalty/savings - rounding*max(1, math.Abs(penalty/savings)))
	if n >= math.MaxInt32 {
		return Never
	}
	return Turns(n) + 1
}

// Projection is what a number of turns cost with and without a trim before the first.
type Projection struct {
	Turns   Turns   `json:"turns"`
	Without float64 `json:"without"`
	With    float64 `json:"with"`
}

// Project adds up the turns behind a trim by the model of the paper, for each number of them; none means 5, 10, 20
// and 50.
func (m Model) Project(pre, post tidemark.Tokens, turns ...Turns) []Projection {
	if len(turns) == 0 {
		turns = []Turns{5, 10, 20, 50}
	}
	out := make([]Projection, 0, len(turns))
	for _, n := range turns {
		n = max(n, 0)
		p := Projection{Turns: n, Without: float64(n) * m.Turn(pre)}
		if n > 0 {
			p.With = m.Cold(post) + float64(n-1)*m.Turn(post)
		}
		out = append(out, p)
	}
	return out
}

// Branch is what it costs to begin with a context that is there already (papers/cmv §4.4).
type Branch struct {
	Tokens tidemark.Tokens `json:"tokens"`
	First  float64         `json:"first"` // dollars: the whole context is written to the cache
	Later  float64         `json:"later"` // dollars a turn, as far as it is read from there
}

// Branch says what it costs to begin with that much context.
func (m Model) Branch(context tidemark.Tokens) Branch {
	return Branch{context, m.Cold(context), float64(context) / perMillion * m.Price.CacheRead}
}
