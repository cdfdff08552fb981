package stream

import (
	"strings"

	"github.com/tidemark-ai/tidemark/cleanup"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bounds of what a gate holds.
const (
	brief    = 32       // bytes of text that may be part of an opening tag and what stands in front of it
	maxQueue = 64 << 10 // bytes of frames
)

// gate stands where the text of one block goes to the client: it takes the cleanup blocks out.
//
// A frame of which nothing is taken keeps its bytes, even where a piece of it could have begun a tag and
// was waited with: as long as that is brief the frames themselves wait, in their order. Only where an
// opening tag is there do they go on as what is visible of them. The start of a block waits for the first
// visible word, so that one which comes to be empty never starts: the API refuses such a block when the
// client sends it back.
type gate struct {
	part    *part
	tags    cleanup.Filter
	plain   bool   // tags are not looked for
	lead    string // what parts the text of this leg from the one before (chat)
	queue   []entry
	size    int    // bytes in queue
	acc     string // visible and not sent
	shown   []byte // all that is visible
	came    int    // bytes of text that came
	seen    int    // bytes of it that are visible
	lost    int    // bytes of it that were taken before the queue was last empty
	started bool
	altered bool // text is held for long: what follows does not wait with it
	done    bool
}

// entry is a frame that waits.
type entry struct {
	role role
	raw  []byte
	text string // of a piece
}

// role says what an entry is to the block whose text waits.
type role uint8

const (
	start   role = iota // its beginning
	piece               // a delta with text
	own                 // another delta of it
	foreign             // nothing
)

// took says whether something was taken from the text, or put in front of it.
func (g *gate) took() bool { return g.came != g.seen || len(g.shown) != g.seen }

// taken is how much of the text was taken so far.
func (g *gate) taken() int { return g.came - g.seen - g.tags.Held() }

// take puts a piece through the filter; end is true behind the last.
func (g *gate) take(p string, end bool) {
	v := p
	if !g.plain {
		v = g.tags.Push(p)
		if end {
			v += g.tags.End()
		}
	}
	g.came, g.seen = g.came+len(p), g.seen+len(v)
	if g.lead != "" && v != "" {
		if v[0] != '\n' {
			v = g.lead + v
		}
		g.lead = ""
	}
	g.shown = append(g.shown, v...)
	if g.acc != "" {
		v = g.acc + v
	}
	g.acc = v
}

// ready says whether there is something for which the block is worth starting.
func (g *gate) ready() bool { return g.acc != "" && strings.TrimSpace(g.acc) != "" }

// text sends a frame with a piece of text, or what is to be seen of it. at is where the text stands, as a
// string, in the frame's data; edits are others, in their order.
func (f *Filter) text(g *gate, fr frame, p string, at span, edits []edit) {
	g.take(p, false)
	held, taken := g.tags.Held(), g.taken()
	if g.started && len(g.queue) == 0 && held == 0 && g.acc == p {
		g.acc, g.altered, g.lost = "", false, taken
		f.emit(fr, edits...)
		return
	}
	if !g.altered {
		f.wait(g, entry{role: piece, text: p}, fr, edits)
		if f.drain(g); len(g.queue) == 0 {
			return
		}
		if held <= brief && g.size <= maxQueue && taken == g.lost && (held > 0 || !g.started) {
			f.lf, f.lfGate = toQueue, g
			return
		}
		last := len(g.queue) - 1
		g.queue = g.queue[:last]
	}
	g.altered, g.lost = held > 0, taken
	f.unqueue(g)
	if g.acc == "" || !g.started {
		f.drop(fr)
		return
	}
	f.emit(fr, insert(edits, edit{Span: at, With: json.AppendString(nil, g.acc)})...)
	g.acc = ""
}

// insert puts an edit at its place among others.
func insert(edits []edit, e edit) []edit {
	out := make([]edit, 0, len(edits)+1)
	for i, o := range edits {
		if o.From > e.From {
			return append(append(out, e), edits[i:]...)
		}
		out = append(out, o)
	}
	return append(out, e)
}

// wait puts a frame into the queue.
func (f *Filter) wait(g *gate, e entry, fr frame, edits []edit) {
	e.raw = render(nil, fr, edits...)
	g.queue, g.size = append(g.queue, e), g.size+len(e.raw)
	f.lf, f.lfGate = toQueue, g
}

// send puts an entry out.
func (f *Filter) send(g *gate, e entry) {
	if e.role == start {
		g.started = true
		f.n++
	}
	f.put(e.raw)
}

// drain sends frames in their order as far as their text is visible.
func (f *Filter) drain(g *gate) {
	n := 0
	for ; n < len(g.queue) && (g.started || g.ready()); n++ {
		e := g.queue[n]
		if e.role == piece {
			if !strings.HasPrefix(g.acc, e.text) {
				break
			}
			g.acc = g.acc[len(e.text):]
		}
		f.send(g, e)
		g.size -= len(e.raw)
	}
	g.queue = g.queue[n:]
	if len(g.queue) == 0 {
		g.queue = nil
	}
}

// unqueue gives up the frames that wait: what is visible of their text goes on by another. A block that
// is not worth starting yet keeps its beginning.
func (f *Filter) unqueue(g *gate) {
	ready := g.started || g.ready()
	var kept []entry
	g.size = 0
	for _, e := range g.queue {
		switch {
		case e.role == piece:
		case ready || e.role == foreign:
			f.send(g, e)
		default:
			kept = append(kept, e)
			g.size += len(e.raw)
		}
	}
	g.queue = kept
}

// force sends all that waits and is visible, and starts the block in any case.
func (f *Filter) force(g *gate) {
	if g == nil {
		return
	}
	queue := g.queue
	g.queue, g.size, g.altered = nil, 0, true
	for _, e := range queue {
		if e.role == piece {
			if !strings.HasPrefix(g.acc, e.text) {
				continue
			}
			g.acc = g.acc[len(e.text):]
		}
		f.send(g, e)
	}
	if g.acc != "" {
		s := g.acc
		g.acc = ""
		f.put(f.delta(g, s))
	}
}

// shut ends a text. A block of which nothing is visible because it was taken never was.
func (f *Filter) shut(g *gate) {
	if g == nil || g.done {
		return
	}
	f.close(g)
	f.drain(g)
	if g.started || !g.took() {
		f.force(g)
		return
	}
	f.unqueue(g)
	g.queue = nil
	f.shifted = true
}

// close takes the end of a text.
func (f *Filter) close(g *gate) {
	g.done = true
	if f.gate == g {
		f.gate = nil
	}
	g.take("", true)
	f.ops = append(f.ops, g.tags.Ops()...)
}

// pass sends a frame that is not of the text which may be waited with, in its order. A second one does not
// wait any more, nor does any where the wait may be long: it may be there to keep a connection alive.
func (f *Filter) pass(fr frame, edits ...edit) {
	g := f.gate
	if g == nil || len(g.queue) == 0 {
		f.emit(fr, edits...)
		return
	}
	waits := g.altered
	for _, e := range g.queue {
		waits = waits || e.role == foreign
	}
	if !waits {
		f.wait(g, entry{role: foreign}, fr, edits)
		return
	}
	kept := g.queue[:0:0]
	for _, e := range g.queue {
		if e.role != foreign {
			kept = append(kept, e)
			continue
		}
		f.put(e.raw)
		g.size -= len(e.raw)
	}
	g.queue = kept
	f.emit(fr, edits...)
}
