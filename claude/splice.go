package claude

import (
	"bytes"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// put puts bytes in the place of those between two places.
func put(from, to int, with []byte) jsonscan.Edit {
	return jsonscan.Edit{Span: jsonscan.Span{From: from, To: to}, With: with}
}

// parts are the members of an object or the elements of a list by their place: where each begins, its value, and
// whether a comma follows the last one.
type parts struct {
	starts   []int
	before   []hujson.Extra // what stands before each
	values   []*hujson.Value
	trailing bool
}

func partsOf(v *hujson.Value) parts {
	var p parts
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			p.starts, p.before = append(p.starts, c.Members[i].Name.StartOffset), append(p.before, c.Members[i].Name.BeforeExtra)
			p.values = append(p.values, &c.Members[i].Value)
		}
	case *hujson.Array:
		for i := range c.Elements {
			p.starts, p.before = append(p.starts, c.Elements[i].StartOffset), append(p.before, c.Elements[i].BeforeExtra)
			p.values = append(p.values, &c.Elements[i])
		}
	}
	if n := len(p.values); n > 0 {
		p.trailing = p.values[n-1].AfterExtra != nil
	}
	return p
}

// alone reports whether a list or an object has one item and no comment, beside the item or before itself.
func alone(raw []byte, at *hujson.Value) bool {
	p := partsOf(at)
	if len(p.values) != 1 || bytes.IndexByte(at.BeforeExtra, '/') >= 0 {
		return false
	}
	inside := func(c rune) bool { return c == ',' || c < utf8.RuneSelf && isSpace(byte(c)) }
	before, after := raw[at.StartOffset+1:p.starts[0]], raw[p.values[0].EndOffset:at.EndOffset-1]
	return len(bytes.TrimFunc(before, inside))+len(bytes.TrimFunc(after, inside)) == 0
}

// appendTo adds an item at the end of a list or an object, laid out as its neighbours are. lay gives the item: for an
// indentation, or on one line when the document is.
func appendTo(raw []byte, at *hujson.Value, lay func(indent string, lines bool) []byte) []jsonscan.Edit {
	p := partsOf(at)
	closing := at.EndOffset - 1
	from := closing
	for from > at.StartOffset+1 && isSpace(raw[from-1]) {
		from--
	}
	lines := bytes.IndexByte(raw[from:closing], '\n') >= 0
	outer := indentAt(raw, closing)
	inner := outer + indentUnit(raw)
	if n := len(p.starts); n > 0 && lines {
		inner = indentAt(raw, p.starts[n-1])
	}
	var text []byte
	switch {
	case lines || len(p.starts) == 0 && bytes.IndexByte(raw, '\n') >= 0:
		text = append([]byte("\n"+inner), lay(inner, true)...)
	case len(p.starts) > 0:
		text = append([]byte(" "), lay("", false)...)
	default:
		text = lay("", false)
	}
	if p.trailing {
		text = append(text, ',')
	}
	if len(p.starts) == 0 && !lines && bytes.IndexByte(raw, '\n') >= 0 {
		text = append(text, "\n"+outer...)
	}
	edits := []jsonscan.Edit{put(from, from, bytes.ReplaceAll(text, []byte("\n"), lineBreak(raw)))}
	if n := len(p.values); n > 0 && !p.trailing {
		end := p.values[n-1].EndOffset
		edits = []jsonscan.Edit{put(end, end, []byte(",")), edits[0]}
	}
	return edits
}

// removeFrom takes the i-th item out of a list or an object, with the comma that it needs no more and the space before
// it. Comments stay.
func removeFrom(raw []byte, at *hujson.Value, i int) []jsonscan.Edit {
	p := partsOf(at)
	v := p.values[i]
	from := p.starts[i]
	for from > at.StartOffset+1 && isSpace(raw[from-1]) {
		from--
	}
	if endsInLine(p.before[i]) { // the line break is the comment's
		from += bytes.IndexByte(raw[from:], '\n') + 1
	}
	edits := []jsonscan.Edit{put(from, v.EndOffset, nil)}
	switch comma := v.EndOffset + len(v.AfterExtra); {
	case i < len(p.values)-1 || p.trailing:
		if comma == v.EndOffset {
			return []jsonscan.Edit{put(from, comma+1, nil)}
		}
		edits = append(edits, put(comma, comma+1, nil))
	case i > 0:
		before := p.values[i-1]
		comma := before.EndOffset + len(before.AfterExtra)
		if comma+1 > from { // nothing stood between the comma and the item
			return []jsonscan.Edit{put(comma, v.EndOffset, nil)}
		}
		edits = []jsonscan.Edit{put(comma, comma+1, nil), edits[0]}
	}
	return edits
}

// endsInLine reports whether the last comment in a space is one that its line break ends.
func endsInLine(space []byte) bool {
	last := false
	for space = bytes.TrimLeft(space, " \t\r\n"); len(space) > 0; space = bytes.TrimLeft(space, " \t\r\n") {
		end := "*/"
		if last = bytes.HasPrefix(space, []byte("//")); last {
			end = "\n"
		}
		_, space, _ = bytes.Cut(space[2:], []byte(end))
	}
	return last
}

// lineBreak is how the first line of a document ends.
func lineBreak(raw []byte) []byte {
	if i := bytes.IndexByte(raw, '\n'); i > 0 && raw[i-1] == '\r' {
		return []byte("\r\n")
	}
	return []byte("\n")
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// indentAt is the white space that begins the line of a place.
func indentAt(raw []byte, at int) string {
	from := bytes.LastIndexByte(raw[:at], '\n') + 1
	to := from
	for to < len(raw) && (raw[to] == ' ' || raw[to] == '\t') {
		to++
	}
	return string(raw[from:to])
}

// indentUnit is the first indentation of a document, two spaces when it has none.
func indentUnit(raw []byte) string {
	for rest := raw; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return "  "
		}
		rest = rest[i+1:]
		if unit := indentAt(rest, 0); unit != "" && len(unit) < 9 {
			return unit
		}
	}
}
