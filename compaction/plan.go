package compaction

import (
	"errors"
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
}

// Plan asks the strategies in order, each on the view that the former left, until the view is
// within the budget. A plan that would free nothing is ErrNoGain. Force plans even when the view
// is not over the limit: a person asked, or the provider reported an overflow.
func Plan(strategies []Strategy, v View, b Budget, force bool) (Act, error) {
	act := Act{Summarize: -1}
	for _, s := range strategies {
		if !force && !b.Over(v) {
			break
		}
		edits := s.Plan(v, b)
		if len(edits) == 0 {
			continue
		}
		act.By = append(act.By, s.Name())
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
		v, force = next, false
	}
	if len(act.Edits) == 0 {
		return act, fmt.Errorf("plan: nothing to compact: %w", tidemark.ErrNoGain)
	}
	return act, nil
}

// allowance is what is counted for a summary that is yet to be written: 1,500 tokens, less in a
// small window.
func (b Budget) allowance() tidemark.Tokens { return min(1500, b.Window/8) }

// minGain is the least that a summary must promise to free: below it the prompt cache is worth more.
func (b Budget) minGain() tidemark.Tokens { return min(500, b.Window/16) }

// verbatim is how many tokens of the estimate may stay word for word. When the provider counts more
// than the estimate does, as it does for Chinese, less of the estimate fits into the same budget.
// It is at most half of what the fixed part leaves, so that the summary fits beside it.
func (b Budget) verbatim(v View) tidemark.Tokens {
	keep := min(b.Keep, max(b.Limit()-v.Fixed, 0)/2)
	estimated, counted := v.Tokens(), v.Size-v.Fixed
	if counted <= estimated || estimated == 0 {
		return keep
	}
	return keep * estimated / counted
}

var errNoItem = errors.New("edit names an entry that is not in the view")

// Preview returns the view as it would be with the edits: what the next strategy plans on.
func Preview(v View, edits []tidemark.Edit, b Budget) (View, error) {
	before := v.Tokens()
	for _, e := range edits {
		next, err := previewOne(v, e, b)
		if err != nil {
			return v, err
		}
		v.Items = next
	}
	after := v.Tokens()
	if counted := v.Size - v.Fixed; counted > before && before > 0 { // the provider counts more than we estimate
		v.Size = v.Fixed + after*counted/before
	} else {
		v.Size = max(v.Fixed+after, v.Size-(before-after))
	}
	return v, nil
}

func previewOne(v View, e tidemark.Edit, b Budget) ([]Item, error) {
	from := slices.IndexFunc(v.Items, func(it Item) bool { return it.From == e.From })
	if from >= 0 && e.Block > 0 {
		return previewBlock(v.Items, from, e)
	}
	to := slices.IndexFunc(v.Items, func(it Item) bool { return it.To == e.To })
	if from < 0 || to < 0 {
		return nil, fmt.Errorf("%w: %s to %s", errNoItem, e.From, e.To)
	}
	it := Item{From: e.From, To: e.To, Seq: v.Items[from].Seq, Last: v.Items[to].Last, Overlay: "planned", Source: tidemark.FromSystem}
	var out []Item
	placed := false
	for _, old := range v.Items {
		inside := old.Seq >= it.Seq && old.Last <= it.Last
		if inside && !placed {
			placed = true
			out = append(out, planned(it, e, b)...)
		}
		if !inside || slices.Contains(e.Keep, old.From) {
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
		out[i].Message, out[i].Tokens = m, tidemark.Estimate(m)
	}
	return out
}

func previewBlock(items []Item, at int, e tidemark.Edit) ([]Item, error) {
	it := items[at]
	if e.Block > len(it.Message.Content) {
		return nil, fmt.Errorf("%w: block %d of %s", errNoItem, e.Block, e.From)
	}
	var content []tidemark.Block
	content = append(content, it.Message.Content[:e.Block-1]...)
	content = append(content, e.Blocks...)
	content = append(content, it.Message.Content[e.Block:]...)
	it.Message = tidemark.Message{Role: it.Message.Role, Content: content}
	it.Tokens = tidemark.Estimate(it.Message)
	it.Stubs++
	out := append([]Item(nil), items...)
	out[at] = it
	return out, nil
}
