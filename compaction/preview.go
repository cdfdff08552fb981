package compaction

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

// previewTokens bounds the preview in a pointer. Elsewhere there may be room for more.
const previewTokens tidemark.Tokens = 60

// Lines of a preview by kind (reference/total-recall, artifacts).
const (
	tailLines = 10
	jsonLines = 7
	csvLines  = 3 // the header and two rows
)

// Bounds of what is looked at, so that the price of a preview does not grow with the text.
const (
	pointerSniff = 1 << 10 // of each pointer: several are made while a turn waits
	minLine      = 40      // characters that a line may have at least, when all of them are cut
)

// preview shows a text within some tokens by what suits its content: the first lines of JSON, the header
// and two rows of CSV, and the last lines of anything else. Lines too long are cut, and blank ones left out.
// It reads so many bytes at either end, whatever the length of the text, and believes nothing that it says.
func preview(text string, most tidemark.Tokens, sniff int) string {
	chars := max(int(most)*10/3, 0)
	if lines, ok := jsonHead(text, max(chars/3, minLine), sniff); ok {
		return fitLines(lines, chars, false)
	}
	if lines, ok := csvHead(text, sniff); ok {
		return fitLines(lines, chars, false)
	}
	return fitLines(lastLines(text, sniff), chars, true)
}

// fitLines joins lines within some characters. Long lines are cut first; then lines go from the end, or from
// the beginning when the last ones matter.
func fitLines(lines []string, chars int, last bool) string {
	width := max(chars/3, minLine)
	var out []string
	for _, l := range lines {
		if l = clean(l); l != "" {
			out = append(out, l)
		}
	}
	if len(out) == 1 {
		width = chars
	}
	for i, l := range out {
		out[i] = cutLine(l, width)
	}
	if last {
		slices.Reverse(out)
	}
	left, n := chars, 0
	for _, l := range out {
		if left -= tidemark.UTF16Len(l) + 1; left < 0 {
			break
		}
		n++
	}
	if n == 0 && len(out) > 0 && chars > 1 {
		out[0], n = cutLine(out[0], chars-1), 1
	}
	out = out[:n]
	if last {
		slices.Reverse(out)
	}
	return strings.Join(out, "\n")
}

// clean makes a line fit to be shown: what a terminal would have left of it, without control characters.
func clean(l string) string {
	l = strings.TrimRight(l, "\r \t")
	if i := strings.LastIndexByte(l, '\r'); i >= 0 { // a bar of progress draws over itself
		l = l[i+1:]
	}
	l = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r == utf8.RuneError:
			return -1
		}
		return r
	}, l)
	if strings.TrimSpace(l) == "" {
		return ""
	}
	return l
}

// cutLine cuts a line to a number of UTF-16 units, with a mark.
func cutLine(l string, units int) string {
	if len(l) <= units || tidemark.UTF16Len(l) <= units {
		return l
	}
	n := 0
	for i, r := range l {
		if n++; r > 0xffff {
			n++
		}
		if n > max(units-1, 0) {
			return l[:i] + "…"
		}
	}
	return l
}

// lastLines returns the last lines of a text that are not blank.
func lastLines(text string, sniff int) []string {
	if len(text) > sniff {
		text = text[len(text)-sniff:]
		if _, rest, ok := strings.Cut(text, "\n"); ok && strings.TrimSpace(rest) != "" {
			text = rest // the first line is only the end of one
		}
	}
	var lines []string
	for len(lines) < tailLines && text != "" {
		i := strings.LastIndexByte(text, '\n')
		if l := text[i+1:]; strings.TrimSpace(l) != "" {
			lines = append(lines, l)
		}
		text = text[:max(i, 0)]
	}
	slices.Reverse(lines)
	return lines
}

// csvHead returns the header and the first rows of a table: the same character parts as many fields in each
// of the first records, and the header has names.
func csvHead(text string, sniff int) ([]string, bool) {
	head := text[:min(len(text), sniff)]
	if strings.Count(head, "\n") < csvLines-1 {
		return nil, false
	}
	for _, sep := range []byte{',', '\t', ';', '|'} {
		if strings.IndexByte(head, sep) < 0 { // most texts are no table: that is soon seen
			continue
		}
		records, fields := csvRecords(head, len(text) <= sniff, sep)
		if len(records) < csvLines || fields < 2 || !named(records[0], sep) {
			continue
		}
		return records[:csvLines], true
	}
	return nil, false
}

// csvRecords returns the first records of the head of a text, or of the whole of it, and how many fields each
// of them has: 0 when they differ.
func csvRecords(head string, whole bool, sep byte) (records []string, fields int) {
	const most = 10
	from, n, quoted := 0, 1, false
	end := func(to int) {
		if r := strings.TrimRight(head[from:to], "\r"); strings.TrimSpace(r) != "" {
			if len(records) > 0 && n != fields {
				fields = -1
			} else {
				fields = n
			}
			records = append(records, r)
		}
		from, n = to+1, 1
	}
	for i := 0; i < len(head) && len(records) < most && fields >= 0; i++ {
		switch c := head[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == sep:
			n++
		case c == '\n':
			end(i)
		}
	}
	if whole && !quoted && from < len(head) && len(records) < most {
		end(len(head))
	}
	return records, max(fields, 0)
}

// named reports a header: each field is short, begins with a letter and is not a sentence, and no two are
// the same.
func named(record string, sep byte) bool {
	seen := map[string]bool{}
	for f := range strings.SplitSeq(record, string(sep)) {
		f = strings.Trim(strings.TrimSpace(strings.TrimPrefix(f, "\ufeff")), `"`)
		if f == "" || len(f) > 40 || seen[f] {
			return false
		}
		seen[f] = true
		if c := f[0]; c < 'A' || c > 'Z' && c < 'a' && c != '_' || c > 'z' && c < utf8.RuneSelf {
			return false
		}
		if strings.ContainsAny(f, "=<>{}[]\\'`;,:!?*") || strings.HasSuffix(f, ".") || strings.Count(f, " ") > 3 {
			return false
		}
	}
	return true
}
