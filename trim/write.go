package trim

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// writer reads the live part once more: it copies it, and makes the cuts that the lines and the ledger say.
type writer struct {
	reading
	out    *bufio.Writer
	cuts   Sink
	l      *ledger
	labels labels
	heirs  map[uint64][]byte // by a line with a call: the line with the result that was made for it
	made   map[uint64]bool   // lines with such results
	how    string
	facts  []fact  // of lines that were not written yet
	added  []added // not yet written
	pos    int64   // what lies before is written or cut
	failed error
	before weight
	after  weight
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

func newWriter(r reading, out io.Writer, cuts Sink, l *ledger, how string) *writer {
	if utf8.RuneCountInString(how) > maxHow {
		how = tooLong
	}
	r.m, r.imagesIn, r.unread = Metrics{}, 0, 0
	return &writer{reading: r, out: bufio.NewWriterSize(out, outBytes), cuts: cuts, l: l, how: how, facts: l.facts, added: l.added,
		heirs: map[uint64][]byte{}, made: map[uint64]bool{}}
}

// write writes what is left of a log whose last compaction is at a place.
func (w *writer) write(boundary int64) error {
	begin := boundary
	if len(w.facts) > 0 {
		begin = min(begin, w.facts[0].start)
	}
	err := w.lines(begin, w.size, func(l jsonscan.Line) bool {
		if known := len(w.facts) > 0 && w.facts[0].start == l.From; known || l.From >= boundary {
			w.cut(span{w.pos, l.From}, nil, "")
			w.parse(l)
			if known {
				w.line(&w.facts[0])
				w.facts = w.facts[1:]
			}
			w.copyTo(l.To())
			w.answers(l)
		}
		return w.failed == nil
	})
	if err == nil {
		err = w.failed
	}
	if err == nil {
		err = w.flush()
	}
	m := &w.m
	m.OriginalBytes = w.size
	m.ImagesStripped += w.imagesIn
	m.LiveTokensBefore, m.LiveTokensAfter = w.before.tokens(), w.after.tokens()
	m.CallsRepaired = int64(len(w.l.added))
	return err
}

// line writes one line of which a fact is known.
func (w *writer) line(f *fact) {
	h := &w.h
	if f.flags&isKept != 0 {
		w.m.LinesPreserved++
	}
	e := edit{w: w, h: h, items: f.items, message: h.flags&isMessage != 0, main: h.flags&isSide == 0}
	if e.message {
		e.ch = w.l.chainOf(f)
		if f.goes {
			w.m.LinesEmptied++
		}
		if e.main {
			w.before.chars += h.chars
		}
	}
	if f.goes {
		h.each(w.ops, e.skip)
		w.cut(span{h.start, h.end()}, nil, "")
		return
	}
	if e.message && e.main {
		w.after.chars += h.chars
	}
	h.each(w.ops, e.op)
	e.wholeUpTo(h.end())
}

// answers writes the results that nobody recorded, of calls in the line that was just written.
func (w *writer) answers(l jsonscan.Line) {
	for len(w.added) > 0 && w.added[0].at <= l.To() {
		w.cut(span{l.To(), l.To()}, w.answer(w.added[0], l), "")
		w.added = w.added[1:]
	}
}

// copyTo writes the line up to a place as it stands.
func (w *writer) copyTo(to int64) {
	if w.pos < to {
		w.put(w.raw(span{w.pos, to}))
		w.pos = to
	}
}

// cut writes put instead of a span of the log, which is nothing when neither is there.
func (w *writer) cut(s span, put []byte, handle string) {
	if s.size() == 0 && len(put) == 0 {
		return
	}
	w.copyTo(s.from)
	if w.cuts != nil && w.failed == nil {
		if err := w.cuts.Cut(Cut{From: s.from, To: s.to, Put: int64(len(put)), Handle: handle}); err != nil {
			w.failed = fmt.Errorf("keep the cut at byte %d: %w", s.from, err)
		}
	}
	w.put(put)
	w.pos = s.to
}

func (w *writer) put(b []byte) {
	w.m.TrimmedBytes += int64(len(b))
	if _, err := w.out.Write(b); err != nil && w.failed == nil {
		w.failed = fmt.Errorf("write the trimmed log: %w", err)
	}
}

func (w *writer) flush() error {
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write the trimmed log: %w", err)
	}
	return nil
}

// at reads a name that stands elsewhere in the log.
func (w *writer) at(s span) []byte {
	b := make([]byte, s.size())
	if n, err := w.in.ReadAt(b, s.from); n < len(b) && w.failed == nil {
		w.failed = fmt.Errorf("read log at byte %d: %w", s.from, noEOF(err))
	}
	return b
}

// edit makes the cuts in one line.
type edit struct {
	w       *writer
	h       *head
	ch      *chain
	items   []item // what was decided about its elements that are still to come
	message bool   // its blocks are ruled
	main    bool   // it weighs
	whole   bool   // the copies were replaced

	stays   bool   // an element before stays
	pending int64  // where elements that go begin, of which none before stays; 0 for none
	gone    int64  // where the last element that goes ends
	result  uint64 // the call of the result at hand
}

// skip is told the ops of a line that goes.
func (e *edit) skip(o *op) {
	switch o.kind {
	case opThink:
		e.w.m.SignaturesStripped++
	case opResult:
		e.w.m.OrphansRemoved++
	case opCall, opEmpty:
	default:
		return
	}
	if e.main {
		e.w.before.chars += o.chars
	}
}

// decided returns what was decided about the present element.
func (e *edit) decided() bool {
	it := e.items[0]
	e.items = e.items[1:]
	return it.stays || !e.message
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
		e.decided()
		e.keep(o.from)
	case opThink:
		if !e.element(o, e.decided()) {
			w.m.SignaturesStripped++
		}
	case opEmpty:
		e.element(o, e.decided())
	case opResult:
		e.result = o.hash
		if !e.element(o, e.decided()) {
			w.m.OrphansRemoved++
		}
	case opCall:
		if e.element(o, e.decided()) && e.ch != nil {
			w.labels.put(e.ch.mix(o.hash), o.label)
		}
	case opStub:
		if o.from >= e.gone {
			e.stub(o)
		}
	}
}

// keep is told where an element begins that stays.
func (e *edit) keep(at int64) {
	if e.pending > 0 {
		e.w.cut(span{e.pending, at}, nil, "")
		e.pending = 0
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
	case e.pending == 0:
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
	o := op{form: formCopy, span: h.whole, n: h.whole.size()}
	e.w.replace(&o, nil)
}

// stub puts a note in the place of a span.
func (e *edit) stub(o *op) {
	w := e.w
	var label []byte
	pictures := o.many
	switch o.form {
	case formResult, formList:
		w.m.ToolResultsStubbed++
		if e.ch != nil {
			if label = w.labels.get(e.ch.mix(e.result)); label == nil {
				label = w.labels.get(mix(^e.ch.key, e.result)) // of a call that the compaction kept
			}
		}
	case formImage, formDocument:
		w.m.ImagesStripped++
		pictures = 1
	}
	if e.main {
		w.before.images += pictures
	}
	put := w.replace(o, label)
	if e.message && e.main && o.form != formCopy {
		w.after.chars += int64(put) - o.chars
	}
}

// labels say what the latest calls were. A result stands in the message behind its call, so older ones are forgotten.
type labels struct{ now, before map[uint64][]byte }

const maxLabels = 1000 // in each of the two maps

func (l *labels) put(call uint64, label []byte) {
	if l.now == nil || len(l.now) >= maxLabels {
		l.now, l.before = map[uint64][]byte{}, l.now
	}
	l.now[call] = label
}

func (l *labels) get(call uint64) []byte {
	if label, ok := l.now[call]; ok {
		return label
	}
	return l.before[call]
}

// Below shortNote characters of the original a note says its size and handle only, lest it grow.
const shortNote = 200

// replace writes a note in the place of a span and returns its length. A copy gets no handle: nobody reads its note but a
// person who looks at the screen, and hashing copies would take as long as all else.
func (w *writer) replace(o *op, label []byte) int {
	var sum handle
	var said string
	long, named := o.n >= shortNote || o.form.picture(), o.form != formCopy
	if o.form.picture() {
		var ok bool
		if said, sum, ok = w.describe(o.pictures[0]); ok {
			said += ", sha256"
		} else { // what is no base64 has the handle of the block
			said, sum = said+", handle", handleOf(w.raw(o.span))
		}
	} else if named && (w.cuts != nil || w.how != "" || !long) {
		sum = handleOf(w.raw(o.span))
	}
	open, end := `"`, `]"`
	var b []byte
	switch o.form {
	case formImage, formDocument:
		what := "Image"
		if o.form == formDocument {
			what = "Document"
		}
		open, end = `{"type":"text","text":"`, `]"}`
		b = fmt.Appendf(b, "%s[%s removed: %s %x", open, what, said, sum)
	case formList:
		open, end = `[{"type":"text","text":"`, `]"}]`
		fallthrough
	default:
		b = fmt.Appendf(b, "%s[Trimmed: ~%d chars%s", open, o.n, w.picturesNote(o))
	}
	if long && len(label) > 0 {
		b = appendText(append(b, "; "...), label)
	}
	if long && w.how != "" && named {
		b = fmt.Appendf(appendText(append(b, "; "...), []byte(w.how)), " %x", sum)
	} else if !long && named {
		b = fmt.Appendf(b, "; %x", sum)
	}
	b = append(b, end...)
	name := ""
	if w.cuts != nil && named {
		name = hex.EncodeToString(sum[:])
	}
	w.cut(o.span, b, name)
	return len(b)
}

// link makes a field name a line that is there.
func (e *edit) link(o *op) {
	w := e.w
	if heir := w.heirs[o.hash]; heir != nil && o.link == linkParent {
		// Who walks from line to line must meet the result.
		w.m.LinesRelinked++
		w.cut(o.span, heir, "")
		return
	}
	if o.hash != 0 && (w.l.kept[o.hash] || w.made[o.hash]) {
		return
	}
	which := o.link
	hash, name := w.l.ancestor(o.hash)
	found := hash != 0 && hash != e.h.uuid && name.size() <= maxText
	if which == linkLeaf && !found {
		return // a title may be of another session, and without a leaf it would be taken for a boundary
	}
	to := []byte("null")
	if heir := w.heirs[hash]; found && heir != nil && which == linkParent {
		to = heir
	} else if found {
		to = w.at(name)
	}
	if which == linkParent {
		w.m.LinesRelinked++
	}
	w.cut(o.span, to, "")
}
