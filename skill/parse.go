package skill

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fence stands above and below the front matter.
const fence = "---"

// reader goes through the lines of a front matter.
type reader struct {
	lines []string // without the fences
	at    int      // the next one, from 0
	seen  map[string]bool
	name  int // line of the name
	err   *Error
}

// fail keeps the first mistake. A line is counted from 0, behind the first fence.
func (r *reader) fail(line int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{line + 2, fmt.Sprintf(format, args...)}
	}
}

// parse reads a file; name is the line that its name stands in.
func parse(file string) (s Skill, name int, err error) {
	file = strings.TrimPrefix(file, "\ufeff")
	first, rest, _ := strings.Cut(file, "\n")
	if strings.TrimRight(first, " \t\r") != fence {
		return s, 0, &Error{1, `want "---": a skill begins with a front matter that has name and description`}
	}
	r := &reader{seen: map[string]bool{}}
	if s.Body, err = r.front(rest); err != nil {
		return s, 0, err
	}
	for r.at < len(r.lines) && r.err == nil {
		r.field(&s)
	}
	end := len(r.lines) - 1 // that nothing is said in, the fence is behind it
	for _, key := range []string{"name", "description"} {
		if !r.seen[key] {
			r.fail(end+1, "the front matter has no %s", key)
		}
	}
	if strings.TrimSpace(s.Body) == "" {
		r.fail(end+2, "there are no instructions below the front matter")
	}
	if r.err != nil {
		return Skill{}, 0, r.err
	}
	return s, r.name + 2, nil
}

// front cuts the front matter off and returns what is below it.
func (r *reader) front(rest string) (body string, err error) {
	for {
		line, more, found := strings.Cut(rest, "\n")
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimRight(line, " \t") == fence {
			return more, nil
		}
		if !found {
			return "", &Error{len(r.lines) + 2, `the front matter does not end: want a line "---" behind it`}
		}
		if i := strings.IndexFunc(line, func(c rune) bool { return c != '\t' && unicode.IsControl(c) }); i >= 0 {
			c, _ := utf8.DecodeRuneInString(line[i:])
			return "", &Error{len(r.lines) + 2, fmt.Sprintf("a control character (%U)", c)}
		}
		r.lines = append(r.lines, line)
		rest = more
	}
}

// field reads one key and what it has, which may take some lines.
func (r *reader) field(s *Skill) {
	at, line := r.at, r.lines[r.at]
	r.at++
	if isBlank(line) {
		return
	}
	key, value, ok := strings.Cut(line, ":")
	if !ok || !isKey(key) || value != "" && value[0] != ' ' && value[0] != '\t' {
		r.fail(at, "want \"key: value\", not %q", clip(line, 60))
		return
	}
	if key != "name" && key != "description" && key != "peers" {
		s.Extra = append(s.Extra, line)
		for ; r.at < len(r.lines) && (belongs(r.lines[r.at]) || isBlank(r.lines[r.at])); r.at++ {
			if !isBlank(r.lines[r.at]) {
				s.Extra = append(s.Extra, r.lines[r.at])
			}
		}
		return
	}
	if r.seen[key] {
		r.fail(at, "%s is given twice", key)
		return
	}
	r.seen[key] = true
	text := strings.TrimSpace(r.value(key, strings.Trim(value, " \t")))
	switch key {
	case "name":
		r.name = at
		if err := CheckName(text); err != nil {
			r.fail(at, "name %q: want 1 to %d letters in lower case, digits, - and _, not at its ends", clip(text, 60), MaxName)
		}
		s.Name = text
	case "description":
		if n := utf8.RuneCountInString(text); n > MaxDescription {
			r.fail(at, "the description has %d characters, at most %d", n, MaxDescription)
		} else if n == 0 {
			r.fail(at, "the description is empty: say what the skill is for, and when to use it")
		}
		s.Description = text
	case "peers":
		if text != "true" && text != "false" {
			r.fail(at, "peers: want true or false, not %q", clip(text, 20))
		}
		s.Peers = text == "true"
	}
}

// value reads the value of a key, of which first stands in its own line.
func (r *reader) value(key, first string) string {
	at := r.at - 1
	switch {
	case strings.HasPrefix(first, `"`):
		text, rest, problem := double(first[1:])
		r.rest(at, key, rest, problem)
		return text
	case strings.HasPrefix(first, "'"):
		text, rest, problem := single(first[1:])
		r.rest(at, key, rest, problem)
		return text
	case strings.HasPrefix(first, "|"), strings.HasPrefix(first, ">"):
		return r.block(key, first)
	case first != "" && strings.ContainsRune("[]{},&*!%@`", rune(first[0])):
		r.fail(at, `%s begins with %q, which is no plain text: put the value into "quotes"`, key, first[:1])
		return ""
	}
	parts := []string{uncommented(first)}
	for ; r.at < len(r.lines) && belongs(r.lines[r.at]); r.at++ {
		line := strings.TrimSpace(r.lines[r.at])
		if strings.HasPrefix(line, "- ") || line == "-" {
			r.fail(r.at, "%s is a list: want one text", key)
			return ""
		}
		parts = append(parts, uncommented(line))
	}
	return strings.Join(parts, " ")
}

// rest holds what stands behind a quoted value to be nothing.
func (r *reader) rest(at int, key, rest, problem string) {
	rest = strings.TrimLeft(rest, " \t")
	switch {
	case problem != "":
		r.fail(at, "%s: %s", key, problem)
	case rest != "" && rest[0] != '#':
		r.fail(at, "%s: %q stands behind the closing quote", key, clip(rest, 40))
	case r.at < len(r.lines) && belongs(r.lines[r.at]):
		r.fail(r.at, "%s: a value in quotes is one line; use > for a long one", key)
	}
}

// block reads a literal (|) or folded (>) block: the indented lines that follow. Blank lines at its ends do not
// count, whatever its head says of them.
func (r *reader) block(key, first string) string {
	head := strings.TrimSpace(uncommented(first))
	if len(head) > 3 || strings.Trim(head[1:], "+-123456789") != "" {
		r.fail(r.at-1, "%s: %q is no block: want | or >", key, clip(first, 20))
		return ""
	}
	var lines []string
	indent := -1
	for ; r.at < len(r.lines); r.at++ {
		line := r.lines[r.at]
		text := strings.TrimLeft(line, " ")
		if strings.Trim(text, "\t") == "" {
			lines = append(lines, "")
			continue
		}
		deep := len(line) - len(text)
		if deep == 0 && text[0] != '\t' {
			break
		}
		if indent < 0 {
			indent = deep
		}
		if deep == 0 || deep < indent {
			r.fail(r.at, "%s: the lines of a block are indented by the same number of spaces", key)
			return ""
		}
		lines = append(lines, strings.TrimRight(line[indent:], " \t"))
	}
	if head[0] == '|' {
		return strings.Join(lines, "\n")
	}
	return folded(lines)
}

// folded joins lines: a line break is a space, an empty line a line break.
func folded(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		switch {
		case line == "":
			b.WriteByte('\n')
		case i > 0 && lines[i-1] != "":
			b.WriteString(" " + line)
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

// double reads a text up to its closing double quote.
func double(s string) (text, rest, problem string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return b.String(), s[i+1:], ""
		case '\\':
			i++
			if i == len(s) {
				return "", "", unclosed
			}
			switch e := s[i]; e {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '"', '\\', '/', ' ':
				b.WriteByte(e)
			case 'u':
				n, err := strconv.ParseUint(s[min(i+1, len(s)):min(i+5, len(s))], 16, 16)
				if c := rune(n); err != nil || i+5 > len(s) || !utf8.ValidRune(c) || unicode.IsControl(c) {
					return "", "", `\u needs four digits of a character that is printed`
				}
				b.WriteRune(rune(n))
				i += 4
			default:
				return "", "", fmt.Sprintf(`\%s means nothing here: want \" \\ \n \t or \u`, clip(s[i:], 1))
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", unclosed
}

const unclosed = "the quote is not closed in its line"

// single reads a text up to its closing single quote; two of them are one in it.
func single(s string) (text, rest, problem string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\'' {
			if !strings.HasPrefix(s[i+1:], "'") {
				return b.String(), s[i+1:], ""
			}
			i++
		}
		b.WriteByte(s[i])
	}
	return "", "", unclosed
}

// uncommented cuts a comment off a plain value.
func uncommented(s string) string {
	for i := range len(s) {
		if s[i] == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t') {
			s = s[:i]
			break
		}
	}
	return strings.TrimSpace(s)
}

func isKey(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
}

// isBlank reports a line that says nothing: empty, or a comment that belongs to no value.
func isBlank(line string) bool {
	return strings.Trim(line, " \t") == "" || line[0] == '#'
}

// belongs reports a line that goes on with the value above it.
func belongs(line string) bool {
	return strings.Trim(line, " \t") != "" && (line[0] == ' ' || line[0] == '\t' || strings.HasPrefix(line, "- ") || line == "-")
}

// clip is the beginning of a text, at most so many characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
