package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTerm bounds a term in bytes: what is longer is data, of which the beginning is enough.
const maxTerm = 64

// Terms splits a text into what it can be found by, in order of appearance: words in lower case,
// identifiers, paths and addresses whole and in their parts, numbers, and pairs of adjacent characters of
// scripts that put no spaces between words. The same function feeds the index and reads the query.
func Terms(text string) []string {
	const perTerm = 6 // bytes of a text, about
	return AppendTerms(make([]string, 0, len(text)/perTerm+2), text)
}

// AppendTerms adds the terms of a text to others. Most tokens are plain, and are cut off while their bytes are looked at
// for the first time.
func AppendTerms(terms []string, text string) []string {
	text = Compose(text)
	for i := 0; i < len(text); {
		from := i
		for i < len(text) && bytesOf[text[i]] == plainByte {
			i++
		}
		switch {
		case i-from > 1 && (i == len(text) || bytesOf[text[i]] == otherByte):
			terms = append(terms, short(text[from:i]))
		case i == from && bytesOf[text[i]] == otherByte:
			i++
		default:
			if i = from + span(text[from:], true); i == from {
				i += span(text[from:], false)
				continue
			}
			token := text[from:i]
			terms = appendName(terms, token, text[i:])
			terms = appendAddress(terms, strings.Trim(token, "._-/@"))
		}
	}
	return terms
}

// What a byte is: of no token, a lower-case letter or digit, another of a token, or of a character beyond ASCII.
const (
	otherByte = iota
	plainByte
	tokenByte
	wideByte
)

// bytesOf is what each byte is, asked for each byte of each text.
var bytesOf = func() (kind [256]uint8) {
	for b := range kind {
		switch {
		case b >= utf8.RuneSelf:
			kind[b] = wideByte
		case b >= 'a' && b <= 'z' || b >= '0' && b <= '9':
			kind[b] = plainByte
		case inToken(rune(b)):
			kind[b] = tokenByte
		}
	}
	return kind
}()

// span is how many bytes at the beginning of a text are in a token, or are not.
func span(text string, in bool) int {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if (bytesOf[c] != otherByte) != in {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if inToken(r) != in {
			return i
		}
		i += n
	}
	return len(text)
}

// appendName adds the name of a programming language that is one by what is no letter. rest is what follows.
func appendName(terms []string, token, rest string) []string {
	if len(token) > len(".NET") {
		return terms
	}
	switch low := strings.ToLower(token); {
	case low == ".net":
		return append(terms, "dotnet")
	case low == "c" && strings.HasPrefix(rest, "++"):
		return append(terms, "cpp")
	case (low == "c" || low == "f") && strings.HasPrefix(rest, "#"):
		if next, _ := utf8.DecodeRuneInString(rest[1:]); !inToken(next) { // else it is a place in a page
			return append(terms, low+"sharp")
		}
	}
	return terms
}

// appendAddress adds what stands at both sides of an @ by itself, and both together.
func appendAddress(terms []string, token string) []string {
	if !strings.Contains(token, "@") {
		return appendToken(terms, token)
	}
	if low := strings.ToLower(token); len(low) <= maxTerm && !spaceless(token) {
		terms = append(terms, low)
	}
	for part := range strings.SplitSeq(token, "@") {
		terms = appendToken(terms, strings.Trim(part, "._-/"))
	}
	return terms
}

// inToken reports characters that words, identifiers, paths and numbers are made of.
func inToken(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' || r == '/' || r == '@'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.In(r, unicode.Mn, unicode.Mc)) // with marks, which are vowels in India
}

// plain reports a token of lower-case ASCII letters and digits, which most are.
func plain(token string) bool {
	for i := range len(token) {
		if bytesOf[token[i]] != plainByte {
			return false
		}
	}
	return true
}

// appendToken adds a token whole, when it is compound, and its parts.
func appendToken(terms []string, token string) []string {
	switch {
	case token == "":
		return terms
	case plain(token):
		return append(terms, short(token))
	}
	at := len(terms)
	whole := strings.ToLower(token)
	terms = appendParts(terms, token)
	parts := terms[at:]
	if len(whole) > maxTerm || spaceless(token) || len(parts) == 1 && parts[0] == whole {
		return terms
	}
	own := 1 // terms before the parts
	if whole[0] == 'v' && version(whole[1:]) {
		own = 2
	}
	terms = append(terms, "", "")[:len(terms)+own]
	copy(terms[at+own:], terms[at:])
	if terms[at] = whole; own > 1 {
		terms[at+1] = whole[1:]
	}
	return terms
}

// short cuts a term, which is text, to its bound, at the end of a character: a longer one is found by its beginning.
func short(term string) string {
	if len(term) <= maxTerm {
		return term
	}
	end := maxTerm
	for !utf8.RuneStart(term[end]) {
		end--
	}
	return term[:end]
}

// version reports digits with points between them.
func version(s string) bool {
	return strings.Contains(s, ".") && s[0] != '.' && strings.Trim(s, "0123456789.") == ""
}

// Lone reports a single character of a script that puts no spaces between words: it is a word of its own, and
// stands in the index only in the pairs that begin with it, and where a stretch ends, see [Ends].
func Lone(term string) bool {
	r, n := utf8.DecodeRuneInString(term)
	return n == len(term) && cjk(r)
}

// Ends returns the last characters of stretches in scripts without spaces: with them in the index, every
// character is the beginning of a term.
func Ends(text string) []string {
	var ends []string
	var last rune
	var run int // of them before this character
	for _, r := range Compose(text) {
		if cjk(r) {
			last, run = r, run+1
			continue
		}
		if run > 1 {
			ends = append(ends, string(last))
		}
		run = 0
	}
	if run > 1 {
		ends = append(ends, string(last))
	}
	return ends
}

// spaceless reports a token with characters of a script that writes words without spaces.
func spaceless(token string) bool { return strings.IndexFunc(token, cjk) >= 0 }

// firstSpaceless is where Thai, the first of the spaceless scripts, begins in Unicode.
const firstSpaceless = 0x0e00

func cjk(r rune) bool {
	return r >= firstSpaceless && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer))
}

// appendParts splits at punctuation and, within what remains, at changes of case and script.
func appendParts(parts []string, token string) []string {
	several := strings.ContainsAny(token, "_-./")
	for word := range strings.FieldsFuncSeq(token, func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == '/' }) {
		var last rune
		start, humps := 0, false
		for i, r := range word {
			if i > 0 && border(last, r, word[i+utf8.RuneLen(r):]) {
				parts, start = appendWord(parts, word[start:i]), i
				humps = humps || !cjk(last) && !cjk(r)
			}
			last = r
		}
		parts = appendWord(parts, word[start:])
		if low := strings.ToLower(word); several && humps && len(low) <= maxTerm {
			parts = append(parts, low) // a camelCase segment is a word of its own too
		}
	}
	return parts
}

// border reports that a part of a word begins at b, behind a: aB, ABc (before Bc), and changes between spaceless scripts
// and others.
func border(a, b rune, rest string) bool {
	switch {
	case cjk(a) != cjk(b):
		return true
	case !unicode.IsUpper(b):
		return false
	case !unicode.IsUpper(a):
		return true
	}
	next, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsLower(next)
}

// appendWord adds a part: of a script without spaces its pairs of characters.
func appendWord(parts []string, word string) []string {
	if first, n := utf8.DecodeRuneInString(word); !cjk(first) || n == len(word) {
		return append(parts, short(strings.ToLower(word)))
	}
	runes := []rune(word)
	for i := 0; i+1 < len(runes); i++ {
		parts = append(parts, string(runes[i:i+2]))
	}
	return parts
}

// cut shortens s to at most n runes at a word's end.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)[:n-1]
	short := string(runes)
	if i := strings.LastIndexByte(short, ' '); i > len(short)/2 {
		short = short[:i]
	}
	return strings.TrimRight(short, " ,;:") + "…"
}
