package body

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// outgoing is one message as it goes out, in either dialect.
type outgoing struct {
	role   tidemark.Role
	item   int       // the client's that it is, or is the beginning of; -1 for one of ours
	src    int       // the client's whose blocks it has; -1 for none
	anchor int       // the client's whose place it has, their number behind the last; -1 for none of its own
	raw    []byte    // of ours, whole
	edited bool      // it is elems, not what came
	elems  []element // its blocks
}

// element is a block of an outgoing message.
type element struct {
	raw  []byte
	orig int  // the client's block that it is or stands for; -1 for one of ours
	same bool // it is the client's, untouched
	kind kind
}

// edit is what is to be done to one item.
type edit struct {
	blocks  map[int][]byte // nil: left out
	inserts []placed
}

// placed is an insert whose place in the client's blocks was found.
type placed struct {
	Insert
	at, offset int
}

// planner makes the list of outgoing messages.
type planner struct {
	r       *Request
	edits   map[int]*edit
	spans   []SpanChange
	pending [][]byte // results that go to the front of the next message of the user
	out     []outgoing
}

// plan orders the changes of c by the messages that go out.
func (r *Request) plan(c Change) ([]outgoing, error) {
	p := planner{r: r, edits: map[int]*edit{}, out: make([]outgoing, 0, len(r.Items)+2*len(c.Inserts)+len(c.Append)+1)}
	if err := p.gather(c); err != nil {
		return nil, err
	}
	for i := 0; i < len(r.Items); {
		next, err := p.item(i)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		i = next
	}
	p.flush(nil)
	if len(c.Spans) > 0 && !p.settle() {
		c.Spans = nil
		return r.plan(c)
	}
	p.note(c.Note)
	for n, raw := range c.Append {
		it, err := newMessage(raw)
		if err != nil {
			return nil, fmt.Errorf("message %d to append: %w", n, err)
		}
		p.out = append(p.out, outgoing{role: it.Role, item: -1, src: -1, anchor: len(r.Items), raw: it.Raw})
	}
	return p.out, nil
}

// gather sorts the changes by item and refuses those that do not fit.
func (p *planner) gather(c Change) error {
	p.spans = append(p.spans, c.Spans...)
	slices.SortStableFunc(p.spans, func(a, b SpanChange) int { return a.From - b.From })
	last := -1
	for _, s := range p.spans {
		if s.From <= last || s.To < s.From || s.To >= len(p.r.Items) {
			return fmt.Errorf("span %d to %d: out of range or over another: %w", s.From, s.To, tidemark.ErrInvalid)
		}
		for i, before := 0, s.From-1; i < len(s.Keep); before, i = s.Keep[i], i+1 {
			if s.Keep[i] <= before || s.Keep[i] > s.To {
				return fmt.Errorf("span %d to %d: item %d is to stay: %w", s.From, s.To, s.Keep[i], tidemark.ErrInvalid)
			}
		}
		last = s.To
	}
	for _, b := range c.Blocks {
		if b.Item >= 0 && b.Item < len(p.r.Items) && p.r.Items[b.Item].fixed {
			continue
		}
		if err := p.block(b); err != nil {
			return fmt.Errorf("block %d of item %d: %w", b.Block, b.Item, err)
		}
	}
	if c.Trim != nil {
		for _, b := range c.Trim.texts {
			e := p.edit(b.Item)
			if _, changed := e.blocks[b.Block]; !changed {
				e.blocks[b.Block] = b.Raw
			}
		}
	}
	for _, in := range c.Inserts {
		if in.Item >= 0 && in.Item < len(p.r.Items) && p.r.Items[in.Item].fixed {
			continue
		}
		if err := p.insert(in); err != nil {
			return fmt.Errorf("insert into item %d: %w", in.Item, err)
		}
	}
	return nil
}

func (p *planner) edit(item int) *edit {
	e := p.edits[item]
	if e == nil {
		e = &edit{blocks: map[int][]byte{}}
		p.edits[item] = e
	}
	return e
}

func (p *planner) block(b BlockChange) error {
	if b.Item < 0 || b.Item >= len(p.r.Items) || b.Block < 0 || b.Block >= p.r.Items[b.Item].Blocks() {
		return fmt.Errorf("there is none: %w", tidemark.ErrInvalid)
	}
	e := p.edit(b.Item)
	if _, twice := e.blocks[b.Block]; twice {
		return fmt.Errorf("changed twice: %w", tidemark.ErrInvalid)
	}
	if b.Raw == nil {
		e.blocks[b.Block] = nil
		return nil
	}
	raw := unmarked(b.Raw)
	if _, err := checkBlock(raw); err != nil {
		return err
	}
	e.blocks[b.Block] = raw
	return nil
}

func (p *planner) insert(in Insert) error {
	if in.Item < 0 || in.Item >= len(p.r.Items) || p.r.Items[in.Item].Role != tidemark.Assistant {
		return fmt.Errorf("it is no message of the assistant: %w", tidemark.ErrInvalid)
	}
	if len(in.Calls) == 0 && len(in.Results) > 0 || len(in.Calls)+len(in.Blocks) == 0 {
		return fmt.Errorf("results without calls, or nothing: %w", tidemark.ErrInvalid)
	}
	for _, list := range []*[][]byte{&in.Blocks, &in.Calls, &in.Results} {
		clean := make([][]byte, len(*list))
		for n, raw := range *list {
			clean[n] = unmarked(raw)
			if _, err := checkBlock(clean[n]); err != nil {
				return err
			}
		}
		*list = clean
	}
	at, offset, err := p.r.Items[in.Item].place(in)
	if err != nil {
		return err
	}
	e := p.edit(in.Item)
	e.inserts = append(e.inserts, placed{in, at, offset})
	return nil
}

// place is the block before which an insert goes, and how many bytes of its text stand before it.
func (i Item) place(in Insert) (at, offset int, err error) {
	if in.Visible < 0 || in.Thinking < 0 || in.Offset < 0 {
		return 0, 0, fmt.Errorf("a place below zero: %w", tidemark.ErrInvalid)
	}
	n := i.Blocks()
	for seen := 0; seen < in.Visible; at++ {
		if at >= n {
			return 0, 0, fmt.Errorf("it has %d visible blocks, not %d: %w", seen, in.Visible, tidemark.ErrInvalid)
		}
		if i.kind(at) != thinking {
			seen++
		}
	}
	for k := 0; k < in.Thinking && at < n && i.kind(at) == thinking; k++ {
		at++
	}
	if in.Offset == 0 {
		return at, 0, nil
	}
	quoted, _ := textOf(i.Block(at))
	s := jsonscan.Unquoted(quoted)
	switch {
	case in.Offset > len(s) || in.Offset < len(s) && !utf8.RuneStart(s[in.Offset]):
		return 0, 0, fmt.Errorf("no text of %d bytes stands there: %w", in.Offset, tidemark.ErrInvalid)
	case in.Offset == len(s):
		return at + 1, 0, nil
	}
	return at, in.Offset, nil
}

func (i Item) kind(n int) kind {
	if i.bare {
		return text
	}
	return i.blocks[n].kind
}

func (i Item) marked(n int) bool { return !i.bare && i.blocks[n].marked }

// item plans one item, or the span that begins with it, and returns the next.
func (p *planner) item(i int) (next int, err error) {
	if len(p.spans) > 0 && p.spans[0].From == i {
		s := p.spans[0]
		p.spans = p.spans[1:]
		return s.To + 1, p.span(s)
	}
	it := p.r.Items[i]
	e := p.edits[i]
	if it.Role != tidemark.User || it.fixed {
		p.flush(nil)
	}
	if e == nil && len(p.pending) == 0 {
		p.out = append(p.out, outgoing{role: it.Role, item: i, src: i, anchor: i})
		return i + 1, nil
	}
	if e == nil {
		e = &edit{}
	}
	return i + 1, p.edited(i, e)
}

// flush gives the results that wait, and those given, a message of the user.
func (p *planner) flush(more [][]byte) {
	if len(p.pending)+len(more) == 0 {
		return
	}
	o := outgoing{role: tidemark.User, item: -1, src: -1, anchor: -1, edited: true}
	o.elems = append(fresh(p.pending), fresh(more)...)
	p.pending = nil
	p.out = append(p.out, o)
}

// fresh are blocks of ours, which were checked before.
func fresh(list [][]byte) []element {
	elems := make([]element, len(list))
	for n, raw := range list {
		b, _ := checkBlock(raw)
		elems[n] = element{raw: raw, orig: -1, kind: b.kind}
	}
	return elems
}

// span puts messages in the place of items. The last cache marker of what goes away moves to their end.
func (p *planner) span(s SpanChange) error {
	first := len(p.out)
	for n, raw := range s.Messages {
		it, err := newMessage(raw)
		if err != nil {
			return fmt.Errorf("message %d of the span: %w", n, err)
		}
		o := outgoing{role: it.Role, item: -1, src: -1, anchor: s.From, raw: it.Raw}
		if len(p.pending) > 0 {
			if it.Role == tidemark.User {
				o.elems, o.edited = append(fresh(p.pending), it.elements(-1)...), true
				p.pending = nil
			} else {
				p.flush(nil)
			}
		}
		p.out = append(p.out, o)
	}
	if len(p.out) > first {
		if value := p.r.lastMarker(s); value != nil {
			o := &p.out[len(p.out)-1]
			p.open(o)
			moveMarker(o.elems, value)
		}
	}
	for _, i := range s.Keep {
		if _, err := p.item(i); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

// lastMarker is the last cache marker of what leaves with a span, nil if there is none.
func (r *Request) lastMarker(s SpanChange) []byte {
	for i := s.To; i >= s.From; i-- {
		if slices.Contains(s.Keep, i) {
			continue
		}
		for n := r.Items[i].Blocks() - 1; n >= 0; n-- {
			if r.Items[i].marked(n) {
				return markerOf(r.Items[i].Block(n))
			}
		}
	}
	return nil
}

// moveMarker gives the last block that may have it the marker, unless it has one.
func moveMarker(elems []element, value []byte) {
	for n := len(elems) - 1; n >= 0 && value != nil; n-- {
		if e := &elems[n]; e.kind != thinking && e.kind != other { // the API refuses it there, or may
			if markerOf(e.raw) == nil {
				e.raw, e.same = marked(e.raw, value), false
			}
			return
		}
	}
}

// open makes a message a list of blocks.
func (p *planner) open(o *outgoing) {
	o.elems, o.edited = p.elements(o), true
}

// elements are the blocks of a message as it goes out.
func (p *planner) elements(o *outgoing) []element {
	switch {
	case o.edited:
		return o.elems
	case o.item >= 0:
		return p.r.Items[o.item].elements(0)
	}
	it, _ := NewItem(o.raw) // it was read before
	return it.elements(-1)
}

// silent reports a content that is a string without text, which the API refuses as a block.
func (i Item) silent() bool { return i.bare && i.content.To-i.content.From <= 2 }

// elements are the blocks of a message; orig is -1 for one of ours. A string without text is none.
func (i Item) elements(orig int) []element {
	if i.silent() {
		return nil
	}
	elems := make([]element, i.Blocks())
	for n := range elems {
		elems[n] = element{raw: i.Block(n), orig: -1, kind: i.kind(n)}
		if orig >= 0 {
			elems[n].orig, elems[n].same = n, true
		}
	}
	return elems
}

// speaks reports whether a note may be put into a message. A system message without blocks is none of instructions, and may
// stand where one may not.
func (p *planner) speaks(o *outgoing) bool {
	switch {
	case o.item >= 0 && p.r.Items[o.item].fixed:
		return false
	case o.role == tidemark.System:
		return o.item < 0 || p.instructs(o)
	}
	return o.role == tidemark.User
}

// note adds a text to the end of the last message of the user, or of a system message behind it.
func (p *planner) note(s string) {
	if s == "" {
		return
	}
	last := element{raw: textBlock(quote(s)), orig: -1, kind: text}
	for n := len(p.out) - 1; n >= 0; n-- {
		o := &p.out[n]
		if !p.speaks(o) {
			continue
		}
		p.open(o)
		o.elems = append(o.elems, last)
		return
	}
	p.out = append(p.out, outgoing{role: tidemark.User, item: -1, src: -1, anchor: -1, edited: true, elems: []element{last}})
}
