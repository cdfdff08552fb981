package compaction

import (
	"iter"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// MaxPinned is how many entries may be pinned at a time. Together they take at most a quarter of what may
// be sent: what never leaves would else leave no room for what is said now.
const MaxPinned = 64

// Hold marks the entries that somebody pinned: no strategy takes them out of the view, and later markers
// have holes there. Of more than there is room for the oldest lose their hold, and View.Loose counts them.
// What is pinned but stands under a marker or a summary already stays there.
func Hold(v View, pinned map[tidemark.EntryID]bool, b Budget) View {
	if len(pinned) == 0 {
		return v
	}
	most := v.estimated(max(b.Limit()-v.Fixed, 0) / 4)
	legal := Cuts(v.Items)
	v.Items = slices.Clone(v.Items)
	room, count, full := most, 0, false
	for from, to := range backward(legal) { // an exchange goes or stays as a whole, so all of it counts
		var size tidemark.Tokens
		var here []int
		for i := from; i < to; i++ {
			size += v.Items[i].Tokens
			if !v.Items[i].Span() && pinned[v.Items[i].ID] {
				here = append(here, i)
			}
		}
		if len(here) == 0 {
			continue
		}
		if size > most { // too large by itself: that is no reason to let others go
			v.Loose += len(here)
			continue
		}
		if full = full || size > room || count+len(here) > MaxPinned; full {
			v.Loose += len(here)
			continue
		}
		room, count = room-size, count+len(here)
		for _, i := range here {
			v.Items[i].Pinned = true
		}
	}
	return v
}

// estimated scales tokens as the provider counts them to tokens as we estimate them.
func (v View) estimated(n tidemark.Tokens) tidemark.Tokens {
	return scaled(n, v.Tokens(), v.Size-v.Fixed)
}

// scaled scales tokens by what is estimated at so many and counted as so many, when more are counted.
func scaled(n, estimated, counted tidemark.Tokens) tidemark.Tokens {
	return min(n, episodes.Scaled(n, estimated, counted))
}

// backward yields the exchanges between cut points, the newest first, to excluded.
func backward(legal []bool) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for to := len(legal) - 1; to > 0; {
			from := to - 1
			for !legal[from] {
				from--
			}
			if !yield(from, to) {
				return
			}
			to = from
		}
	}
}

// newestCalls returns the items with the newest call of each tool that is named, and the ids of those calls. Some APIs use
// an id again in each turn, so an id is one of these only in the exchange of such an item.
func newestCalls(items []Item, tools []string) (at map[int]bool, ids map[string]bool) {
	at, ids = map[int]bool{}, map[string]bool{}
	seen := map[string]bool{}
	for i := len(items) - 1; i >= 0; i-- {
		for n := range items[i].Message.Content {
			b := &items[i].Message.Content[n]
			if b.Type == tidemark.TypeToolUse && slices.Contains(tools, b.Name) && !seen[b.Name] && !items[i].Span() {
				at[i], ids[b.ID], seen[b.Name] = true, true, true
			}
		}
	}
	return at, ids
}

// held marks the items of each exchange that must stay: one with a pinned entry, and the newest one of
// each tool that is named, whose older results say what is no longer so.
func held(items []Item, legal []bool, tools []string) []bool {
	out := make([]bool, len(items))
	calls, _ := newestCalls(items, tools)
	for from, to := range backward(legal) {
		keep := false
		for i := from; i < to; i++ {
			keep = keep || items[i].Pinned || calls[i]
		}
		for i := from; keep && i < to; i++ {
			out[i] = !items[i].Span()
		}
	}
	return out
}
