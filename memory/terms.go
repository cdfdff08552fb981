package memory

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTerm bounds a term in bytes: what is longer is data, not a word.
const maxTerm = 64

// Terms splits a text into what it can be found by, in order of appearance: words in lower case,
// identifiers and paths whole and in their parts, numbers, and pairs of adjacent characters of
// scripts that put no spaces between words. The same function feeds the index and reads the query.
func Terms(text string) []string {
	var terms []string
	for len(text) > 0 {
		i := strings.IndexFunc(text, inToken)
		if i < 0 {
			break
		}
		text = text[i:]
		end := strings.IndexFunc(text, func(r rune) bool { return !inToken(r) })
		if end < 0 {
			end = len(text)
		}
		terms = appendToken(terms, strings.Trim(text[:end], "._-/"))
		text = text[end:]
	}
	return terms
}

// inToken reports characters that words, identifiers, paths and numbers are made of.
func inToken(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' || r == '/'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

// plain reports a token of lower-case ASCII letters and digits, which most are.
func plain(token string) bool {
	for i := range len(token) {
		if c := token[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
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
		if len(token) <= maxTerm {
			terms = append(terms, token)
		}
		return terms
	}
	parts := appendParts(nil, token)
	if whole := strings.ToLower(token); len(whole) <= maxTerm && !spaceless(token) && (len(parts) != 1 || parts[0] != whole) {
		terms = append(terms, whole)
	}
	return append(terms, parts...)
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
	for _, word := range strings.FieldsFunc(token, func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == '/' }) {
		runes := []rune(word)
		start := 0
		for i := 1; i <= len(runes); i++ {
			if i < len(runes) && !border(runes, i) {
				continue
			}
			parts = appendWord(parts, runes[start:i])
			start = i
		}
		if low := strings.ToLower(word); len(low) <= maxTerm && strings.ContainsAny(token, "_-./") && humps(runes) {
			parts = append(parts, low) // a camelCase segment is a word of its own too
		}
	}
	return parts
}

// humps reports a word that borders split.
func humps(runes []rune) bool {
	for i := 1; i < len(runes); i++ {
		if border(runes, i) && !cjk(runes[i]) && !cjk(runes[i-1]) {
			return true
		}
	}
	return false
}

// border reports that a part of a word begins at i: aB, ABc (before Bc), and changes between
// spaceless scripts and others.
func border(r []rune, i int) bool {
	a, b := r[i-1], r[i]
	switch {
	case cjk(a) != cjk(b):
		return true
	case unicode.IsUpper(b) && !unicode.IsUpper(a):
		return true
	case unicode.IsUpper(a) && unicode.IsUpper(b) && i+1 < len(r) && unicode.IsLower(r[i+1]):
		return true
	}
	return false
}

func appendWord(parts []string, word []rune) []string {
	if !cjk(word[0]) {
		if low := strings.ToLower(string(word)); len(low) <= maxTerm {
			parts = append(parts, low)
		}
		return parts
	}
	if len(word) == 1 {
		return append(parts, string(word))
	}
	for i := 0; i+1 < len(word); i++ {
		parts = append(parts, string(word[i:i+2]))
	}
	return parts
}

// Scored is a line and how well it answers a query; higher is better.
type Scored struct {
	Index int
	Score float64
}

// The usual parameters of BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework:
// BM25 and Beyond", 2009, §3.4.2).
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// Rank orders a small set of lines by BM25 against a query, best first, without those that share
// no term with it. Equal scores keep the order of the lines.
func Rank(query string, lines []string) []Scored {
	wanted := map[string]bool{}
	for _, t := range Terms(query) {
		wanted[t] = true
	}
	type doc struct {
		freq map[string]int
		len  int
	}
	docs := make([]doc, len(lines))
	holds := map[string]int{} // lines that have a term
	total := 0
	for i, l := range lines {
		docs[i].freq = map[string]int{}
		for _, t := range Terms(l) {
			docs[i].len++
			if wanted[t] {
				if docs[i].freq[t]++; docs[i].freq[t] == 1 {
					holds[t]++
				}
			}
		}
		total += docs[i].len
	}
	average := float64(total) / math.Max(1, float64(len(lines)))
	var out []Scored
	for i, d := range docs {
		score := 0.0
		for _, t := range sorted(d.freq) { // a fixed order, since float sums depend on it
			n, f := float64(holds[t]), float64(d.freq[t])
			idf := math.Log(1 + (float64(len(lines))-n+0.5)/(n+0.5))
			score += idf * f * (bm25K1 + 1) / (f + bm25K1*(1-bm25B+bm25B*float64(d.len)/math.Max(1, average)))
		}
		if score > 0 {
			out = append(out, Scored{i, score})
		}
	}
	slices.SortStableFunc(out, func(a, b Scored) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	return out
}

func sorted(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
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
