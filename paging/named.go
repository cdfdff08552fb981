package paging

import (
	"bytes"
	"encoding/binary"
	"path"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// What is kept of the text of a turn, and of a result, to know again what the turn speaks of.
const (
	maxSaid  = 256 // words
	maxCodes = 128
	longWord = 200 // bytes
	maxAsked = 200 // bytes of a command, a pattern, a query
	leastRef = 3   // bytes of the name of a program or tool
	leastRow = 4   // bytes of a file's name without its extension
)

// said is what a turn of the user speaks of.
type said struct {
	words map[string]bool // plain
	codes []uint32        // hashes of ids, error codes and the like
}

// speaks takes a text of a message that the user typed.
func (m *Message) speaks(text []byte) {
	m.Names = fileNames(m.Names, text)
	if m.said == nil {
		m.said = &said{words: map[string]bool{}}
	}
	m.said.speaks(text)
}

// speaks takes the words of a text.
func (s *said) speaks(text []byte) {
	codes(text, func(h uint32) bool {
		s.codes = append(s.codes, h)
		return len(s.codes) < maxCodes
	})
	for word := range bytes.FieldsFuncSeq(text, wordEnds) {
		if len(s.words) == maxSaid {
			break
		}
		if word = bytes.Trim(word[:min(len(word), longWord)], ".-_"); len(word) > 1 {
			s.words[near.Plain(string(word))] = true
		}
	}
}

func wordEnds(r rune) bool { return r < 0x80 && r != '.' && kinds256[r] == 0 }

// Kinds of bytes of a word.
const (
	digit = 1 << iota
	lower
	upper
	joint
)

// kinds256 says of which kind a byte is, 0 for one that ends a word.
var kinds256 = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9':
			t[c] = digit
		case c >= 'a' && c <= 'z':
			t[c] = lower
		case c >= 'A' && c <= 'Z':
			t[c] = upper
		case c == '_' || c == '-':
			t[c] = joint
		}
	}
	return t
}()

// codes gives the hashes of the words of a text that look like an id, an error code or a number that somebody would
// quote: digits and letters together, five digits, or five capitals. It stops when yield says so.
func codes(text []byte, yield func(uint32) bool) {
	seen, begun := uint8(0), -1
	for i := 0; i <= len(text); i++ {
		if i < len(text) {
			if kind := kinds256[text[i]]; kind != 0 {
				if seen |= kind; begun < 0 {
					begun = i
				}
				continue
			}
		}
		if begun < 0 {
			continue
		}
		n, letters := i-begun, seen&(lower|upper)
		if n > 3 && n <= longWord && (seen&digit != 0 && (letters != 0 || n > 4) || n > 4 && letters == upper) && !yield(hashed(text[begun:i])) {
			return
		}
		seen, begun = 0, -1
	}
}

// hashed is FNV-1a.
func hashed(word []byte) uint32 {
	const offset, prime = 2166136261, 16777619
	h := uint32(offset)
	for _, b := range word {
		h = (h ^ uint32(b)) * prime
	}
	return h
}

// coded is a set of codes: a Bloom filter with two bits for each.
type coded [16]uint64

// bits of a code.
func (*coded) bits(h uint32) (a, b uint32) { return h & 1023, h >> 10 & 1023 }

func (c *coded) has(h uint32) bool {
	a, b := c.bits(h)
	return c[a/64]>>(a%64)&1 == 1 && c[b/64]>>(b%64)&1 == 1
}

// codesOf is the set of the first codes of a text, nil for none.
func codesOf(text []byte) (set *coded) {
	n := 0
	codes(text, func(h uint32) bool {
		if set == nil {
			set = new(coded)
		}
		if set.has(h) {
			return true
		}
		a, b := set.bits(h)
		set[a/64] |= 1 << (a % 64)
		set[b/64] |= 1 << (b % 64)
		n++
		return n < maxCodes
	})
	return set
}

// asked is what a call looks for or runs: the beginning of its command, pattern or query.
func (f inputs) asked() string {
	for _, name := range []string{"command", "cmd", "pattern", "query", "regex", "url"} {
		if raw := f.get(name); bytes.HasPrefix(raw, []byte{'"'}) {
			if len(raw) > maxAsked { // the rest is not decoded; what is cut may be an escape
				if raw = raw[:maxAsked:maxAsked]; bytes.IndexByte(raw[maxAsked-12:], '\\') >= 0 {
					raw = raw[:maxAsked-12+bytes.IndexByte(raw[maxAsked-12:], '\\')]
				}
				raw = append(bytes.TrimRight(raw, `\`), '"')
			}
			text, _ := json.AppendText(nil, raw)
			return strings.ToValidUTF8(string(text), "")
		}
	}
	return ""
}

// program is the name of what a command runs, and its first word that is no flag, as "go" and "test".
func program(command string) (name, first string) {
	words := strings.Fields(command)
	for len(words) > 1 {
		if words[0] == "cd" && len(words) > 2 {
			words = words[2:]
			continue
		}
		if words[0] != "&&" && words[0] != ";" && words[0] != "sudo" && words[0] != "time" && words[0] != "env" && !strings.Contains(words[0], "=") {
			break
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return "", ""
	}
	name = near.Plain(path.Base(words[0]))
	for _, w := range words[1:] {
		if w = strings.Trim(w, `"'`); len(w) > 1 && w[0] != '-' {
			return name, near.Plain(w)
		}
	}
	return name, ""
}

// needed reports whether the newest turn of the user names a page or brought it. What it names by more than a hint
// stays until another turn; after a hint it stays for one batch longer.
func (p *policy) needed(g *Page) bool {
	c := &p.costs
	switch {
	case p.spoken(g):
		return true
	case g.Part == Image:
		return false
	case c.said == nil || g.spared == c.turn+1 || !p.hinted(g):
		return false
	}
	set(&p.history, &g.spared, c.turn+1)
	return true
}

// spoken reports whether a page stays until another turn. That is found out once for each turn.
func (p *policy) spoken(g *Page) bool {
	c := &p.costs
	switch {
	case g.Part == Image:
		return g.Message == c.turn
	case c.said == nil || !g.Read && g.Part != Input:
		return false
	case g.said != c.said:
		g.said, g.named = c.said, p.namedFile(g.Call.Path)
	}
	return g.named
}

// namedFile reports whether the newest turn names a file, with its path, the end of that, or its base name alone.
func (p *policy) namedFile(file string) bool {
	c := &p.costs
	return named(c.names, file) || c.said.words[near.Plain(path.Base(file))]
}

// hinted reports whether the newest turn may speak of a page: of a file's name without its extension, of the tool or
// program whose newest result it is, of what it looked for, or of a code that stands in it.
func (p *policy) hinted(g *Page) bool {
	words := p.costs.said.words
	if base := path.Base(g.Call.Path); g.Read || g.Part == Input {
		stem := strings.TrimSuffix(base, path.Ext(base))
		if len(stem) >= leastRow && words[near.Plain(stem)] {
			return true
		}
	}
	if g.Part != Result {
		return false
	}
	if tool := near.Plain(g.Call.Tool); words[tool] && p.newest[tool] == g {
		return true
	}
	name, first := program(g.Call.Asks)
	switch {
	case len(name) >= leastRef && words[name] && (first == "" || words[first] || p.newest["$"+name] == g):
		return true
	case name != "" && words[name] && first != "" && words[first]:
		return true
	case g.codes == nil:
		return false
	}
	for _, h := range p.costs.said.codes {
		if g.codes.has(h) {
			return true
		}
	}
	return false
}

// newer notes the newest result of a tool, and of a program that one runs.
func (p *Pager) newer(g *Page) {
	if !p.parts() {
		return
	}
	p.latest(near.Plain(g.Call.Tool), g)
	if name, _ := program(g.Call.Asks); name != "" {
		p.latest("$"+name, g)
	}
}

func (p *Pager) latest(name string, g *Page) {
	if name == "" {
		return
	}
	put(&p.history, p.newest, name, g)
}

// bytes are the set as it is stored.
func (c *coded) bytes() (out []byte) {
	if c == nil {
		return nil
	}
	for _, w := range c {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

// codedFrom is a set that was stored, nil for what is none.
func codedFrom(raw []byte) *coded {
	c := new(coded)
	if len(raw) != 8*len(c) {
		return nil
	}
	for i := range c {
		c[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return c
}

// named reports whether one of some words is a file's path or its end.
func named(words []string, file string) bool {
	for _, w := range words {
		w = path.Clean(w)
		if rest, ok := strings.CutSuffix(file, w); ok && (rest == "" || strings.HasSuffix(rest, "/")) {
			return true
		}
	}
	return false
}

// maxNames bounds the names that are kept of a message.
const maxNames = 64

// fileNames adds words of a text that may be names of files: with a dot or a slash inside.
func fileNames(names []string, text []byte) []string {
	for word := range bytes.FieldsFuncSeq(text, nameEnds) {
		if len(names) == maxNames {
			break
		}
		word = bytes.Trim(word[:min(len(word), longWord+1)], ".:;!?*")
		if len(word) > 2 && len(word) <= longWord && bytes.ContainsAny(word, "./") {
			names = append(names, strings.ToValidUTF8(string(word), ""))
		}
	}
	return names
}

func nameEnds(c rune) bool {
	return c <= ' ' || c == '"' || c == '\'' || c == '`' || c == '(' || c == ')' || c == ',' || c == '<' || c == '>' || c == '[' || c == ']' || c == '@'
}
