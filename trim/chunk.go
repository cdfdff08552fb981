package trim

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// chunk is some whole lines of the log, or one that is longer than a chunk, and their plan.
type chunk struct {
	span
	heads, ops blob
	m          Metrics
	imagesIn   int64
	long       bool   // one line, that is read in pieces
	some       bool   // only lines that have a head are wanted
	boundary   bool   // it begins with one
	preserved  []byte // what the boundary says of lines that it kept
	err        error

	lines, items []byte // what is decided about its messages, and about their results and calls
}

// planner makes the plan of a log from its end to its last compaction: what lies before is never parsed.
type planner struct {
	sizes
	in    io.ReaderAt
	size  int64
	limit int64 // the threshold
	spill *spill

	nameless bool // nobody asks for the originals of stubs
}

const maxWorkers = 2

// plan returns the chunks from the last compaction on, in order. Its goroutines end before it does.
func (pl *planner) plan(ctx context.Context) ([]*chunk, error) {
	var (
		chunks []*chunk
		found  atomic.Bool
		wg     sync.WaitGroup
		tasks  = make(chan *chunk)
	)
	for range min(maxWorkers, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			p := pl.parser()
			for c := range tasks {
				p.chunk(c, pl.spill, nil)
				if c.boundary || c.err != nil {
					found.Store(true)
				}
			}
		})
	}
	cutter := source{sizes: pl.sizes, in: pl.in}
	for end := pl.size; end > 0 && !found.Load() && ctx.Err() == nil && cutter.err == nil; {
		c := cutter.lastLines(end)
		end = c.from
		chunks = append(chunks, c)
		tasks <- c
	}
	close(tasks)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if cutter.err != nil {
		return nil, cutter.err
	}
	for i, c := range chunks {
		if c.err != nil {
			return nil, c.err
		}
		if c.boundary {
			chunks = chunks[:i+1]
			break
		}
	}
	slices.Reverse(chunks)
	return chunks, nil
}

func (pl *planner) parser() *parser {
	return &parser{source: source{sizes: pl.sizes, in: pl.in}, threshold: pl.limit, nameless: pl.nameless}
}

// lastLines returns the whole lines before end that make a chunk, or the one line that is longer.
func (r *source) lastLines(end int64) *chunk {
	from := end - r.chunk
	if from <= 0 {
		return &chunk{span: span{0, end}}
	}
	for at := from - 1; at < end-1; at += pieceOfLine {
		if k := bytes.IndexByte(r.bit(at, end-1), '\n'); k >= 0 {
			return &chunk{span: span{at + int64(k) + 1, end}}
		}
	}
	for at := from; at > 0 && r.err == nil; {
		to := at
		at = max(0, at-pieceOfLine)
		if k := bytes.LastIndexByte(r.bit(at, to), '\n'); k >= 0 {
			return &chunk{span: span{at + int64(k) + 1, end}, long: true}
		}
	}
	return &chunk{span: span{0, end}, long: true}
}

// bit reads up to pieceOfLine bytes at a place, not beyond end.
func (r *source) bit(at, end int64) []byte {
	if cap(r.long) < pieceOfLine {
		r.long = make([]byte, pieceOfLine)
	}
	b := r.long[:pieceOfLine][:min(pieceOfLine, end-at)]
	r.read(b, at)
	return b
}

// chunk makes the plan of a chunk.
func (p *parser) chunk(c *chunk, sp *spill, want func(*head) bool) {
	pw := planWriter{p: p, c: c, sp: sp, want: want}
	pw.begin()
	if c.long {
		pw.long()
	} else {
		pw.short()
	}
	if c.err == nil {
		c.err = p.err
	}
	if c.err == nil {
		pw.end()
	}
}

// planWriter puts the plan of a chunk together.
type planWriter struct {
	p     *parser
	c     *chunk
	sp    *spill
	heads []byte
	last  int64
	want  func(*head) bool // nil for all lines
}

func (w *planWriter) begin() {
	w.p.ops, w.p.last = w.p.ops[:0], w.c.from
	w.p.m, w.p.imagesIn, w.p.flush = Metrics{}, 0, nil
	w.heads, w.last = w.p.heads[:0], w.c.from
}

func (w *planWriter) end() {
	c, p := w.c, w.p
	p.heads = w.heads
	c.m, c.imagesIn = p.m, p.imagesIn
	var err error
	if c.heads, err = w.sp.keep(w.heads); err != nil {
		c.err = err
		return
	}
	rest, err := w.sp.keep(p.ops)
	switch {
	case err != nil:
		c.err = err
	case len(c.ops.pieces) == 0:
		c.ops = rest
	case len(p.ops) > 0: // the last piece of what was written down meanwhile
		at, err := w.sp.put(p.ops)
		c.ops.pieces, c.err = append(c.ops.pieces, at), err
	}
}

func (w *planWriter) short() {
	p := w.p
	base := w.c.from // which a boundary moves
	data := p.load(w.c.span)
	for at := 0; at < len(data); {
		n := bytes.IndexByte(data[at:], '\n') + 1
		if n == 0 {
			n = len(data) - at
		}
		line := data[at : at+n]
		start := base + int64(at)
		at += n
		if blank(line) {
			continue
		}
		p.main.Reset(line, start, nil)
		w.line(span{start, start + int64(n)})
	}
}

// long plans a line that is read in pieces. Its ops go to the temporary file when they are many.
func (w *planWriter) long() {
	p := w.p
	p.load(span{w.c.from, w.c.from})
	p.flush = func() {
		at, err := w.sp.put(p.ops)
		if err != nil && w.c.err == nil {
			w.c.err = err
		}
		w.c.ops.pieces = append(w.c.ops.pieces, at)
		p.ops = p.ops[:0]
	}
	next := p.pieces(w.c.span)
	p.main.Reset(next(), w.c.from, next)
	if p.main.Space() != 0 || !p.main.AtEnd() { // it is not blank
		w.line(w.c.span)
	}
	p.flush = nil
}

func (w *planWriter) line(at span) {
	p := w.p
	begin, old := p.mark(), p.m
	f, ok := p.line(at)
	if !ok {
		if p.m = old; w.want == nil {
			p.m.LinesUnread++
		}
		w.c.ops.pieces = nil
		return
	}
	if w.want != nil {
		if p.boundary(&f) || !w.want(&p.h) {
			p.ops, p.last, p.m = p.ops[:begin.ops], begin.last, old
			return
		}
		p.m.LinesPreserved++
	} else if p.boundary(&f) {
		w.reset(&f, begin)
	}
	p.ops = append(p.ops, byte(opEnd))
	if p.h.flags == 0 && p.h.uuid == 0 && p.h.list == 0 && w.want == nil {
		p.ops = p.ops[:len(p.ops)-1]
		return
	}
	if p.h.flags&hasOps == 0 {
		p.ops = p.ops[:len(p.ops)-1]
	}
	w.heads = appendHead(w.heads, &p.h, &w.last)
}

// reset makes the chunk begin with the present line.
func (w *planWriter) reset(f *fields, begin mark) {
	p, c := w.p, w.c
	c.from, c.boundary = p.h.start, true
	c.preserved = nil
	if f.preserved.kind == '{' && f.preserved.size() <= maxPreserved {
		c.preserved = bytes.Clone(p.raw(f.preserved.span))
	}
	p.m, p.imagesIn = Metrics{}, 0
	// The places of the ops of this line count from the ops before; so they are written once more.
	if p.flush == nil {
		old := append([]byte(nil), p.ops[begin.ops:]...)
		p.ops, p.last = p.ops[:0], c.from
		d := decoder{b: old, last: begin.last}
		var o op
		for d.i < len(d.b) {
			d.op(&o)
			p.put(o)
		}
	}
	w.heads, w.last = w.heads[:0], c.from
}

const maxPreserved = 1 << 20

// boundary reports whether a line says that the conversation before it was compacted. A summary that names a leaf is
// the title of a session.
func (p *parser) boundary(f *fields) bool {
	switch string(p.word(f.typ)) {
	case "system":
		return string(p.word(f.subtype)) == "compact_boundary"
	case "summary":
		return f.leaf.kind == 0
	}
	return false
}

// blank reports whether there is nothing but white space.
func blank(line []byte) bool {
	for _, c := range line {
		if c > ' ' || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// countLines counts the lines of a part of the log that are not blank.
func (r *source) countLines(s span) (n int64) {
	full := false // the present line is not blank
	for s.size() > 0 && r.err == nil {
		data := r.load(span{s.from, min(s.to, s.from+r.chunk)})
		s.from += int64(len(data))
		for len(data) > 0 {
			k := bytes.IndexByte(data, '\n')
			line := data
			if k >= 0 {
				line = data[:k]
			}
			full = full || !blank(line)
			if k < 0 {
				break
			}
			if full {
				n++
			}
			full, data = false, data[k+1:]
		}
	}
	if full {
		n++
	}
	return n
}
