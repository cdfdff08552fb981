package cleanup

// maxIndent is how far a block, a fence and a quotation may stand from the margin; text further right
// is code (https://spec.commonmark.org/0.31.2/#indented-code-blocks).
const maxIndent = 3

// page reads visible text as Markdown, just far enough to say whether the next line is quoted. Where
// readings differ, it says quoted: a block that is shown does no harm, one carried out may.
type page struct {
	inLine bool // the present line has bytes
	cr     bool // the byte before was a carriage return
	row    row

	fence  fence
	inline inline
	html   html
	quote  bool // a block quotation began and no empty line came since
	doubt  bool // a fence has several readings: nothing is free any more
}

// fence is an open code fence (https://spec.commonmark.org/0.31.2/#fenced-code-blocks).
type fence struct {
	mark   byte // ` or ~; 0: none is open
	run    int
	col    int
	item   bool // it stands behind the marker of a list item: col is where the item's text begins
	unsure bool // it may be a fence of a list item or indented code
}

// row is the present line.
type row struct {
	at     spot
	col    int  // columns so far, while only blanks and markers came
	gap    int  // columns of blanks since the last marker
	indent int  // of the first byte that is no blank; -1: none came
	item   bool // a list marker came
	far    bool // blanks came as of indented code, before or behind a marker
	mark   byte // of a run of ` or ~ at its start
	run    int
	runCol int
	info   bool // something stands behind the run
	tick   bool // a ` stands behind the run
	ticks  bool // a ` stands anywhere
	before inline
}

// spot says what the next byte of a line may be.
type spot uint8

const (
	front  spot = iota // a blank, a marker, a run, text
	digits             // more of a number, or what makes it a marker
	marker             // the blank behind a marker
	run                // more of a run
	info               // what stands behind a run
	text
)

// inline is a code span that may be open (https://spec.commonmark.org/0.31.2/#code-spans).
type inline struct {
	open   int  // length of the run that opened it; 0: none
	run    int  // length of the run of ` that is being read
	escape bool // a backslash came before
}

// free says whether a line begins here, and a block may begin in it.
func (p *page) free() bool {
	return !p.inLine && p.fence.mark == 0 && p.inline.open == 0 && !p.quote && !p.doubt && p.html.open == 0
}

// step takes one byte of visible text.
func (p *page) step(b byte) {
	cr := p.cr
	p.cr = b == '\r'
	switch {
	case b == '\n' && cr:
	case b == '\n' || b == '\r':
		p.endRow()
	default:
		if !p.inLine {
			p.inLine = true
			p.row = row{indent: -1, before: p.inline}
		}
		p.stepRow(b)
		if p.fence.mark == 0 {
			p.inline.step(b)
			p.html.step(b, p.inline.open == 0 && p.inline.run == 0)
		}
	}
}

// stepRow takes one byte of a line.
func (p *page) stepRow(b byte) {
	r := &p.row
	r.ticks = r.ticks || b == '`'
	blank := b == ' ' || b == '\t'
	if !blank && r.indent < 0 {
		r.indent = r.col
	}
	switch r.at {
	case front:
		p.stepFront(b, blank)
	case digits:
		switch {
		case b >= '0' && b <= '9':
			r.col++
		case b == '.' || b == ')':
			r.col++
			r.at = marker
		default:
			r.at = text
		}
	case marker:
		if r.at = text; blank {
			r.item, r.gap, r.at = true, 0, front
			r.blank(b)
		}
	case run:
		if b == r.mark {
			r.run++
			return
		}
		r.at = info
		fallthrough
	case info:
		r.info = r.info || !blank
		r.tick = r.tick || b == '`'
	}
}

// stepFront takes a byte before which only blanks and markers of lists came.
func (p *page) stepFront(b byte, blank bool) {
	r := &p.row
	if blank {
		r.blank(b)
		return
	}
	bound := maxIndent
	if r.item {
		bound++ // one blank parts the marker from its text
	}
	r.far = r.far || r.gap > bound
	switch {
	case b == '`' || b == '~':
		r.at, r.mark, r.run, r.runCol = run, b, 1, r.col
	case b == '-' || b == '+' || b == '*':
		r.col++
		r.at = marker
	case b >= '0' && b <= '9':
		r.col++
		r.at = digits
	case b == '>':
		p.quote = p.quote || p.fence.mark == 0 || p.fence.unsure
		r.at = text
	default:
		r.at = text
	}
}

// blank counts a blank at the start of a line; a tab goes to the next fourth column.
func (r *row) blank(b byte) {
	n := 1
	if b == '\t' {
		n = 4 - r.col%4
	}
	r.col += n
	r.gap += n
}

// fenced says whether the line may begin or end a fence.
func (r *row) fenced() bool { return r.run >= 3 && (r.mark == '~' || !r.tick) }

// endRow takes the break of a line.
func (p *page) endRow() {
	r := &p.row
	p.inline.end()
	switch {
	case !p.inLine || r.indent < 0:
		p.inline, p.quote = inline{}, false
	case p.fence.mark != 0:
		p.endFence()
	case r.fenced():
		p.fence = fence{mark: r.mark, run: r.run, col: r.runCol, item: r.item, unsure: r.far}
		p.inline = inline{}
		// A span may have been open all the same, if this is no fence.
		p.doubt = p.doubt || r.far && r.before.open != 0
	}
	p.inLine = false
}

// endFence takes the break of a line in a fence: the line may close it, and may show that it is
// another than it seemed.
func (p *page) endFence() {
	r, f := &p.row, p.fence
	closer := r.mark == f.mark && r.run >= f.run && !r.info && !r.item
	switch {
	case r.indent < f.col:
		// Here ends the list item that the fence was in, if it was in one.
		p.doubt = true
	case f.unsure:
		if closer && r.indent == f.col {
			p.fence = fence{}
		} else if r.ticks || r.fenced() {
			p.doubt = true
		}
	case !closer:
	case f.item && r.indent <= f.col+maxIndent, r.indent <= maxIndent:
		p.fence = fence{}
	case !f.item && r.indent <= f.col+maxIndent:
		p.doubt = true
	}
}

// step takes one byte of a line.
func (s *inline) step(b byte) {
	if b == '`' && (!s.escape || s.open != 0 || s.run > 0) {
		s.run++
		return
	}
	escaped := s.escape
	s.end()
	s.escape = b == '\\' && !escaped && s.open == 0
}

// end takes the end of a run of `.
func (s *inline) end() {
	switch {
	case s.run == 0:
	case s.open == 0:
		s.open = s.run
	case s.open == s.run:
		s.open = 0
	}
	s.run, s.escape = 0, false
}

// html is an element in which text is shown as it stands.
type html struct {
	open int     // index in verbatim, from 1; 0: none
	seen [8]byte // the last bytes, lower case
}

// verbatim are such elements, by how they begin and end.
var verbatim = [...]struct{ from, to string }{{"<pre", "</pre"}, {"<code", "</code"}, {"<!--", "-->"}}

// step takes one byte. Within code of Markdown nothing begins.
func (h *html) step(b byte, begins bool) {
	if b >= 'A' && b <= 'Z' {
		b += 'a' - 'A'
	}
	copy(h.seen[:], h.seen[1:])
	h.seen[len(h.seen)-1] = b
	if b != 'e' && b != '-' && b != '>' {
		return // none of them ends with it
	}
	for i, v := range verbatim {
		switch {
		case h.open == i+1 && h.ends(v.to):
			h.open = 0
		case h.open == 0 && begins && h.ends(v.from):
			h.open = i + 1
		}
	}
}

func (h *html) ends(s string) bool { return string(h.seen[len(h.seen)-len(s):]) == s }
