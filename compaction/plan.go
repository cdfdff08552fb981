package compaction

import (
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// Budget is the limits that a strategy plans within, in tokens.
type Budget struct {
	Window  tidemark.Tokens // what the model can take
	Reserve tidemark.Tokens // kept free for the next reply and its tool results
	Keep    tidemark.Tokens // the newest part that stays verbatim
}

// Defaults of the reference (papers/gsv, "compaction.reserveTokens").
const (
	DefaultReserve tidemark.Tokens = 20_000
	DefaultKeep    tidemark.Tokens = 20_000
)

// Fit scales reserve and keep down when the window is too small for them: when what the reserve
// leaves would not even hold what is to be kept, the reserve is at most half of the window. What is
// kept is at most half of what may be sent, or each compaction would be followed by the next.
func (b Budget) Fit() Budget {
	if b.Window-b.Reserve < b.Keep {
		b.Reserve = min(b.Reserve, b.Window/2)
	}
	b.Keep = min(b.Keep, b.Limit()/2)
	return b
}

// Limit is the size above which a strategy acts.
func (b Budget) Limit() tidemark.Tokens { return b.Window - b.Reserve }

// Over reports whether a view is to be compacted before it is sent.
func (b Budget) Over(v View) bool { return v.Size > b.Limit() }

// Strategy plans how to make a view smaller. Plan is pure and deterministic. It returns no edits
// when it has nothing to give.
type Strategy interface {
	// Name is what overlays and events call it.
	Name() string
	// Plan returns edits that bring the view down to the strategy's low-water mark, or as near
	// as it can.
	Plan(v View, b Budget) []tidemark.Edit
}

// Act is what the strategies planned together: one overlay row, one break of the prefix.
type Act struct {
	By    []string
	Edits []tidemark.Edit
	// Summarize is the index of the edit that a model must write, or -1.
	Summarize int
	// Replaces is the overlay whose span is summarised again, empty for none.
	Replaces tidemark.EntryID
	// Short is how far the view is over the limit still: the rest is pinned or of the newest turns.
	Short tidemark.Tokens
	// Loose is how many pinned entries found no room among those that stay.
	Loose int
	// Early says that only strategies with a limit of their own had part in it: it came before its time for the rest.
	Early bool
}

// urged is a strategy that plans nothing for a view within the limit, and is to when a person asks or a
// provider reports an overflow.
type urged interface {
	urge(v View, b Budget) Budget
}

// early is a strategy that acts at a size of its own, which the common limit says nothing of. What the others do
// when they are forced it does not spare them.
type early interface {
	Strategy
	// Limit is the size above which it is asked.
	Limit(b Budget) tidemark.Tokens
}

// due reports whether a strategy is to be asked for a view of some size.
func due(s Strategy, v View, b Budget) bool {
	if e, ok := s.(early); ok {
		return v.Size > e.Limit(b)
	}
	return b.Over(v)
}

// Due reports whether any of some strategies is to be asked.
func Due(strategies []Strategy, v View, b Budget) bool {
	return slices.ContainsFunc(strategies, func(s Strategy) bool { return due(s, v, b) })
}

// Early returns those of some strategies that act at a size of their own. They ask no model.
func Early(strategies []Strategy) []Strategy {
	var out []Strategy
	for _, s := range strategies {
		if _, ok := s.(early); ok {
			out = append(out, s)
		}
	}
	return out
}

// Plan asks the strategies in order, each on the view that the former left, until the view is
// within the budget. That they cannot bring it there is a result: Short says what is missing. A plan
// that would free nothing is ErrNoGain. Force plans even when the view is not over the limit: a person
// asked, or the provider reported an overflow. Nothing is planned either where what stays is too large for the model
// by itself: the rest would leave for a call that cannot succeed.
func Plan(strategies []Strategy, v View, b Budget, force bool) (Act, error) {
	v = v.led()
	act, before := Act{Summarize: -1, Loose: v.Loose, Early: true}, v
	summarized := slices.ContainsFunc(strategies, func(s Strategy) bool { return s.Name() == Summary{}.Name() })
	for i, s := range append(slices.Clip(strategies), Summary{}) {
		if i == len(strategies) && (summarized || v.doubted(v.Size) <= b.Room()) { // else those that are set leave more than any model takes
			continue
		}
		if !force && !due(s, v, b) {
			continue
		}
		within := b
		if u, ok := s.(urged); ok && force {
			within = u.urge(v, b)
		}
		edits := s.Plan(v, within)
		if len(edits) == 0 {
			continue
		}
		_, soon := s.(early)
		act.Early = act.Early && soon
		act.By = append(act.By, s.Name())
		act.Edits = without(act.Edits, before.Items, v.Items, edits)
		for _, e := range edits {
			if e.Summarize {
				act.Summarize = len(act.Edits)
			}
			act.Edits = append(act.Edits, e)
		}
		next, err := Preview(v, edits, b)
		if err != nil {
			return act, fmt.Errorf("plan %s: %w", s.Name(), err)
		}
		v, force = next, force && soon
	}
	for _, last := range []func(View, Budget) []tidemark.Edit{squeeze, shortSummary} {
		edits := last(v, b)
		if len(edits) == 0 {
			continue
		}
		next, err := Preview(v, edits, b)
		if err != nil {
			return act, fmt.Errorf("plan %s: %w", squeezeName, err)
		}
		act.Edits = append(without(act.Edits, before.Items, v.Items, edits), edits...)
		act.Summarize = slices.IndexFunc(act.Edits, func(e tidemark.Edit) bool { return e.Summarize })
		if !slices.Contains(act.By, squeezeName) {
			act.By = append(act.By, squeezeName)
		}
		act.Early, v = false, next
	}
	act.Short = max(v.Size-b.Limit(), 0)
	if len(act.Edits) == 0 {
		return act, fmt.Errorf("plan: nothing to compact: %w", tidemark.ErrNoGain)
	}
	if b.hopeless(v) {
		return Act{Summarize: -1, Loose: act.Loose, Short: max(before.Size-b.Limit(), 0)}, fmt.Errorf("plan: what stays cannot reach the budget: %w", tidemark.ErrNoGain)
	}
	return act, nil
}

// without drops the edits that one of the later edits replaces: its span holds them, or it is of the same block, and one row
// cannot have both. Whole is the view before all of them, items what the former left: neither a span that nothing stands for
// is an item of that, nor an entry whose blocks they took out.
func without(edits []tidemark.Edit, whole, items []Item, later []tidemark.Edit) []tidemark.Edit {
	if len(edits) == 0 {
		return edits
	}
	over := within(items, later)
	type block struct {
		of tidemark.EntryID
		n  int
	}
	again := map[block]bool{}
	for i := range later {
		if e := &later[i]; e.Block > 0 {
			again[block{e.From, e.Block}] = true
		}
	}
	from, to := map[tidemark.EntryID]int64{}, map[tidemark.EntryID]int64{}
	for i := len(whole) - 1; i >= 0; i-- {
		it := &whole[i]
		from[it.From] = it.Seq
		to[it.To] = max(to[it.To], it.Last)
	}
	return slices.DeleteFunc(edits, func(e tidemark.Edit) bool {
		if e.Block > 0 {
			return again[block{e.From, e.Block}] || len(over.list) > 0 && over.around(e.From, from[e.From], from[e.From])
		}
		return len(over.list) > 0 && over.around(e.From, from[e.From], to[e.To])
	})
}

func idSet(ids []tidemark.EntryID) map[tidemark.EntryID]bool {
	set := make(map[tidemark.EntryID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// allowance is what is counted for a summary that is yet to be written: 1,500 tokens, less in a
// small window.
func (b Budget) allowance() tidemark.Tokens { return min(1500, b.Window/8) }

// hopeless reports a view that no model of this window takes, also where the estimate is too high.
func (b Budget) hopeless(v View) bool { return v.doubted(v.Size) > b.Window }

// minGain is the least that a summary must promise to free: below it the prompt cache is worth more. Of a view that is too
// large to be sent anything is.
func (b Budget) minGain(v View) tidemark.Tokens {
	if v.Size > b.Room() {
		return 1
	}
	return min(500, b.Window/16)
}

// verbatim is how many tokens of the estimate may stay word for word. When the provider counts more
// than the estimate does, as it does for Chinese, less of the estimate fits into the same budget.
// It is at most half of what the fixed part leaves, so that the summary fits beside it.
func (b Budget) verbatim(v View) tidemark.Tokens {
	return v.estimated(min(b.Keep, max(b.Limit()-v.Fixed, 0)/2))
}
