package compaction

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/lexicon"
)

// Bounds of topics.
const (
	maxTopics     = 5
	maxTopicLen   = 24
	topicMessages = 24  // that are looked at, evenly over the span
	topicBytes    = 200 // of each block that are looked at
)

// Topic is a word and how much it counts.
type Topic struct {
	Word  string `json:"word"`
	Count int    `json:"count"`
}

// topicCount counts the words that may tell what a span is about: names, identifiers, paths and long
// words. A word counts once for a message, and more when a person said it than when a tool printed it.
type topicCount struct {
	words map[string]tally
	at    int // the message that is read, from 1
}

type tally struct{ count, at int }

func newTopicCount() *topicCount { return &topicCount{words: make(map[string]tally, 256)} }

// message counts the words of a message; those of pointers are ours.
func (c *topicCount) message(it *Item) {
	m := &it.Message
	c.at++
	weight := 2
	if m.Role == tidemark.User {
		weight = 3
	}
	for n := range m.Content {
		switch b := &m.Content[n]; b.Type {
		case tidemark.TypeText:
			c.text(b.Text, weight)
		case tidemark.TypeToolUse:
			if isPointer(it, *b) {
				c.values(argsOf(b.Input))
			} else {
				c.values(b.Input)
			}
		case tidemark.TypeToolResult:
			if len(b.Content) > 0 && !isPointer(it, *b) {
				c.text(b.Content[0].Text, 1)
			}
		}
	}
}

// topics counts those of a marker.
func (c *topicCount) topics(list []Topic) {
	for _, t := range list {
		c.words[t.Word] = tally{count: c.words[t.Word].count + t.Count}
	}
}

// values counts the words in the strings of a call's input, but not its keys, which are those of the tool.
func (c *topicCount) values(raw []byte) {
	raw = raw[:min(len(raw), topicBytes)]
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(raw) { // cut off, maybe in a word
			return
		}
		next := end + 1
		for next < len(raw) && (raw[next] == ' ' || raw[next] == '\n' || raw[next] == '\t') {
			next++
		}
		if next < len(raw) && raw[next] != ':' {
			c.text(parted.Replace(string(raw[i+1:end])), 2)
		}
		i = end
	}
}

// parted parts the words of a JSON string where it has escapes.
var parted = strings.NewReplacer(`\n`, " ", `\t`, " ", `\r`, " ", `\"`, " ", `\\`, " ")

// text counts the words at the begin of a text, none of a stub of trimming.
func (c *topicCount) text(s string, weight int) {
	if strings.HasPrefix(s, trimMark) { // what it stands for is named by the call
		return
	}
	whole := len(s) <= topicBytes
	s = s[:runeFloor(s, min(len(s), topicBytes))]
	for i := 0; i < len(s); {
		kind, n := runeKind(s[i:])
		from := i
		for i += n; i < len(s); i += n {
			if kind == runeWord && wordByte(s[i]) {
				n = 1
				continue
			}
			var next int
			if next, n = runeKind(s[i:]); next != kind {
				break
			}
		}
		switch {
		case i >= len(s) && !whole: // cut off: a part of a word tells nothing, or a part of a secret
		case kind == runeWord:
			c.run(s[from:i], weight)
		case kind == runeIdeograph:
			c.ideographs(s[from:i], weight)
		}
	}
}

// Kinds of runes.
const (
	runeOther     = iota
	runeWord      // of words and identifiers
	runeIdeograph // of a script without spaces: Chinese and Japanese
)

// wordByte reports an ASCII character of words, identifiers, paths and what secrets are written in.
func wordByte(b byte) bool {
	return b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || b == '_' || b >= '-' && b <= '/' || b == '+' || b == '='
}

func runeKind(s string) (kind, size int) {
	b := s[0]
	switch {
	case wordByte(b):
		return runeWord, 1
	case b < utf8.RuneSelf:
		return runeOther, 1
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case unicode.Is(unicode.Han, r) || r >= 0x3040 && r <= 0x30ff:
		return runeIdeograph, n
	case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r):
		return runeWord, n
	}
	return runeOther, n
}

// run counts what stands between two spaces, unless it looks like a secret or a hash: a marker stands in
// the view for ever.
func (c *topicCount) run(w string, weight int) {
	if secretive(w) {
		return
	}
	for len(w) > 0 {
		n := 0
		for n < len(w) && w[n] != '+' && w[n] != '=' {
			n++
		}
		if word := shorter(strings.Trim(w[:n], "._-/")); tells(word) {
			c.add(strings.ToLower(word), weight)
		}
		w = w[min(n+1, len(w)):]
	}
}

// shorter returns the last parts of a long path.
func shorter(w string) string {
	for len(w) > maxTopicLen {
		n := strings.IndexByte(w, '/')
		if n < 0 {
			return w
		}
		w = w[n+1:]
	}
	return w
}

func (c *topicCount) add(word string, weight int) {
	if t := c.words[word]; t.at != c.at {
		c.words[word] = tally{t.count + weight, c.at}
	}
}

// secretive reports a long run that looks random: letters and digits, or large and small letters, change
// places more often than in names. A part between two dots or dashes suffices when it is long itself.
func secretive(w string) bool {
	const least, part = 24, 16
	if len(w) < part {
		return false
	}
	changes, letters, from, all, total := 0, 0, 0, 0, 0
	var last byte
	for i := 0; i <= len(w); i++ {
		class := byte(0)
		if i < len(w) {
			class = classOf(w[i])
		}
		if class == 0 {
			if i-from >= part && changes*4 > letters {
				return true
			}
			changes, letters, from, last = 0, 0, i+1, 0
			continue
		}
		if last != 0 && class != last && !(last == 'A' && class == 'a') {
			changes++
			all++
		}
		letters++
		total++
		last = class
	}
	return len(w) > least && all*4 > total
}

// classOf sorts an ASCII letter or digit; 0 is anything else.
func classOf(b byte) byte {
	switch {
	case b >= 'a' && b <= 'z':
		return 'a'
	case b >= 'A' && b <= 'Z':
		return 'A'
	case b >= '0' && b <= '9':
		return '0'
	}
	return 0
}

// ideographs counts the pieces of a text without spaces, between the small words that stand between names;
// a long piece by its pairs.
func (c *topicCount) ideographs(s string, weight int) {
	const pair, most = 2, 8
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r <= 0x309f || strings.ContainsRune(particles, r) }) {
		n := utf8.RuneCountInString(w)
		katakana := unicode.Is(unicode.Katakana, firstRune(w))
		switch {
		case n < pair:
		case n <= 2*pair || katakana && n <= most:
			c.add(w, weight)
		default:
			for at, r := range w {
				next := at + utf8.RuneLen(r)
				if next >= len(w) {
					break
				}
				_, more := utf8.DecodeRuneInString(w[next:])
				c.add(w[at:next+more], weight)
			}
		}
	}
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// particles are the characters that stand in most Chinese sentences and tell nothing.
const particles = "的是了在我你您他她它们這这那个個不有和就也都而及与與着或一上下么麼吗嗎呢吧啊很把被给給让讓到从從对對要会會能可以为為之其于於请請说說还還没沒"

// tells reports a word that may be a topic, by its length and letters.
func tells(w string) bool {
	const least, hangul = 5, 2 // of a script that writes syllables a shorter word is one
	if len(w) < least || len(w) > maxTopicLen*utf8.UTFMax {
		return false
	}
	letter, n := false, 0
	for _, r := range w {
		letter = letter || r|0x20 >= 'a' && r|0x20 <= 'z' || r >= utf8.RuneSelf && unicode.IsLetter(r)
		n++
	}
	return letter && n <= maxTopicLen && (n >= least || n >= hangul && unicode.Is(unicode.Hangul, firstRune(w)))
}

// strongest returns the words that count most, equal ones by name, so that the same span gives the same
// marker.
func (c *topicCount) strongest() []Topic {
	out := make([]Topic, 0, maxTopics+1)
	for w, t := range c.words {
		x := Topic{w, t.count}
		if len(out) == maxTopics && stronger(x, out[maxTopics-1]) >= 0 || lexicon.Stops[w] || lexicon.Vague[w] {
			continue
		}
		n, _ := slices.BinarySearchFunc(out, x, stronger)
		out = slices.Insert(out, n, x)
		out = out[:min(len(out), maxTopics)]
	}
	return out
}

func stronger(a, b Topic) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word))
}
