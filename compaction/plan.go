package compaction

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
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
	act, whole := Act{Summarize: -1, Loose: v.Loose, Early: true}, v
	for _, s := range strategies {
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
		act.Edits = without(act.Edits, v.Items, edits)
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
	act.Short = max(v.Size-b.Limit(), 0)
	if len(act.Edits) == 0 {
		return act, fmt.Errorf("plan: nothing to compact: %w", tidemark.ErrNoGain)
	}
	if b.hopeless(v) {
		return Act{Summarize: -1, Loose: act.Loose, Short: max(whole.Size-b.Limit(), 0)}, fmt.Errorf("plan: what stays cannot reach the budget: %w", tidemark.ErrNoGain)
	}
	return act, nil
}

// without drops the edits that one of the later edits replaces: its span holds them, and one row cannot
// have both.
func without(edits []tidemark.Edit, items []Item, later []tidemark.Edit) []tidemark.Edit {
	if len(edits) == 0 {
		return edits
	}
	from, to := make(map[tidemark.EntryID]int, len(items)), make(map[tidemark.EntryID]int, len(items))
	for i := len(items) - 1; i >= 0; i-- { // of several with one name the first
		from[items[i].From], to[items[i].To] = i, i
	}
	for _, l := range later {
		first, ok := from[l.From]
		last, too := to[l.To]
		if l.Block > 0 || l.To == "" || !ok || !too {
			continue
		}
		kept := idSet(l.Keep)
		edits = slices.DeleteFunc(edits, func(e tidemark.Edit) bool {
			at, ok := from[e.From]
			return ok && (e.Block > 0 || items[at].To == e.To) && !kept[e.From] && items[first].Seq <= items[at].Seq && items[at].Last <= items[last].Last
		})
	}
	return edits
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

// hopeless reports a view that no model of this window takes, also where the estimate is too high: it has a fifth on top.
func (b Budget) hopeless(v View) bool { return v.Size > b.Window+b.Window/4 }

// minGain is the least that a summary must promise to free: below it the prompt cache is worth more.
func (b Budget) minGain() tidemark.Tokens { return min(500, b.Window/16) }

// verbatim is how many tokens of the estimate may stay word for word. When the provider counts more
// than the estimate does, as it does for Chinese, less of the estimate fits into the same budget.
// It is at most half of what the fixed part leaves, so that the summary fits beside it.
func (b Budget) verbatim(v View) tidemark.Tokens {
	return v.estimated(min(b.Keep, max(b.Limit()-v.Fixed, 0)/2))
}

var errNoItem = errors.New("edit names an entry that is not in the view")

// Preview returns the view as it would be with the edits: what the next strategy plans on.
func Preview(v View, edits []tidemark.Edit, b Budget) (View, error) {
	if len(edits) == 0 {
		return v, nil
	}
	before := v.Tokens()
	items, err := previewBlocks(v.Items, edits)
	if err != nil {
		return v, err
	}
	v.Items = items
	for _, e := range edits {
		if e.Block > 0 {
			continue
		}
		if v.Items, err = previewSpan(v.Items, e, b); err != nil {
			return v, err
		}
	}
	v.resize(before)
	return v, nil
}

// resize computes the size anew after items went; before is what all of them were estimated at.
func (v *View) resize(before tidemark.Tokens) { v.Size = resized(v.Size, v.Fixed, before, v.Tokens()) }

// resized is the size of a view whose items were estimated at before and are now at after.
func resized(size, fixed, before, after tidemark.Tokens) tidemark.Tokens {
	if counted := size - fixed; counted > before && before > 0 { // the provider counts more than we estimate
		return fixed + after*counted/before
	}
	return max(fixed+after, size-(before-after))
}

func previewSpan(items []Item, e tidemark.Edit, b Budget) ([]Item, error) {
	from := slices.IndexFunc(items, func(it Item) bool { return it.From == e.From })
	to := slices.IndexFunc(items, func(it Item) bool { return it.To == e.To })
	if from < 0 || to < 0 {
		return nil, fmt.Errorf("%w: %s to %s", errNoItem, e.From, e.To)
	}
	it := Item{From: e.From, To: e.To, Seq: items[from].Seq, Last: items[to].Last, Overlay: "planned", Source: tidemark.FromSystem}
	out := make([]Item, 0, len(items))
	kept := idSet(e.Keep)
	placed := false
	for _, old := range items {
		inside := old.Seq >= it.Seq && old.Last <= it.Last
		if inside && !placed {
			placed = true
			out = append(out, planned(it, e, b)...)
		}
		if !inside || kept[old.From] {
			out = append(out, old)
		}
	}
	return out, nil
}

// planned returns what an edit would put into the view at it.
func planned(it Item, e tidemark.Edit, b Budget) []Item {
	if e.Summarize {
		it.Message, it.Tokens = tidemark.NewText(tidemark.User, SummaryMarker), b.allowance()
		return []Item{it}
	}
	out := make([]Item, len(e.Messages))
	for i, m := range e.Messages {
		out[i] = it
		out[i].Data = e.Data
		out[i].Message, out[i].Tokens = m, tidemark.Estimate(m)
	}
	return out
}

// previewBlocks applies the edits of blocks, all in one pass.
func previewBlocks(items []Item, edits []tidemark.Edit) ([]Item, error) {
	type chain struct{ edit, next int }
	var chains []chain // the edits of an item hang together, from 1
	first := make(map[tidemark.EntryID]int, len(edits))
	for n := range edits {
		if e := &edits[n]; e.Block > 0 {
			chains = append(chains, chain{n, first[e.From]})
			first[e.From] = len(chains)
		}
	}
	if len(chains) == 0 {
		return items, nil
	}
	out := slices.Clone(items)
	for i := range out {
		it := &out[i]
		at, ok := first[it.From]
		if !ok {
			continue
		}
		delete(first, it.From)
		with := make([][]tidemark.Block, len(it.Message.Content))
		data := make([]json.RawMessage, len(with))
		for ; at > 0; at = chains[at-1].next {
			e := &edits[chains[at-1].edit]
			if e.Block > len(with) {
				return nil, fmt.Errorf("%w: blocks of %s", errNoItem, it.From)
			}
			if with[e.Block-1] == nil { // of two for one block the later holds
				with[e.Block-1], data[e.Block-1] = append([]tidemark.Block{}, e.Blocks...), e.Data
			}
		}
		content := make([]tidemark.Block, 0, len(with))
		was := it.Stubbed
		it.Stubbed = nil
		for n, blocks := range with {
			i := slices.IndexFunc(was, func(s Stubbed) bool { return s.Block == n+1 })
			switch {
			case blocks == nil && i < 0:
				content = append(content, it.Message.Content[n])
				continue
			case blocks == nil:
				it.Stubbed = append(it.Stubbed, Stubbed{n + 1, len(content), 1, was[i].Row, was[i].Data})
				content = append(content, it.Message.Content[n])
				continue
			}
			it.Stubbed = append(it.Stubbed, Stubbed{n + 1, len(content), len(blocks), 0, data[n]})
			content = append(content, blocks...)
			it.Stubs++
		}
		it.Message, it.Whole = tidemark.Message{Role: it.Message.Role, Content: content}, max(it.Whole, it.Tokens)
		it.Tokens = tidemark.Estimate(it.Message)
	}
	if len(first) > 0 {
		return nil, errNoItem
	}
	return out, nil
}
