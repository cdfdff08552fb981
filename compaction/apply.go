package compaction

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

var errNoItem = errors.New("edit names an entry that is not in the view")

// Preview returns the view as it would be with the edits: what the next strategy plans on. Of items and edits it costs
// as much as there are of both.
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
	if v.Items, err = previewSpans(v.Items, edits, b); err != nil {
		return v, err
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
	return size * (fixed + after) / max(fixed+before, 1) // or less
}

// previewSpans applies the edits of spans: all in one pass when they are disjoint, as those of one row are.
func previewSpans(items []Item, edits []tidemark.Edit, b Budget) ([]Item, error) {
	w := within(items, edits)
	if w.err != nil {
		return nil, w.err
	}
	if len(w.list) == 0 {
		return items, nil
	}
	out := make([]Item, 0, len(items))
	for i := range items {
		old := &items[i]
		n := w.find(old.Seq)
		if n < 0 || old.Last > w.list[n].last || old.Lead() {
			out = append(out, *old)
			continue
		}
		s := &w.list[n]
		if !s.placed {
			s.placed = true
			out = append(out, s.planned(b)...)
		}
		if s.kept[old.From] {
			out = append(out, *old)
		}
	}
	return out, nil
}

// stretch is an edit of a span with the positions that it reaches over.
type stretch struct {
	edit      *tidemark.Edit
	seq, last int64
	kept      map[tidemark.EntryID]bool
	placed    bool
}

// stretches are those of a plan, by position.
type stretches struct {
	list []stretch
	err  error // one names an entry that is not in the view, or two overlap: no row may have those
	at   int   // where the last search ended
}

// within finds where edits of spans reach among items; what is not there is left out.
func within(items []Item, edits []tidemark.Edit) stretches {
	var w stretches
	find := endsOf(items, edits)
	for i := range edits {
		e := &edits[i]
		if e.Block > 0 {
			continue
		}
		first, last := find(e)
		if first == 0 || last == 0 {
			w.err = cmp.Or(w.err, fmt.Errorf("%w: %s to %s", errNoItem, e.From, e.To))
			continue
		}
		s := stretch{edit: e, seq: items[first-1].Seq, last: items[last-1].Last}
		if len(e.Keep) > 0 {
			s.kept = idSet(e.Keep)
		}
		w.list = append(w.list, s)
	}
	if len(w.list) > 1 {
		slices.SortStableFunc(w.list, func(a, b stretch) int { return cmp.Compare(a.seq, b.seq) })
	}
	for i := range w.list {
		if w.list[i].last < w.list[i].seq || i > 0 && w.list[i].seq <= w.list[i-1].last {
			w.err = cmp.Or(w.err, errOverlap)
		}
	}
	return w
}

// endsOf returns what finds the items at which the span of an edit begins and ends, from 1: of several with one name
// the first, 0 for none.
func endsOf(items []Item, edits []tidemark.Edit) func(*tidemark.Edit) (from, to int) {
	type ends struct{ from, to int }
	named := map[tidemark.EntryID]int{}
	for i := range edits {
		if e := &edits[i]; e.Block == 0 {
			named[e.From], named[e.To] = 0, 0
		}
	}
	places := make([]ends, 0, len(named))
	for id := range named {
		named[id] = len(places)
		places = append(places, ends{})
	}
	for i := range items {
		it := &items[i]
		n, ok := named[it.From]
		if ok && places[n].from == 0 {
			places[n].from = i + 1
		}
		if it.To != it.From { // most items are of one entry
			n, ok = named[it.To]
		}
		if ok && places[n].to == 0 {
			places[n].to = i + 1
		}
	}
	return func(e *tidemark.Edit) (from, to int) { return places[named[e.From]].from, places[named[e.To]].to }
}

// find returns the last stretch that begins at or before a position, -1 for none. Positions in order cost one pass.
func (w *stretches) find(seq int64) int {
	for w.at > 0 && w.list[w.at-1].seq > seq {
		w.at--
	}
	for w.at < len(w.list) && w.list[w.at].seq <= seq {
		w.at++
	}
	return w.at - 1
}

// around reports whether one of them reaches over an item and does not keep it.
func (w *stretches) around(id tidemark.EntryID, seq, last int64) bool {
	n := w.find(seq)
	return n >= 0 && last <= w.list[n].last && !w.list[n].kept[id]
}

// planned returns what an edit would put into the view.
func (s *stretch) planned(b Budget) []Item {
	e := s.edit
	it := Item{From: e.From, To: e.To, Seq: s.seq, Last: s.last, Overlay: "planned", Source: tidemark.FromSystem}
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

// previewBlocks applies the edits of blocks, all in one pass, as Assemble does: an item whose blocks are all taken out
// leaves the view. Edits of such an item are refused from then on: nobody can see what they would change.
func previewBlocks(items []Item, edits []tidemark.Edit) ([]Item, error) {
	type chain struct{ edit, next int }
	var chains []chain // the edits of an item hang together, the later first, from 1
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
	empty := false
	for i := range out {
		it := &out[i]
		at, ok := first[it.From]
		if !ok || it.Span() {
			continue
		}
		delete(first, it.From)
		with := make([]*tidemark.Edit, it.Blocks())
		for ; at > 0; at = chains[at-1].next {
			e := &edits[chains[at-1].edit]
			if e.Block > len(with) {
				return nil, fmt.Errorf("%w: blocks of %s", errNoItem, it.From)
			}
			if with[e.Block-1] == nil { // of two for one block the later holds
				with[e.Block-1] = e
			}
		}
		it.planBlocks(with)
		empty = empty || len(it.Message.Content) == 0
	}
	if len(first) > 0 {
		return nil, errNoItem
	}
	if empty {
		out = slices.DeleteFunc(out, func(it Item) bool { return it.Stubs > 0 && len(it.Message.Content) == 0 })
	}
	return out, nil
}

// planBlocks puts the replacements of the entry's blocks into the item, nil for a block that none is planned for.
func (i *Item) planBlocks(with []*tidemark.Edit) {
	content := make([]tidemark.Block, 0, len(i.Message.Content))
	stubs := make([]Stubbed, 0, len(with))
	was, at := i.Stubbed, 0 // what stands in the item, and where the next block of the entry does
	for n, e := range with {
		s := Stubbed{Block: n + 1, At: len(content), Many: 1}
		stands := len(was) > 0 && was[0].Block == n+1 // something else did before
		if stands {
			s.Many, s.Row, s.Data = was[0].Many, was[0].Row, was[0].Data
			was = was[1:]
		}
		old := i.Message.Content[at : at+s.Many]
		at += s.Many
		if e != nil {
			s.Many, s.Row, s.Data, old = len(e.Blocks), 0, e.Data, e.Blocks
		}
		if stands || e != nil {
			stubs = append(stubs, s)
		}
		content = append(content, old...)
	}
	if i.Stubs == 0 {
		i.Whole = i.Tokens
	}
	i.Stubbed, i.Stubs = stubs, len(stubs)
	i.Message = tidemark.Message{Role: i.Message.Role, Content: content}
	i.Tokens = tidemark.Estimate(i.Message)
}
