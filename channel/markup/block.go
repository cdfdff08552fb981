package markup

import "strings"

// dialect is how a platform wants what its markup has no style for.
type dialect struct {
	links bool // links are a style: the address is not part of the text
}

var (
	whatsApp = dialect{}
	telegram = dialect{links: true}
)

// maxAddress bounds the address of a styled link; a longer one stands in the text.
const maxAddress = 2048

// reader goes through the lines of a Markdown text.
type reader struct {
	builder
	dialect dialect
	lines   []string
	list    bool // the lines before belong to a list: an indent is no code
	quoted  bool // inside of a quote, whose quotes stay as they are
}

// read makes a doc of a Markdown text.
func read(markdown string, d dialect) doc {
	r := &reader{dialect: d, lines: strings.Split(clean(markdown), "\n")}
	r.blocks()
	return doc{text: r.text.String(), runs: r.runs}
}

// blocks reads all lines, block by block. Blocks are parted by the line ends that parted them.
func (r *reader) blocks() {
	first, empty := true, true
	for len(r.lines) > 0 {
		if !first {
			r.add("\n", 0, "")
		}
		line := r.lines[0]
		first = false
		switch {
		case strings.TrimSpace(line) == "":
			r.lines, empty = r.lines[1:], true
			continue
		case r.fenced(line), !r.quoted && r.quote(line), r.table(line), r.heading(line), r.rule(line), r.item(line):
		case empty && !r.list && indented(line):
			r.indent()
		default:
			r.paragraph()
		}
		empty = false
	}
}

// fenced reads a code block between fences, to the end of the text if nothing closes it: the rest of
// an answer that was cut off is code too.
func (r *reader) fenced(line string) bool {
	mark, info, ok := fenceOf(line)
	if !ok {
		return false
	}
	pad := len(line) - len(strings.TrimLeft(line, " \t"))
	n := 1
	var body []string
	for ; n < len(r.lines); n++ {
		if m, rest, ok := fenceOf(r.lines[n]); ok && rest == "" && m[0] == mark[0] && len(m) >= len(mark) {
			n++
			break
		}
		body = append(body, unindent(r.lines[n], pad))
	}
	r.lines = r.lines[n:]
	language, _, _ := strings.Cut(info, " ")
	r.add(strings.Join(body, "\n"), fence, language)
	return true
}

// fenceOf parts a line that opens or closes a fence.
func fenceOf(line string) (mark, info string, ok bool) {
	s := strings.TrimLeft(line, " \t")
	if len(s) < 3 || s[0] != '`' && s[0] != '~' {
		return "", "", false
	}
	info = strings.TrimLeft(s, s[:1])
	mark = s[:len(s)-len(info)]
	info = strings.TrimSpace(info)
	return mark, info, len(mark) >= 3 && (mark[0] == '~' || !strings.Contains(info, "`"))
}

// unindent takes up to n blanks off a line.
func unindent(line string, n int) string {
	for n > 0 && line != "" && (line[0] == ' ' || line[0] == '\t') {
		line, n = line[1:], n-1
	}
	return line
}

func indented(line string) bool {
	return strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
}

// indent reads a code block that is indented.
func (r *reader) indent() {
	var body []string
	for len(r.lines) > 0 && indented(r.lines[0]) {
		line := r.lines[0]
		if line[0] == '\t' {
			line = line[1:]
		} else {
			line = line[4:]
		}
		body, r.lines = append(body, line), r.lines[1:]
	}
	r.add(strings.Join(body, "\n"), fence, "")
}

// quote reads the lines of a quote as a text of its own.
func (r *reader) quote(line string) bool {
	in := &reader{dialect: r.dialect, quoted: true}
	n := 0
	for ; n < len(r.lines); n++ {
		s := strings.TrimLeft(r.lines[n], " ")
		if !strings.HasPrefix(s, ">") || len(r.lines[n])-len(s) > 3 {
			break
		}
		in.lines = append(in.lines, strings.TrimPrefix(s[1:], " "))
	}
	if n == 0 {
		return false
	}
	r.lines = r.lines[n:]
	in.base = quote
	in.blocks()
	text := in.text.String()
	at := 0
	for _, run := range in.runs {
		r.add(text[at:run.from], 0, "")
		r.add(text[run.from:run.to], run.style, run.arg)
		at = run.to
	}
	r.add(text[at:], 0, "")
	return true
}

// heading reads a line of one to six number signs as a bold line.
func (r *reader) heading(line string) bool {
	s := strings.TrimLeft(line, " ")
	text := strings.TrimLeft(s, "#")
	n := len(s) - len(text)
	if n == 0 || n > 6 || text != "" && text[0] != ' ' && text[0] != '\t' || indented(line) {
		return false
	}
	text = strings.TrimSpace(text)
	if t := strings.TrimRight(text, "#"); t == "" || t != text && strings.HasSuffix(t, " ") {
		text = strings.TrimSpace(t)
	}
	r.lines, r.list = r.lines[1:], false
	r.inline(text, bold)
	return true
}

// rule reads a line of stars, dashes or underscores. Stars would be read as bold.
func (r *reader) rule(line string) bool {
	s := strings.ReplaceAll(strings.TrimSpace(line), " ", "")
	if len(s) < 3 || !strings.Contains("*-_", s[:1]) || strings.Trim(s, s[:1]) != "" {
		return false
	}
	r.lines, r.list = r.lines[1:], false
	r.add("---", 0, "")
	return true
}

// item reads a line that begins an item of a list. Its marker stays; a star becomes a dash, for
// WhatsApp would read a pair of them as bold.
func (r *reader) item(line string) bool {
	n := marker(line)
	if n == 0 {
		return false
	}
	mark := line[:n]
	if c := mark[n-2]; c == '*' || c == '+' {
		mark = mark[:n-2] + "- "
	}
	r.lines, r.list = r.lines[1:], true
	r.add(mark, 0, "")
	rest := strings.TrimLeft(line[n:], " ")
	if _, _, ok := fenceOf(rest); ok {
		r.add("\n", 0, "")
		r.lines = append([]string{strings.Repeat(" ", n) + rest}, r.lines...)
		return r.fenced(r.lines[0])
	}
	r.inline(rest, 0)
	return true
}

// marker returns the length of the marker that begins an item, its indent and one blank included.
func marker(line string) int {
	s := strings.TrimLeft(line, " \t")
	at := len(line) - len(s)
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	switch {
	case digits == 0 && len(s) > 1 && strings.Contains("*-+", s[:1]) && s[1] == ' ':
		return at + 2
	case digits > 0 && digits < 10 && len(s) > digits+1 && strings.Contains(".)", s[digits:digits+1]) && s[digits+1] == ' ':
		return at + digits + 2
	}
	return 0
}

// paragraph reads lines up to the next block as one text: emphasis may begin on one line and end on
// another. Line ends stay, for models mean them.
func (r *reader) paragraph() {
	n := 1
	for ; n < len(r.lines) && !r.begins(n); n++ {
	}
	text := strings.Join(r.lines[:n], "\n")
	if !r.list {
		text = strings.TrimLeft(text, " \t")
	}
	r.list = r.list && (text[0] == ' ' || text[0] == '\t')
	r.lines = r.lines[n:]
	r.inline(text, 0)
}

// begins reports whether another block begins at line n.
func (r *reader) begins(n int) bool {
	line := r.lines[n]
	s := strings.TrimLeft(line, " \t")
	if s == "" || s[0] == '>' && !r.quoted || marker(line) > 0 {
		return true
	}
	if _, _, ok := fenceOf(line); ok {
		return true
	}
	switch s[0] {
	case '#', '-', '*', '_':
		probe := &reader{dialect: r.dialect, lines: []string{line}}
		return probe.heading(line) || probe.rule(line)
	}
	return n+1 < len(r.lines) && strings.Contains(line, "|") && delimits(r.lines[n+1])
}

// table reads a table into lines, the first of them bold: a phone is too narrow for columns.
func (r *reader) table(line string) bool {
	if len(r.lines) < 2 || !strings.Contains(line, "|") || !delimits(r.lines[1]) {
		return false
	}
	r.row(line, bold)
	n := 2
	for ; n < len(r.lines) && strings.Contains(r.lines[n], "|"); n++ {
		r.add("\n", 0, "")
		r.row(r.lines[n], 0)
	}
	r.lines, r.list = r.lines[n:], false
	return true
}

// row adds the cells of a row. A bar behind a backslash is text.
func (r *reader) row(line string, st style) {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	from := 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && (line[i] != '|' || i > 0 && line[i-1] == '\\') {
			continue
		}
		if from > 0 {
			r.add(" | ", 0, "")
		}
		r.inline(strings.ReplaceAll(strings.TrimSpace(line[from:i]), `\|`, "|"), st)
		from = i + 1
	}
}

// delimits reports whether a line is the one below the head of a table.
func delimits(line string) bool {
	s := strings.TrimSpace(line)
	return strings.Contains(s, "|") && strings.Contains(s, "-") && strings.Trim(s, "|-: \t") == ""
}
