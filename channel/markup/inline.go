package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a stretch of a paragraph: text in a style, or a row of delimiters that may become one.
type token struct {
	text  string
	style style // code and link
	arg   string

	delim       byte // '*', '_' or '~'; 0 for text
	left        int  // delimiters not used yet; what remains is text
	open, close bool
	delta       [3]int // how many of bold, italic, strike begin (end when below 0) behind this token
}

// scanner makes tokens of a paragraph.
type scanner struct {
	s       string
	dialect dialect
	tokens  []token
	ends    map[int]int  // position of ']' to that of its '['
	starts  map[int]int  // and the other way round
	missing map[int]bool // lengths of backtick rows that nothing closes
	begun   []begun      // links that we are in
	text    strings.Builder
}

// begun is a link: where its bracket is, and which its first token.
type begun struct{ at, token int }

// inline adds a paragraph.
func (r *reader) inline(s string, st style) {
	sc := &scanner{s: s, dialect: r.dialect, missing: map[int]bool{}}
	sc.brackets()
	for i := 0; i < len(s); {
		i = sc.next(i)
	}
	sc.flush()
	sc.emphasis()
	depth := [3]int{}
	for _, t := range sc.tokens {
		if t.delim != 0 {
			t.text = t.text[:t.left]
		}
		r.add(t.text, st|t.style|styleOf(depth), t.arg)
		for k, n := range t.delta {
			depth[k] += n
		}
	}
}

func styleOf(depth [3]int) (st style) {
	for k, s := range [3]style{bold, italic, strike} {
		if depth[k] > 0 {
			st |= s
		}
	}
	return st
}

// next reads what stands at i and returns where to go on.
func (sc *scanner) next(i int) int {
	s := sc.s
	switch c := s[i]; c {
	case '\\':
		if i+1 < len(s) && punctuation(s[i+1]) {
			sc.text.WriteByte(s[i+1])
			return i + 2
		}
	case '`':
		if body, end := sc.code(i); end > 0 {
			sc.push(token{text: body, style: code})
			return end
		}
		n := row(s, i)
		sc.text.WriteString(s[i : i+n])
		return i + n
	case '*', '_', '~':
		return sc.delimiter(i)
	case '[', '!', ']':
		if end := sc.bracket(i); end > 0 {
			return end
		}
	case '<':
		if end := sc.angle(i); end > 0 {
			return end
		}
	case 'h':
		if n := address(s, i); n > 0 {
			sc.text.WriteString(s[i : i+n])
			return i + n
		}
	}
	sc.text.WriteByte(s[i])
	return i + 1
}

// flush makes a token of the text read so far.
func (sc *scanner) flush() {
	if sc.text.Len() > 0 {
		sc.tokens = append(sc.tokens, token{text: sc.text.String()})
		sc.text.Reset()
	}
}

func (sc *scanner) push(t token) {
	sc.flush()
	sc.tokens = append(sc.tokens, t)
}

// row counts how often the byte at i stands there.
func row(s string, i int) int {
	n := 1
	for i+n < len(s) && s[i+n] == s[i] {
		n++
	}
	return n
}

// code returns what stands between the backticks at i and their like, and where it ends; 0 when
// nothing closes them.
func (sc *scanner) code(i int) (body string, end int) {
	n := row(sc.s, i)
	if sc.missing[n] {
		return "", 0
	}
	for j := i + n; j < len(sc.s); {
		k := strings.IndexByte(sc.s[j:], '`')
		if k < 0 {
			break
		}
		j += k
		m := row(sc.s, j)
		if m == n {
			body = strings.ReplaceAll(sc.s[i+n:j], "\n", " ")
			if len(body) > 2 && body[0] == ' ' && body[len(body)-1] == ' ' && strings.TrimSpace(body) != "" {
				body = body[1 : len(body)-1]
			}
			return body, j + n
		}
		j += m
	}
	sc.missing[n] = true
	return "", 0
}

// delimiter reads a row of emphasis marks.
func (sc *scanner) delimiter(i int) int {
	c, n := sc.s[i], row(sc.s, i)
	before, _ := utf8.DecodeLastRuneInString(sc.s[:i])
	after, _ := utf8.DecodeRuneInString(sc.s[i+n:])
	if i == 0 {
		before = ' '
	}
	if i+n == len(sc.s) {
		after = ' '
	}
	leans := !unicode.IsSpace(after) && (!marks(after) || unicode.IsSpace(before) || marks(before))
	rests := !unicode.IsSpace(before) && (!marks(before) || unicode.IsSpace(after) || marks(after))
	t := token{text: sc.s[i : i+n], delim: c, left: n, open: leans, close: rests}
	switch {
	case c == '_':
		t.open = leans && (!rests || marks(before))
		t.close = rests && (!leans || marks(after))
	case c == '~' && n != 2:
		t.delim = 0
	}
	sc.push(t)
	return i + n
}

func marks(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

func punctuation(c byte) bool {
	return c > ' ' && c < 0x7f && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
}

// emphasis pairs the delimiters, as CommonMark does: each closer with the nearest opener of its kind.
//
// https://spec.commonmark.org/0.31.2/#an-algorithm-for-parsing-nested-emphasis-and-links
func (sc *scanner) emphasis() {
	var stack []int           // openers that wait
	floor := map[[3]int]int{} // below which no opener of that kind is left: keeps the search linear
	for i := range sc.tokens {
		t := &sc.tokens[i]
		for t.delim != 0 && t.close && t.left > 0 {
			kind := [3]int{int(t.delim), len(t.text) % 3, 0}
			if t.open {
				kind[2] = 1
			}
			at := sc.opener(stack, t, floor[kind])
			if at < 0 {
				floor[kind] = len(stack)
				break
			}
			o := &sc.tokens[stack[at]]
			n := 1
			if o.left >= 2 && t.left >= 2 {
				n = 2
			}
			k := 2 - n // bold is 0, italic 1
			if t.delim == '~' {
				k = 2
			}
			o.delta[k]++
			sc.tokens[i-1].delta[k]-- // in front of the closer: marks that it has left over are plain
			o.left -= n
			t.left -= n
			stack = stack[:at+1]
			if o.left == 0 {
				stack = stack[:at]
			}
			for key, f := range floor {
				floor[key] = min(f, len(stack))
			}
		}
		if t.delim != 0 && t.open && t.left > 0 {
			stack = append(stack, i)
		}
	}
}

// opener finds the nearest opener for a closer, down to floor; -1 when there is none.
func (sc *scanner) opener(stack []int, t *token, floor int) int {
	for at := len(stack) - 1; at >= floor; at-- {
		o := &sc.tokens[stack[at]]
		if o.delim != t.delim || t.delim == '~' && o.left != t.left {
			continue
		}
		both := o.close || t.open
		if both && (len(o.text)+len(t.text))%3 == 0 && (len(o.text)%3 != 0 || len(t.text)%3 != 0) {
			continue
		}
		return at
	}
	return -1
}
