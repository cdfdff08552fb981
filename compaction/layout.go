package compaction

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
)

// Placed is an edit with its entries resolved to positions.
type Placed struct {
	Overlay tidemark.EntryID // the row it is part of
	Row     int64            // position of that row; a later row is the outer one of equal spans
	N       int              // which edit of the row
	From    int64
	To      int64 // From for an insertion or a block
	Insert  bool
	Block   int     // 1-based, 0 for a span
	Keep    []int64 // sorted
}

// Row is an overlay in its place in the log.
type Row struct {
	ID      tidemark.EntryID
	Seq     int64
	Overlay tidemark.Overlay
}

// Place resolves the edits of the rows that are not lifted. at gives the position of an entry; an
// id it does not know is an error, since an edit that cannot be placed would silently show what
// it hid.
func Place(rows []Row, at func(tidemark.EntryID) (int64, bool)) ([]Placed, error) {
	lifted := Lifted(rows)
	var out []Placed
	for _, r := range rows {
		if lifted[r.ID] {
			continue
		}
		for n, e := range r.Overlay.Edits {
			p, err := place(r, n, e, at)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// Lifted returns which overlays of a log are undone.
func Lifted(rows []Row) map[tidemark.EntryID]bool {
	lifted := map[tidemark.EntryID]bool{}
	for i := len(rows) - 1; i >= 0; i-- { // newest first, so that a lifted lift does not count
		if !lifted[rows[i].ID] {
			for _, id := range rows[i].Overlay.Lifts {
				lifted[id] = true
			}
		}
	}
	return lifted
}

func place(r Row, n int, e tidemark.Edit, at func(tidemark.EntryID) (int64, bool)) (Placed, error) {
	p := Placed{Overlay: r.ID, Row: r.Seq, N: n, Block: e.Block, Insert: e.To == "" && e.Block == 0}
	find := func(id tidemark.EntryID) (seq int64, err error) {
		seq, ok := at(id)
		if !ok {
			return 0, fmt.Errorf("overlay %s, edit %d: entry %s: %w", r.ID, n+1, id, tidemark.ErrNotFound)
		}
		return seq, nil
	}
	var err error
	if p.From, err = find(e.From); err != nil {
		return p, err
	}
	p.To = p.From
	if e.To != "" && e.Block == 0 {
		if p.To, err = find(e.To); err != nil {
			return p, err
		}
	}
	if p.To < p.From {
		return p, fmt.Errorf("overlay %s, edit %d: ends before it begins: %w", r.ID, n+1, tidemark.ErrInvalid)
	}
	for _, id := range e.Keep {
		seq, err := find(id)
		if err != nil {
			return p, err
		}
		p.Keep = append(p.Keep, seq)
	}
	slices.Sort(p.Keep)
	return p, nil
}

// span reports whether p replaces whole entries.
func (p Placed) span() bool { return p.Block == 0 && !p.Insert }

// covers reports whether p, a span around position seq, does not keep it.
func (p Placed) covers(seq int64) bool {
	_, kept := slices.BinarySearch(p.Keep, seq)
	return !kept
}

// around reports whether p is the outer one of two edits: a span that holds the other's, and of
// equal spans the later.
func (p Placed) around(q Placed) bool {
	if !p.span() || p.From > q.From || p.To < q.To {
		return false
	}
	if q.Block > 0 && !p.covers(q.From) {
		return false // a block of an entry that the span keeps
	}
	if q.span() && p.From == q.From && p.To == q.To {
		return p.Row > q.Row || p.Row == q.Row && p.N > q.N
	}
	return true
}

// Layout is what of a log is visible, before any payload is read.
type Layout struct {
	Shown  []Placed // edits that are shown, by position
	Hidden []Span   // stretches of positions that no one sees, disjoint and in order
}

// Span is a stretch of positions, both ends included.
type Span struct{ From, To int64 }

// Lay computes the layout: of edits that nest the outermost is shown, what it covers sleeps.
func Lay(placed []Placed) Layout {
	edits := slices.Clone(placed)
	slices.SortStableFunc(edits, func(a, b Placed) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.To, a.To), cmp.Compare(b.Row, a.Row))
	})
	var l Layout
	var open []Placed // spans around the present position, shown or not, outermost first
	for _, e := range edits {
		open = slices.DeleteFunc(open, func(o Placed) bool { return o.To < e.From })
		if !slices.ContainsFunc(open, func(o Placed) bool { return o.hides(e) }) {
			l.Shown = append(l.Shown, e)
			if e.span() {
				l.Hidden = append(l.Hidden, e.hole()...)
			}
		}
		if e.span() {
			open = append(open, e)
		}
	}
	l.Hidden = union(l.Hidden)
	return l
}

// hides reports whether p covers the place where e would be shown. An insertion at the first entry
// of a span stands before it; e of equal span and an earlier row is inside p.
func (p Placed) hides(e Placed) bool {
	if e.Insert && e.From == p.From {
		return false
	}
	return p.covers(e.From)
}

// hole returns what a span hides: itself less what it keeps.
func (p Placed) hole() []Span {
	var out []Span
	from := p.From
	for _, k := range p.Keep {
		if k > from {
			out = append(out, Span{from, k - 1})
		}
		from = max(from, k+1)
	}
	if from <= p.To {
		out = append(out, Span{from, p.To})
	}
	return out
}

func union(spans []Span) []Span {
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	var out []Span
	for _, s := range spans {
		if n := len(out); n > 0 && s.From <= out[n-1].To+1 {
			out[n-1].To = max(out[n-1].To, s.To)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Gaps returns the visible stretches between positions lo and hi: what must be read.
func (l Layout) Gaps(lo, hi int64) []Span {
	var out []Span
	for _, h := range l.Hidden {
		if h.From > lo {
			out = append(out, Span{lo, min(h.From-1, hi)})
		}
		lo = max(lo, h.To+1)
		if lo > hi {
			return out
		}
	}
	if lo <= hi {
		out = append(out, Span{lo, hi})
	}
	return out
}

// CheckOverlay refuses a row that the view could not show whole: spans that partly overlap one
// another or an earlier shown edit, kept entries outside their span, a kept entry that parts an
// inner span, a block of an entry that a span of the same row replaces.
func CheckOverlay(shown []Placed, row []Placed) error {
	// Blocks and insertions never conflict with one another, so only pairs with a span are looked at.
	shown = slices.DeleteFunc(slices.Clone(shown), func(p Placed) bool { return !p.span() })
	var spans []int // of the row, before i
	var all []int   // every edit before i
	for i := range row {
		e := &row[i]
		for _, k := range e.Keep {
			if k < e.From || k > e.To {
				return fmt.Errorf("edit %d keeps an entry outside its span: %w", i+1, tidemark.ErrInvalid)
			}
		}
		before := spans
		if e.span() {
			before = all
			spans = append(spans, i)
		}
		all = append(all, i)
		for _, j := range before {
			o := &row[j]
			if o.To < e.From || e.To < o.From { // of thousands nearly all
				continue
			}
			if err := compatible(*e, *o); err != nil || e.around(*o) || o.around(*e) {
				return fmt.Errorf("edits %d and %d overlap: %w", j+1, i+1, cmp.Or(err, tidemark.ErrInvalid))
			}
		}
		for j := range shown {
			o := &shown[j]
			if o.To < e.From || e.To < o.From {
				continue
			}
			if err := compatible(*e, *o); err != nil {
				return fmt.Errorf("edit %d and overlay %s: %w", i+1, o.Overlay, err)
			}
			if o.around(*e) && o.hides(*e) {
				return fmt.Errorf("edit %d lies under overlay %s: %w", i+1, o.Overlay, tidemark.ErrInvalid)
			}
		}
	}
	return nil
}

var errOverlap = fmt.Errorf("partial overlap: %w", tidemark.ErrInvalid)

// compatible reports whether two edits nest or are disjoint, holes included.
func compatible(a, b Placed) error {
	if !a.span() || !b.span() || a.To < b.From || b.To < a.From {
		return nil
	}
	outer, inner := a, b
	if !outer.around(inner) {
		outer, inner = b, a
	}
	if !outer.around(inner) {
		return errOverlap
	}
	kept := 0
	for _, k := range outer.Keep {
		if inner.From <= k && k <= inner.To && inner.covers(k) {
			kept++
		}
	}
	if kept > 0 && outer.covers(inner.From) {
		return errors.Join(errOverlap, fmt.Errorf("a kept entry is hidden by the inner overlay %s", inner.Overlay))
	}
	return nil
}

// rank orders edits that begin at one place: an insertion stands before a span, the span around
// the blocks of its first entry.
func (p Placed) rank() int {
	switch {
	case p.Insert:
		return 0
	case p.Block == 0:
		return 1
	}
	return 2
}
