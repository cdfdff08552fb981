package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// brackets pairs the brackets of a paragraph, in one pass: those in code or behind a backslash are none.
func (sc *scanner) brackets() {
	sc.starts, sc.ends = map[int]int{}, map[int]int{}
	var stack []int
	for i := 0; i < len(sc.s); i++ {
		switch sc.s[i] {
		case '\\':
			i++
		case '`':
			if _, end := sc.code(i); end > 0 {
				i = end - 1
			} else {
				i += row(sc.s, i) - 1
			}
		case '[':
			stack = append(stack, i)
		case ']':
			if n := len(stack); n > 0 {
				if i+1 < len(sc.s) && sc.s[i+1] == '(' {
					sc.starts[stack[n-1]], sc.ends[i] = i, stack[n-1]
				}
				stack = stack[:n-1]
			}
		}
	}
}

// bracket reads the begin or the end of a link or an image; 0 when it is text.
func (sc *scanner) bracket(i int) int {
	open := i
	if sc.s[i] == '!' {
		open++
	}
	if sc.s[i] == ']' {
		return sc.target(i)
	}
	end, ok := sc.starts[open]
	if !ok {
		return 0
	}
	if dest, _ := destination(sc.s, end+1); !strings.ContainsAny(dest, "/.#@:") { // none, or a call: list[i](x)
		delete(sc.starts, open)
		delete(sc.ends, end)
		return 0
	}
	sc.flush()
	sc.begun = append(sc.begun, begun{open, len(sc.tokens)})
	return open + 1
}

// target ends a link: its address becomes a style of its text where the platform has one, else it
// stands in parentheses behind it.
func (sc *scanner) target(i int) int {
	open, ok := sc.ends[i]
	n := len(sc.begun) - 1
	for n >= 0 && sc.begun[n].at > open {
		n-- // its end was read as something else
	}
	if !ok || n < 0 || sc.begun[n].at != open {
		return 0
	}
	from := sc.begun[n].token
	sc.begun = sc.begun[:n]
	dest, length := destination(sc.s, i+1)
	sc.flush()
	text, styled := "", false
	for _, t := range sc.tokens[from:] {
		text += t.text
		styled = styled || t.arg != ""
	}
	switch {
	case sc.dialect.links && !styled && text != "" && linkable(dest):
		for k := range sc.tokens[from:] {
			t := &sc.tokens[from+k]
			t.style, t.arg = t.style|link, dest
		}
	case text == dest:
	case text == "":
		sc.text.WriteString(dest)
	default:
		sc.text.WriteString(" (" + dest + ")")
	}
	sc.flush()
	return i + 1 + length
}

// destination reads "(address)" or "(address "title")" at i: what stands between the parentheses,
// and how long it is with them; 0 when it is none.
func destination(s string, i int) (dest string, n int) {
	depth := 0
	for j := i; j < len(s) && j-i < maxAddress; j++ {
		switch s[j] {
		case '\\':
			j++
		case '\n':
			return "", 0
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				dest = strings.TrimSpace(s[i+1 : j])
				if strings.HasPrefix(dest, "<") && strings.HasSuffix(dest, ">") {
					dest = dest[1 : len(dest)-1]
				}
				return dest, j + 1 - i
			}
		}
	}
	return "", 0
}

// linkable reports whether Telegram takes an address for a link.
func linkable(s string) bool {
	for _, scheme := range []string{"http://", "https://", "mailto:", "tel:", "tg://"} {
		if len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return !strings.ContainsAny(s, "<>\"\\ \t")
		}
	}
	return false
}

// angle reads an address in angle brackets, or a line break; 0 when it is text.
func (sc *scanner) angle(i int) int {
	end := strings.IndexByte(sc.s[i:min(len(sc.s), i+maxAddress)], '>')
	if end < 0 {
		return 0
	}
	in := sc.s[i+1 : i+end]
	switch {
	case strings.EqualFold(strings.TrimRight(in, " /"), "br"):
		sc.text.WriteByte('\n')
	case linkable(in):
		sc.text.WriteString(in)
	default:
		return 0
	}
	return i + end + 1
}

// address returns how long the bare web address at i is, 0 when there is none: what looks like
// emphasis in it is not.
func address(s string, i int) int {
	if !strings.HasPrefix(s[i:], "http://") && !strings.HasPrefix(s[i:], "https://") {
		return 0
	}
	if before, _ := utf8.DecodeLastRuneInString(s[:i]); i > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before)) {
		return 0
	}
	n := strings.IndexAny(s[i:], " \t\n<>\"'`*[]|\\")
	if n < 0 {
		n = len(s) - i
	}
	return len(strings.TrimRight(s[i:i+n], "_~"))
}
