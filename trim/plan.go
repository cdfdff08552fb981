package trim

// A line is parsed twice: first for what the decisions depend on, which are about the whole live part, and once they are
// made for the cuts in it. Both times it gives the same ops.

// span is a piece of the log.
type span struct{ from, to int64 }

func (s span) size() int64 { return s.to - s.from }

type opKind byte

const (
	opCut    opKind = iota // the span goes, whatever else
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

// picture reports a form that stands for an image or a document alone.
func (f form) picture() bool { return f == formImage || f == formDocument }

// op is what may be done in one place of a line.
type op struct {
	kind opKind
	part part
	link link
	form form
	span
	prev     int64  // elements: where the element before ends
	hash     uint64 // of what is named
	chars    int64  // what it weighs in the conversation
	n        int64  // stubs: what they say of the size
	id       span   // calls: the id as it stands
	label    []byte // calls: what they are called
	pictures []picture
	files    int64 // bytes of the pictures, also of those that are not listed
	many     int64 // pictures, also those that are not listed
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
	isKept                        // it stands before the boundary, and a compaction kept it
	isPinned                      // a compaction names it: it stays, whatever is left of it
	hasString                     // its content is a string
	hasWhole                      // its copies are replaced as a whole
)

// head is what is known of a line when all of it was read.
type head struct {
	flags
	list            part // the content, when it is a list
	start, size     int64
	uuid, id, agent uint64
	chars           int64 // of what stays in the conversation in any case, and is no element
	whole           span  // the copies, when they are replaced as a whole
}

func (h *head) end() int64 { return h.start + h.size }

// counts reports whether a part of the line counts.
func (h *head) counts(p part) bool {
	switch p {
	case partCopy:
		return h.flags&(hasWhole|isProgress) != hasWhole
	case partData:
		return h.flags&(hasWhole|isProgress) == isProgress
	}
	return p == h.list
}

// each calls visit for the ops of a line that count in it.
func (h *head) each(ops []op, visit func(o *op)) {
	skip := false
	for i := range ops {
		switch o := &ops[i]; {
		case o.kind == opOpen:
			skip = !h.counts(o.part)
		case o.kind == opClose:
			skip = false
		case !skip:
			visit(o)
		}
	}
}

// fact is what the decisions need to know of a line, and what is decided.
type fact struct {
	flags
	start, end      int64
	uuid, id, agent uint64
	up              parent // the line before
	items           []item
	goes            bool
}

// item is an element of the content that may go, or the beginning of some that stay.
type item struct {
	kind  opKind
	stays bool
	hash  uint64
	id    span // of a call
}

// parent is what a line says of the line before it.
type parent struct {
	hash uint64
	name span
}

// factOf keeps of a line what the decisions need; false where that is nothing.
func factOf(h *head, ops []op) (f fact, ok bool) {
	f = fact{flags: h.flags, start: h.start, end: h.end(), uuid: h.uuid, id: h.id, agent: h.agent}
	h.each(ops, func(o *op) {
		switch o.kind {
		case opLink:
			if o.link == linkParent {
				f.up = parent{o.hash, o.span}
			}
		case opKept, opThink, opEmpty, opResult, opCall:
			f.items = append(f.items, item{kind: o.kind, hash: o.hash, id: o.id})
		}
	})
	return f, h.flags != 0 || h.uuid != 0 || len(ops) > 0
}
