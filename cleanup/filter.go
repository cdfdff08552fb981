package cleanup

import (
	"bytes"
	"strings"
)

// Filter takes the text of one answer piece by piece and parts it from its cleanup blocks. What comes
// out depends on the text alone, never on where it was cut. Held back is only what may begin a block,
// and a block that is not closed yet, of at most MaxBlock bytes. The zero value is ready.
type Filter struct {
	out  strings.Builder
	held []byte // what is not visible yet: blanks before a tag, a tag, a block
	ops  []Op
	page page // what the visible text is so far

	at     place
	blanks int  // blanks at the start of the line, or behind a block
	tag    int  // bytes of the opening tag that came
	after  bool // a block stood on this line, and nothing else so far
	gone   bool // the break of a line was a carriage return and went with its block

	open  int  // where in held the block begins
	line  int  // where in held its present line begins
	found []Op // operations of the open block
	dead  int  // bytes in which nothing is a block, because they begin like one and are none
	shut  int  // bytes of the closing tag that came, in such text
}

// place says what the next byte may be.
type place uint8

const (
	lead   place = iota // it may begin a block
	within              // it is of a block
	plain               // it is text
)

// maxTrail bounds the blanks that are waited with behind a block, and before an operation.
const maxTrail = 256

// Push takes the next piece and returns what of all so far is to be seen now and was not before.
func (f *Filter) Push(piece string) (visible string) {
	for i := range len(piece) {
		f.step(piece[i])
	}
	visible = f.out.String()
	f.out.Reset()
	return visible
}

// End returns the rest: what was held back and is no block. The filter takes no more afterwards.
func (f *Filter) End() (visible string) {
	if f.at == lead && f.after && f.tag == 0 {
		f.held = f.held[:0]
	}
	f.flush()
	visible = f.out.String()
	f.out.Reset()
	return visible
}

// Ops returns the operations of all blocks that are complete.
func (f *Filter) Ops() []Op { return f.ops }

// Held returns how many bytes are held back.
func (f *Filter) Held() int { return len(f.held) }

func (f *Filter) step(b byte) {
	gone := f.gone
	f.gone = false
	switch {
	case gone && b == '\n':
	case f.at == lead:
		f.stepLead(b)
	case f.at == within:
		f.stepWithin(b)
	default:
		f.show(b)
	}
}

// stepLead takes a byte at the start of a line.
func (f *Filter) stepLead(b byte) {
	switch {
	case f.tag > 0 && b == openTag[f.tag]:
		f.held = append(f.held, b)
		if f.tag++; f.tag == len(openTag) {
			f.at, f.open, f.line, f.found = within, len(f.held)-len(openTag), len(f.held), nil
		}
		return
	case f.tag > 0:
	case b == '<' && f.blanks <= maxIndent:
		f.held, f.tag = append(f.held, b), 1
		return
	case b == ' ' && f.blanks < maxIndent, f.after && (b == ' ' || b == '\t') && len(f.held) < maxTrail:
		f.held = append(f.held, b)
		if f.blanks++; b == '\t' {
			f.blanks += maxIndent
		}
		return
	case f.after && (b == '\n' || b == '\r'):
		f.held, f.gone = f.held[:0], b == '\r'
		f.begin()
		return
	}
	f.flush()
	f.step(b)
}

// stepWithin takes a byte of a block. A line that is no operation ends it at once: text is not held
// back for the sake of a tag that may never come.
func (f *Filter) stepWithin(b byte) {
	f.held = append(f.held, b)
	block := f.held[f.open:]
	var ok bool
	switch {
	case b == '>' && bytes.HasSuffix(f.held[f.line:], []byte(closeTag)):
		if ok = f.take(f.held[f.line:len(f.held)-len(closeTag)]) && len(f.ops)+len(f.found) <= MaxOps; ok {
			f.ops = append(f.ops, f.found...)
			f.held, f.at, f.tag, f.blanks, f.after = f.held[:f.open], lead, 0, 0, true
			return
		}
	case len(block) >= MaxBlock:
		ok = false
	case b == '\n' || b == '\r':
		ok = f.take(f.held[f.line:])
		f.line = len(f.held)
	default:
		ok = viable(f.held[f.line:])
	}
	if !ok {
		f.flush()
	}
}

// take reads one line of a block.
func (f *Filter) take(line []byte) bool {
	s := strings.Trim(string(line), blanks+"\n")
	if s == "" {
		return true
	}
	op, ok := parse(s)
	f.found = append(f.found, op)
	return ok
}

// viable says whether a line can still become one of a block.
func viable(line []byte) bool {
	text := bytes.TrimLeft(line, blanks)
	if len(line)-len(text) > maxTrail {
		return false
	}
	starts := func(v string) bool {
		n := min(len(v), len(text))
		return v[:n] == string(text[:n])
	}
	for _, v := range verbs {
		if starts(v) {
			return true
		}
	}
	return starts(closeTag)
}

// flush shows what is held back, as text. Of what began as a block nothing is one up to its closing
// tag, be there others within.
func (f *Filter) flush() {
	text, block := f.held, f.open
	if f.at != within {
		block = len(text)
	}
	f.held, f.found, f.at, f.after = nil, nil, plain, false
	for i, b := range text {
		if i == block {
			f.dead, f.shut = MaxBlock, 0
		}
		f.show(b)
	}
}

// show passes one byte on.
func (f *Filter) show(b byte) {
	f.out.WriteByte(b)
	if f.dead > 0 {
		f.bury(b)
	}
	f.page.step(b)
	if f.dead == 0 && f.page.free() {
		f.begin()
	}
}

// bury counts the text in which nothing is a block, and ends it behind the closing tag.
func (f *Filter) bury(b byte) {
	f.dead--
	switch b {
	case closeTag[f.shut]:
		f.shut++
	case closeTag[0]:
		f.shut = 1
	default:
		f.shut = 0
	}
	if f.shut == len(closeTag) {
		f.dead, f.shut = 0, 0
	}
}

// begin stands at the start of a line in which a block may begin.
func (f *Filter) begin() {
	f.at, f.blanks, f.tag, f.after = lead, 0, 0, false
}
