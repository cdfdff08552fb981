package trim

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

// writer makes the second pass: it copies the log and makes the cuts that the plan and the ledger say.
type writer struct {
	source
	out     io.Writer
	cuts    Sink
	l       *ledger
	labels  labels
	heirs   map[uint64][]byte // by a line with a call: the line with the result that was made for it
	made    map[uint64]bool   // lines with such results
	heads   decoder
	ops     decoder
	how     string
	m       Metrics
	size    int64 // of the log
	pos     int64 // what lies before is written or cut
	buf     []byte
	failed  error
	stub    []byte  // scratch
	added   []added // not yet written
	before  weight
	after   weight
	itemsAt int // of the chunk
	linesAt int
}

// weight is what stands in the conversation.
type weight struct {
	chars  int64
	images int64
}

func (w weight) tokens() tidemark.Tokens {
	return tidemark.EstimateChars(int(w.chars)) + tidemark.Tokens(w.images)*tidemark.ImageTokens
}

const (
	outBytes = 256 << 10
	maxHow   = 160 // characters, of what stubs say to do
	tooLong  = "handle"
)

func newWriter(in io.ReaderAt, out io.Writer, cuts Sink, l *ledger, how string) *writer {
	if utf8.RuneCountInString(how) > maxHow {
		how = tooLong
	}
	return &writer{source: source{sizes: l.spill.sizes, in: in}, out: out, cuts: cuts, l: l, how: how, buf: make([]byte, 0, outBytes), added: l.added, heirs: map[uint64][]byte{}, made: map[uint64]bool{}}
}

func (w *writer) write(ctx context.Context, chunks []*chunk, size int64) error {
	w.size = size
	for _, c := range chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.chunk(c); err != nil {
			return err
		}
	}
	w.copyTo(size)
	w.flush()
	w.m.OriginalBytes = size
	w.m.LiveTokensBefore, w.m.LiveTokensAfter = w.before.tokens(), w.after.tokens()
	w.m.CallsRepaired = int64(len(w.l.added))
	return w.fault()
}

// fault is the first error of the log, the output, the cuts and the plan.
func (w *writer) fault() error {
	for _, err := range []error{w.err, w.failed, w.l.err} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) chunk(c *chunk) error {
	if w.pos < c.from {
		w.cut(span{w.pos, c.from}, nil, "")
	}
	w.itemsAt, w.linesAt = 0, 0
	w.m.add(&c.m)
	w.m.ImagesStripped += c.imagesIn
	w.before.images += c.imagesIn
	heads, ops := &w.heads, &w.ops
	w.l.spill.decode(heads, c.heads, c.from, &w.l.err)
	w.l.spill.decode(ops, c.ops, c.from, &w.l.err)
	var h head
	for !heads.done() && w.fault() == nil {
		heads.head(&h)
		w.answers(h.start)
		if c.some && w.pos < h.start {
			w.cut(span{w.pos, h.start}, nil, "")
		}
		w.line(c, &h, ops)
		if c.some {
			w.copyTo(h.end())
		}
	}
	w.answers(c.to)
	if c.some && w.pos < c.to {
		w.cut(span{w.pos, c.to}, nil, "")
	}
	w.copyTo(c.to)
	return w.fault()
}

// add takes over what was counted while planning.
func (m *Metrics) add(c *Metrics) {
	m.FileHistoryRemoved += c.FileHistoryRemoved
	m.QueueOperationsRemoved += c.QueueOperationsRemoved
	m.UserMessages += c.UserMessages
	m.AssistantResponses += c.AssistantResponses
	m.ToolUseRequests += c.ToolUseRequests
	m.ToolUseInputsStubbed += c.ToolUseInputsStubbed
	m.CopiesStubbed += c.CopiesStubbed
	m.LinesUnread += c.LinesUnread
	m.LinesPreserved += c.LinesPreserved
}

// line writes one line of which the plan says something.
func (w *writer) line(c *chunk, h *head, ops *decoder) {
	e := edit{w: w, c: c, h: h, message: h.flags&isMessage != 0, pending: -1, main: h.flags&isSide == 0}
	goes := h.flags&(isHistory|isQueue) != 0
	if e.message {
		e.ch = w.l.chainOf(h, c)
		e.thinks = e.ch.thinks(h)
		goes = c.lines[w.linesAt] == itemGoes
		w.linesAt++
		if goes {
			w.m.LinesEmptied++
		}
		if e.main {
			w.before.chars += h.chars
		}
	}
	if goes {
		w.cut(span{h.start, h.end()}, nil, "")
		ops.each(h, e.skip)
		return
	}
	if e.message && e.main {
		w.after.chars += h.chars
	}
	ops.each(h, e.op)
	e.wholeUpTo(h.end())
}

// answers writes the results that nobody recorded, of calls in lines that end at a place or before it.
func (w *writer) answers(to int64) {
	for len(w.added) > 0 && w.added[0].at <= to {
		a := w.added[0]
		w.copyTo(a.at)
		w.cut(span{a.at, a.at}, w.answer(a), "")
		w.added = w.added[1:]
	}
}

// copyTo writes the log up to a place as it stands.
func (w *writer) copyTo(to int64) {
	for w.pos < to && w.fault() == nil {
		end := w.base + int64(len(w.data))
		if w.pos < w.base || w.pos >= end {
			w.look()
			continue
		}
		end = min(end, to)
		w.put(w.data[w.pos-w.base : end-w.base])
		w.pos = end
	}
}

// look reads some of the log from the present place on: little behind a cut, since the next may be near and long, and
// more where nothing was cut for long. Most of a log is cut, and what is cut is not read again.
func (w *writer) look() {
	most := w.sizes.piece
	if cap(w.data) == 0 {
		w.data = make([]byte, 0, most)
	}
	n := min(most, pieceOfLine)
	if w.pos == w.base+int64(len(w.data)) {
		n = min(most, max(n, 2*int64(len(w.data))))
	}
	w.load(span{w.pos, min(w.size, w.pos+n)})
}

// cut writes put instead of a span of the log.
func (w *writer) cut(s span, put []byte, handle string) {
	w.copyTo(s.from)
	if w.failed != nil || w.err != nil {
		return
	}
	if w.cuts != nil {
		if err := w.cuts.Cut(Cut{From: s.from, To: s.to, Put: int64(len(put)), Handle: handle}); err != nil {
			w.failed = fmt.Errorf("keep the cut at byte %d: %w", s.from, err)
			return
		}
	}
	w.put(put)
	w.pos = s.to
}

func (w *writer) put(b []byte) {
	w.m.TrimmedBytes += int64(len(b))
	if len(w.buf)+len(b) > outBytes {
		w.flush()
	}
	if len(b) >= outBytes {
		w.send(b)
		return
	}
	w.buf = append(w.buf, b...)
}

func (w *writer) flush() {
	w.send(w.buf)
	w.buf = w.buf[:0]
}

func (w *writer) send(b []byte) {
	if w.failed != nil || len(b) == 0 {
		return
	}
	if _, err := w.out.Write(b); err != nil {
		w.failed = fmt.Errorf("write the trimmed log: %w", err)
	}
}

// edit makes the cuts in one line.
type edit struct {
	w       *writer
	c       *chunk
	h       *head
	ch      *chain
	message bool // its blocks are ruled
	main    bool // it weighs
	thinks  bool // thinking stays
	whole   bool // the copies were replaced

	stays   bool   // an element before stays
	pending int64  // where elements that go begin, of which none before stays; -1 for none
	gone    int64  // where the last element that goes ends
	result  uint64 // the call of the result at hand
}

// skip is told the ops of a line that goes.
func (e *edit) skip(o *op) {
	switch o.kind {
	case opThink:
		e.w.m.SignaturesStripped++
	case opResult:
		e.item()
		e.w.m.OrphansRemoved++
	case opCall, opEmpty:
		e.item()
	default:
		return
	}
	if e.main {
		e.w.before.chars += o.chars
	}
}

// item returns what was decided about the next result or call.
func (e *edit) item() bool {
	if !e.message {
		return true
	}
	e.w.itemsAt++
	return e.c.items[e.w.itemsAt-1] == itemStays
}

func (e *edit) op(o *op) {
	w := e.w
	e.wholeUpTo(o.from)
	switch o.kind {
	case opCut:
		w.cut(o.span, nil, "")
	case opLink:
		e.link(o)
	case opKept:
		e.keep(o.from)
	case opThink:
		if stays := !e.message || e.thinks; !e.element(o, stays) {
			w.m.SignaturesStripped++
		}
	case opEmpty:
		e.element(o, e.item())
	case opResult:
		e.result = o.hash
		if !e.element(o, e.item()) {
			w.m.OrphansRemoved++
		}
	case opCall:
		if e.element(o, e.item()) && e.ch != nil {
			w.labels.put(e.ch.mix(o.hash), o.extra)
		}
	case opStub:
		if o.from >= e.gone {
			e.stub(o)
		}
	}
}

// keep is told where an element begins that stays.
func (e *edit) keep(at int64) {
	if e.pending >= 0 {
		e.w.cut(span{e.pending, at}, nil, "")
		e.pending = -1
	}
	e.stays = true
}

// element keeps or cuts an element of the content, with the one comma that goes with it.
func (e *edit) element(o *op, stays bool) bool {
	if e.message && e.main {
		e.w.before.chars += o.chars
		if stays {
			e.w.after.chars += o.chars
		}
	}
	switch {
	case stays:
		e.keep(o.from)
		return true
	case e.stays:
		e.w.cut(span{o.prev, o.to}, nil, "")
	case e.pending < 0:
		e.pending = o.from
	}
	e.gone = o.to
	return false
}

// wholeUpTo replaces the copies of the line when they begin before a place.
func (e *edit) wholeUpTo(at int64) {
	h := e.h
	if h.flags&hasWhole == 0 || e.whole || h.whole.from > at {
		return
	}
	e.whole = true
	o := op{what: byte(formCopy), span: h.whole, n: h.whole.size()}
	e.w.cut(o.span, e.w.note(&o, nil), "")
}

// stub puts a note in the place of a span.
func (e *edit) stub(o *op) {
	w := e.w
	var label []byte
	switch form(o.what) {
	case formResult, formList:
		w.m.ToolResultsStubbed++
		if e.ch != nil {
			if label = w.labels.get(e.ch.mix(e.result)); label == nil {
				label = w.labels.get(mix(^e.ch.key, e.result)) // of a call that the compaction kept
			}
		}
	case formImage, formDocument:
		w.m.ImagesStripped++
		w.before.images++
	}
	note := w.note(o, label)
	if e.message && e.main && form(o.what) != formCopy {
		w.after.chars += int64(len(note)) - o.chars
	}
	handle := ""
	if w.cuts != nil && form(o.what) != formCopy {
		handle = hex.EncodeToString(o.handle[:])
	}
	w.cut(o.span, note, handle)
}

// labels say what the latest calls were. A result stands in the message behind its call, so older ones are forgotten.
type labels struct{ now, before map[uint64][]byte }

const maxLabels = 1000 // in each of the two maps

func (l *labels) put(call uint64, label []byte) {
	if l.now == nil || len(l.now) >= maxLabels {
		l.now, l.before = map[uint64][]byte{}, l.now
	}
	l.now[call] = append([]byte(nil), label...)
}

func (l *labels) get(call uint64) []byte {
	if label, ok := l.now[call]; ok {
		return label
	}
	return l.before[call]
}

// Below shortNote characters of the original a note says its size and handle only, lest it grow.
const shortNote = 200

// note writes what stands in the place of a span.
func (w *writer) note(o *op, label []byte) []byte {
	b := w.stub[:0]
	switch form(o.what) {
	case formList:
		b = append(b, `[{"type":"text","text":"`...)
	case formImage, formDocument:
		b = append(b, `{"type":"text","text":"`...)
	default:
		b = append(b, '"')
	}
	switch form(o.what) {
	case formImage:
		b = append(b, "[Image removed: "...)
	case formDocument:
		b = append(b, "[Document removed: "...)
	default:
		b = fmt.Appendf(b, "[Trimmed: ~%d chars%s", o.n, o.extra)
	}
	if f := form(o.what); f == formImage || f == formDocument {
		b = fmt.Appendf(b, "%s %x", o.extra, o.handle)
	}
	long := o.n >= shortNote || form(o.what) == formImage || form(o.what) == formDocument
	copied := form(o.what) == formCopy
	if long && len(label) > 0 {
		b = append(b, "; "...)
		b = appendText(b, label)
	}
	if long && w.how != "" && !copied {
		b = append(b, "; "...)
		b = appendText(b, []byte(w.how))
		b = fmt.Appendf(b, " %x", o.handle)
	} else if !long && !copied {
		b = fmt.Appendf(b, "; %x", o.handle)
	}
	switch form(o.what) {
	case formList:
		b = append(b, `]"}]`...)
	case formImage, formDocument:
		b = append(b, `]"}`...)
	default:
		b = append(b, `]"`...)
	}
	w.stub = b
	return b
}

// link makes a field name a line that is there.
func (e *edit) link(o *op) {
	w := e.w
	if heir := w.heirs[o.hash]; heir != nil && link(o.what) == linkParent {
		// Who walks from line to line must meet the result.
		w.m.LinesRelinked++
		w.cut(o.span, heir, "")
		return
	}
	if o.hash != 0 && (w.l.kept.get(o.hash) != nil || w.made[o.hash]) {
		return
	}
	which := link(o.what)
	hash, name := w.l.ancestor(o.hash)
	found := hash != 0 && hash != e.h.uuid && name.size() <= maxText
	if which == linkLeaf && !found {
		return // a title may be of another session, and without a leaf it would be taken for a boundary
	}
	to := []byte("null")
	if heir := w.heirs[hash]; found && heir != nil && which == linkParent {
		to = heir
	} else if found {
		to = append([]byte(nil), w.raw(name)...)
	}
	if which == linkParent {
		w.m.LinesRelinked++
	}
	w.cut(o.span, to, "")
}
