package trim

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/place"
)

// The first pass writes down of every line what the second needs to know and what may be cut, as a plan: so the log
// is parsed once, and each decision waits until all that it depends on is known.

// span is a piece of the log.
type span struct{ from, to int64 }

func (s span) size() int64 { return s.to - s.from }

type opKind byte

const (
	opEnd    opKind = iota // of the line
	opCut                  // the span goes, whatever else
	opLink                 // a string that names a line
	opOpen                 // what follows holds only for lines where a part counts
	opClose                //
	opKept                 // elements of the content begin that stay
	opThink                // an element: thinking
	opEmpty                // an element: an empty text
	opResult               // an element: the result of a call
	opCall                 // an element: a call
	opStub                 // the span is replaced
)

// part is a part of a line, of which not every one counts in every line.
type part byte

const (
	partCopy part = iota + 1 // a copy of a result
	partData                 // what a line of progress carries
	partList                 // the first list of content; further ones have greater numbers
)

// link says which field names a line.
type link byte

const (
	linkParent link = iota + 1
	linkLogical
	linkSource
	linkLeaf
)

// form is what stands in the place of a span.
type form byte

const (
	formResult form = iota + 1 // a string
	formList                   // a list of one text
	formInput                  // a string
	formCopy                   // a string
	formImage                  // a block of text
	formDocument
)

// op is one entry of a plan.
type op struct {
	kind opKind
	what byte // part, link or form
	span
	prev   int64 // elements: where the element before ends
	hash   uint64
	chars  int64   // what it weighs in the conversation
	n      int64   // stubs: what they say of the size
	handle [6]byte // stubs
	id     span    // calls: the id as it stands
	extra  []byte  // stubs: what is said of pictures; calls: what they are called
}

// maxOp bounds an encoded op.
const maxOp = 512

func appendOp(b []byte, o op, last *int64) []byte {
	b = append(b, byte(o.kind))
	num := func(v int64) { b = binary.AppendUvarint(b, uint64(v)) }
	place := func() {
		num(o.from - *last)
		num(o.size())
		*last = o.from
	}
	switch o.kind {
	case opOpen:
		b = append(b, o.what)
	case opCut:
		place()
	case opKept:
		o.to = o.from
		place()
	case opLink:
		b = append(b, o.what)
		place()
		b = binary.LittleEndian.AppendUint64(b, o.hash)
	case opThink, opEmpty, opResult, opCall:
		place()
		num(o.from - o.prev)
		num(o.chars)
		b = binary.LittleEndian.AppendUint64(b, o.hash)
		if o.kind == opCall {
			num(o.id.from - o.from)
			num(o.id.size())
			num(int64(len(o.extra)))
			b = append(b, o.extra...)
		}
	case opStub:
		b = append(b, o.what)
		place()
		num(o.n)
		num(o.chars)
		b = append(b, o.handle[:]...)
		num(int64(len(o.extra)))
		b = append(b, o.extra...)
	}
	return b
}

// decoder reads what was written to a blob, in order.
type decoder struct {
	b []byte
	i int

	more func([]byte) []byte
	last int64
	room [2][]byte
	now  op
}

// need makes a whole op stand in memory.
func (d *decoder) need() {
	if d.more != nil && len(d.b)-d.i < maxOp {
		d.b = d.more(d.b[d.i:])
		d.i = 0
	}
}

func (d *decoder) done() bool {
	d.need()
	return d.i >= len(d.b)
}

func (d *decoder) num() int64 {
	v, n := binary.Uvarint(d.b[d.i:])
	d.i += max(n, 0)
	return int64(v)
}

func (d *decoder) byte() byte {
	if d.i >= len(d.b) {
		return 0
	}
	d.i++
	return d.b[d.i-1]
}

func (d *decoder) hash() uint64 {
	if d.i+8 > len(d.b) {
		return 0
	}
	d.i += 8
	return binary.LittleEndian.Uint64(d.b[d.i-8:])
}

func (d *decoder) bytes(n int64) []byte {
	n = min(n, int64(len(d.b)-d.i))
	d.i += int(n)
	return d.b[d.i-int(n) : d.i]
}

func (d *decoder) place(o *op) {
	o.from = d.last + d.num()
	o.to = o.from + d.num()
	d.last = o.from
}

// op reads one op; its extra bytes hold until the next.
func (d *decoder) op(o *op) {
	d.need()
	o.kind = opKind(d.byte())
	switch o.kind {
	case opOpen:
		o.what = d.byte()
	case opCut, opKept:
		d.place(o)
	case opLink:
		o.what = d.byte()
		d.place(o)
		o.hash = d.hash()
	case opThink, opEmpty, opResult, opCall:
		d.place(o)
		o.prev = o.from - d.num()
		o.chars = d.num()
		o.hash = d.hash()
		if o.kind == opCall {
			o.id.from = o.from + d.num()
			o.id.to = o.id.from + d.num()
			o.extra = d.bytes(d.num())
		}
	case opStub:
		o.what = d.byte()
		d.place(o)
		o.n, o.chars = d.num(), d.num()
		copy(o.handle[:], d.bytes(6))
		o.extra = d.bytes(d.num())
	}
}

type flags uint16

const (
	isHistory   flags = 1 << iota // a line of bookkeeping that goes
	isQueue                       //
	isMessage                     //
	isAssistant                   //
	isSide                        // of a side chain
	isMeta                        // written by the tool
	isProgress                    //
	isPinned                      // a compaction names it: it stays, whatever is left of it
	hasString                     // its content is a string
	hasOps                        //
	hasWhole                      // its copies are replaced as a whole
)

// head is what the plan says of a line.
type head struct {
	flags
	list            part // the content, when it is a list
	start, size     int64
	uuid, id, agent uint64
	chars           int64 // of what stays in the conversation in any case, and is no element
	whole           span  // the copies, when they are replaced as a whole
}

func (h *head) end() int64 { return h.start + h.size }

func appendHead(b []byte, h *head, last *int64) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(h.flags))
	b = append(b, byte(h.list))
	b = binary.AppendUvarint(b, uint64(h.start-*last))
	b = binary.AppendUvarint(b, uint64(h.size))
	*last = h.start
	b = binary.LittleEndian.AppendUint64(b, h.uuid)
	if h.flags&isMessage != 0 {
		b = binary.LittleEndian.AppendUint64(b, h.id)
		b = binary.AppendUvarint(b, uint64(h.chars))
	}
	if h.flags&isSide != 0 {
		b = binary.LittleEndian.AppendUint64(b, h.agent)
	}
	if h.flags&hasWhole != 0 {
		b = binary.AppendUvarint(b, uint64(h.whole.from-h.start))
		b = binary.AppendUvarint(b, uint64(h.whole.size()))
	}
	return b
}

func (d *decoder) head(h *head) {
	*h = head{flags: flags(d.byte()) | flags(d.byte())<<8, list: part(d.byte())}
	h.start = d.last + d.num()
	h.size = d.num()
	d.last = h.start
	h.uuid = d.hash()
	if h.flags&isMessage != 0 {
		h.id, h.chars = d.hash(), d.num()
	}
	if h.flags&isSide != 0 {
		h.agent = d.hash()
	}
	if h.flags&hasWhole != 0 {
		h.whole.from = h.start + d.num()
		h.whole.to = h.whole.from + d.num()
	}
}

// spill is a temporary file that takes what does not fit into memory. Several may write.
type spill struct {
	sizes
	dir  string
	used atomic.Int64 // bytes of plans that are in memory
	mu   sync.Mutex   // guards following 3 fields
	file *os.File
	drop func()
	end  int64
}

const (
	maxPlan   = 64 << 30 // of plans in all
	blobPiece = 64 << 10
)

func (s *spill) put(b []byte) (span, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		f, drop, err := place.Temp(s.dir, "tidemark-trim-*")
		if err != nil {
			return span{}, fmt.Errorf("keep the plan of a trim: %w", err)
		}
		s.file, s.drop = f, drop
	}
	at := span{s.end, s.end + int64(len(b))}
	if at.to > maxPlan {
		return span{}, fmt.Errorf("keep the plan of a trim: more than %d bytes: %w", int64(maxPlan), tidemark.ErrTooLarge)
	}
	if _, err := s.file.WriteAt(b, at.from); err != nil {
		return span{}, fmt.Errorf("keep the plan of a trim: %w", err)
	}
	s.end = at.to
	return at, nil
}

func (s *spill) close() {
	if s.file != nil {
		s.drop()
	}
}

// blob is a part of a plan: in memory, or pieces of the temporary file.
type blob struct {
	mem    []byte
	pieces []span
}

// keep takes over b, by a copy.
func (s *spill) keep(b []byte) (blob, error) {
	if len(b) == 0 {
		return blob{}, nil
	}
	if s.used.Add(int64(len(b))) <= s.sizes.held {
		return blob{mem: append([]byte(nil), b...)}, nil
	}
	s.used.Add(-int64(len(b)))
	at, err := s.put(b)
	return blob{pieces: []span{at}}, err
}

// decode makes d read a blob, with the memory that it has from the one before; an error of the temporary file is left
// in *failed.
func (s *spill) decode(d *decoder, b blob, last int64, failed *error) {
	d.b, d.i, d.last, d.more = b.mem, 0, last, nil
	if len(b.pieces) == 0 {
		return
	}
	rest := slices.Clone(b.pieces)
	d.more = func(left []byte) []byte {
		d.room[0], d.room[1] = d.room[1], d.room[0] // left is in the other
		buf := append(d.room[0][:0], left...)
		for len(rest) > 0 && len(buf) < maxOp {
			n := min(rest[0].size(), blobPiece)
			from := len(buf)
			buf = slices.Grow(buf, int(n))[:from+int(n)]
			if _, err := s.file.ReadAt(buf[from:], rest[0].from); err != nil && *failed == nil {
				*failed = fmt.Errorf("read the plan of a trim: %w", err)
			}
			if rest[0].from += n; rest[0].size() == 0 {
				rest = rest[1:]
			}
		}
		d.room[0] = buf
		return buf
	}
}
