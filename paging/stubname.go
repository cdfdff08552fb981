package paging

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a stub shows of a name at most, in bytes. Of a longer one the beginning and the end stay, which tells files
// apart.
const (
	shownName = 200
	shownHead = 60
)

// StubName is a name as a stub has it: what could end the stub's line or bracket, or be read as another stub, stands as
// "_", "(" or ")". Brackets with a plain word between, as in the path app/[id]/page.tsx, stay as they are. Of a name
// that is short and plain, all does.
func StubName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); {
		if n := bracketed(name[i:]); n > 0 {
			b.WriteString(name[i : i+n])
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(name[i:])
		switch i += n; {
		case r == '[':
			b.WriteByte('(')
		case r == ']':
			b.WriteByte(')')
		case r != ' ' && !unicode.IsPrint(r):
			b.WriteByte('_')
		default:
			b.WriteRune(r)
		}
	}
	return middleCut(b.String())
}

// bracketed is the length of a bracket that begins a name, with nothing but letters, digits, ".", "-", "_" and such
// brackets in it; 0 for none.
func bracketed(s string) int {
	depth := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[':
			depth++
		case depth == 0:
			return 0
		case c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case c != '.' && kinds256[c] == 0:
			return 0
		}
	}
	return 0
}

// middleCut bounds a name of whole characters. A bracket that the cut parts is none any more.
func middleCut(s string) string {
	if len(s) <= shownName {
		return s
	}
	const dots = "…"
	head, tail := shownHead, len(s)-(shownName-shownHead-len(dots))
	for !utf8.RuneStart(s[head]) {
		head--
	}
	for !utf8.RuneStart(s[tail]) {
		tail++
	}
	round := strings.NewReplacer("[", "(", "]", ")")
	return round.Replace(s[:head]) + dots + round.Replace(s[tail:])
}
