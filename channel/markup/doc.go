package markup

import (
	"sort"
	"strings"
)

// style is a set of what a run looks like.
type style uint8

// Styles, the outermost first when they are nested.
const (
	quote style = 1 << iota
	link
	bold
	italic
	strike
	code // within a line
	fence
)

// inner are the styles that cannot stand with code: no platform takes them together.
const inner = bold | italic | strike

// run is a stretch of a doc's text in one style.
type run struct {
	from, to int // bytes
	style    style
	arg      string // address of a link, language of a fence
}

// doc is a plain text and its styled runs, in order, without overlap. What no run covers is plain.
type doc struct {
	text string
	runs []run
}

// builder makes a doc.
type builder struct {
	text strings.Builder
	runs []run
	base style // of everything added: a quote
}

// add appends a text in one style.
func (b *builder) add(s string, st style, arg string) {
	st |= b.base
	if st&(code|fence) != 0 {
		st &^= inner
	}
	from := b.text.Len()
	b.text.WriteString(s)
	if s == "" || st == 0 {
		return
	}
	if n := len(b.runs); n > 0 {
		if last := &b.runs[n-1]; last.to == from && last.style == st && last.arg == arg {
			last.to += len(s)
			return
		}
	}
	b.runs = append(b.runs, run{from, from + len(s), st, arg})
}

// each calls f for the stretches of [from, to), plain ones included.
func (d doc) each(from, to int, f func(r run)) {
	i := sort.Search(len(d.runs), func(i int) bool { return d.runs[i].to > from })
	for from < to {
		r := run{from: from, to: to}
		if i < len(d.runs) {
			switch next := d.runs[i]; {
			case next.from <= from:
				r.style, r.arg, r.to = next.style, next.arg, min(to, next.to)
				i++
			default:
				r.to = min(to, next.from)
			}
		}
		f(r)
		from = r.to
	}
}

// at returns the style of the byte at i.
func (d doc) at(i int) style {
	n := sort.Search(len(d.runs), func(n int) bool { return d.runs[n].to > i })
	if n < len(d.runs) && d.runs[n].from <= i {
		return d.runs[n].style
	}
	return 0
}

// blank reports whether the byte at i is white space that a cut may drop: none of a code fence is.
func (d doc) blank(i int) bool {
	c := d.text[i]
	return (c == ' ' || c == '\n' || c == '\t') && d.at(i)&fence == 0
}

// trim takes white space off both ends of a stretch, but none of a code fence.
func (d doc) trim(from, to int) (int, int) {
	for from < to && d.blank(from) {
		from++
	}
	for from < to && d.blank(to-1) {
		to--
	}
	return from, to
}
