package episodes

import "github.com/tidemark-ai/tidemark"

// DefaultLowWater is the low-water mark in percent of the budget. The paper evicts down to its budget (papers/cwl §6.2) and finds
// the prompt cache broken at each turn (§5); this breaks it once in a while.
const DefaultLowWater = 75

// Shares of the budget.
const (
	lineShare     = 8  // lines of what left take at most an eighth
	prologueShare = 2  // work before the first episode is prologue up to a half
	gainShare     = 20 // an act that cannot reach the budget is to free a twentieth
	againShare    = 4  // that it is not met is told again when so much more is missing
	overShare     = 20 // and that it is over where the context is so far below
)

// leastGain is less than estimates are wrong by.
const leastGain tidemark.Tokens = 16

// LowMark is the size that an act goes down to: so many percent of a budget, 0 for DefaultLowWater.
func LowMark(budget tidemark.Tokens, percent int) tidemark.Tokens {
	if percent <= 0 {
		percent = DefaultLowWater
	}
	return budget * tidemark.Tokens(percent) / whole
}

// PrologueOf is the size up to which unmarked work before the first episode stays.
func PrologueOf(budget tidemark.Tokens) tidemark.Tokens { return budget / prologueShare }

// Grown reports whether a context that nothing could leave has grown so much that a plan may find more.
func Grown(was, is, budget tidemark.Tokens) bool { return is > was+budget/gainShare }

// NeedOf is what a context over its budget needs to come down to the low-water mark. It is counted in the measure of a ledger,
// which estimates a context of that size at so many tokens.
func NeedOf(size, estimated, budget tidemark.Tokens, lowWater int) Need {
	return Need{Tokens: Scaled(size-LowMark(budget, lowWater), estimated, size), Least: Scaled(size-budget, estimated, size),
		Lines: budget / lineShare, Prologue: PrologueOf(budget)}
}

// Worth reports whether a plan is worth the prompt cache that it costs.
func (p *Plan) Worth(budget tidemark.Tokens) bool {
	return p.Freed >= leastGain && (p.Short <= 0 || p.Freed >= budget/gainShare)
}

// Shortage is what was told of a budget that cannot be met. A small one is missed and met again and again within a turn, and from
// turn to turn: that is one shortage, which is over when a whole turn had room.
type Shortage struct {
	By   tidemark.Tokens // it was told that so many are missing, 0 for nothing
	turn string          // the newest that was short, or the first that had room
	room bool
}

// See takes the size of a context before a call of the model, with the name of the turn, and reports whether it is to be told
// that its budget is not met, or that this is over.
func (s *Shortage) See(turn string, size, budget tidemark.Tokens) (begins, over bool) {
	if short := size - budget; short > 0 {
		s.turn, s.room = turn, false
		if begins = s.By == 0 || short >= s.By+budget/againShare; begins {
			s.By = short
		}
		return begins, false
	}
	switch {
	case s.By == 0 || size > budget-budget/overShare || s.turn == turn:
	case !s.room:
		s.turn, s.room = turn, true
	default:
		s.By, over = 0, true
	}
	return false, over
}
