package body

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// cut is where a message ends so that results can follow.
type cut struct {
	at      int // elements before it
	results [][]byte
}

// editor lists the blocks of one item with its changes.
type editor struct {
	it      Item
	elems   []element
	cuts    []cut
	waiting [][]byte // results of calls within this message
}

// edited plans an item that has changes, or gets results in front.
func (p *planner) edited(i int, e *edit) error {
	it := p.r.Items[i]
	d := editor{it: it, elems: fresh(p.pending)}
	p.pending = nil
	inserts := append([]placed(nil), e.inserts...)
	slices.SortStableFunc(inserts, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.offset, b.offset))
	})
	n := it.Blocks()
	if it.silent() {
		n = 0
	}
	for k := range n {
		here := 0
		for here < len(inserts) && inserts[here].at <= k {
			here++
		}
		if raw, changed := e.blocks[k]; changed {
			d.put(inserts[:here])
			d.replace(k, raw)
		} else {
			d.keep(k, inserts[:here])
		}
		inserts = inserts[here:]
	}
	d.put(inserts)
	if len(d.elems) == 0 && n > 0 {
		return fmt.Errorf("no block is left of the message: %w", tidemark.ErrInvalid)
	}
	p.cutUp(i, d.elems, d.cuts)
	p.pending = d.waiting
	return nil
}

// put adds what is inserted.
func (d *editor) put(inserts []placed) {
	for _, in := range inserts {
		d.elems = append(d.elems, fresh(in.Blocks)...)
		d.elems = append(d.elems, fresh(in.Calls)...)
		d.waiting = append(d.waiting, in.Results...)
		if in.Split {
			d.cuts = append(d.cuts, cut{len(d.elems), d.waiting})
			d.waiting = nil
		}
	}
}

// replace adds what stands for block k: raw, or nothing. The cache marker stays, or moves to the block before.
func (d *editor) replace(k int, raw []byte) {
	var value []byte
	if d.it.marked(k) {
		value = markerOf(d.it.Block(k))
	}
	if raw == nil {
		moveMarker(d.elems, value)
		return
	}
	b, _ := checkBlock(raw) // it was checked before
	if b.kind == thinking {
		moveMarker(d.elems, value)
		value = nil
	}
	if !bytes.Equal(markerOf(raw), value) {
		raw = marked(raw, value)
	}
	d.elems = append(d.elems, element{raw: raw, orig: k, kind: b.kind})
}

// keep adds block k, and the inserts that stand before it or within its text.
func (d *editor) keep(k int, inserts []placed) {
	at := 0
	for n, in := range inserts {
		if in.offset > at {
			d.elems = append(d.elems, d.it.piece(k, at, in.offset))
			at = in.offset
		}
		d.put(inserts[n : n+1])
	}
	if at > 0 {
		d.elems = append(d.elems, d.it.piece(k, at, -1))
		return
	}
	d.elems = append(d.elems, element{raw: d.it.Block(k), orig: k, same: true, kind: d.it.kind(k)})
}

// piece is a run of bytes of the text of block k; the last one, to -1, keeps what else the block has.
func (i Item) piece(k, from, to int) element {
	raw := i.Block(k)
	quoted, _ := textOf(raw)
	s := string(jsonscan.Unquoted(quoted))
	if to >= 0 {
		return element{raw: textBlock(quote(s[from:to])), orig: -1, kind: text}
	}
	rest := setMember(raw, "text", quote(s[from:]))
	return element{raw: rest, orig: k, kind: text}
}

// cutUp makes messages of the blocks of item i. What is left behind the last cut is one if it is anything.
func (p *planner) cutUp(i int, elems []element, cuts []cut) {
	role, from := p.r.Items[i].Role, 0
	item := i
	for _, c := range cuts {
		p.out = append(p.out, outgoing{role: role, item: item, src: i, anchor: item, edited: true, elems: elems[from:c.at:c.at]})
		p.flush(c.results)
		from, item = c.at, -1
	}
	if from == 0 || from < len(elems) {
		p.out = append(p.out, outgoing{role: role, item: item, src: i, anchor: item, edited: true, elems: elems[from:]})
	}
}
