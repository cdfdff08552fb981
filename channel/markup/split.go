package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sizer measures a part as its platform does: a stretch of plain text, and what was written for it.
type sizer func(plain, written string) int

// sizeMarked counts the marks too, as WhatsApp does.
func sizeMarked(_, written string) int { return units(written) }

// maxWritten is how much longer than its text a Telegram message may be with its tags: the Bot API
// takes some 35,000 bytes before it looks at tags.
const maxWritten = 8

// sizeTagged counts the text without tags, as Telegram does.
func sizeTagged(plain, written string) int { return max(units(plain), len(written)/maxWritten) }

// units is the length of a text in UTF-16.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// parts cuts a doc into messages of limit at most and writes each.
func parts(d doc, limit int, write writer, size sizer) []string {
	var out []string
	pos, end := d.trim(0, len(d.text))
	for pos < end {
		to, text := d.part(pos, end, limit, write, size)
		if strings.TrimSpace(d.text[pos:to]) != "" {
			out = append(out, text)
		}
		if pos = to; pos < end && d.at(pos)&fence != 0 && d.text[pos] == '\n' && pos > 0 && d.at(pos-1)&fence != 0 {
			pos++ // the fence that closes the part stands for the end of this line
		} else {
			pos, _ = d.trim(pos, end)
		}
	}
	return out
}

// part finds where the message that begins at pos ends, and writes it. It tries the longest, and as
// long as marks make it too long, one that is shorter by as much.
func (d doc) part(pos, end, limit int, write writer, size sizer) (to int, text string) {
	most := advance(d.text, pos, end, limit)
	for {
		to = end
		if most < end {
			to = d.cut(pos, most)
		}
		_, last := d.trim(pos, to)
		text = write(d, pos, last)
		over := size(d.text[pos:last], text) - limit
		if over <= 0 || to <= pos+utf8.UTFMax {
			return to, text
		}
		most = max(pos+1, min(most, to)-over)
		for most < end && !utf8.RuneStart(d.text[most]) {
			most--
		}
		if most <= pos {
			_, n := utf8.DecodeRuneInString(d.text[pos:])
			most = pos + n
		}
	}
}

// advance goes n UTF-16 units on from pos, but a character at least.
func advance(s string, pos, end, n int) int {
	for i, r := range s[pos:end] {
		n--
		if r > 0xffff {
			n--
		}
		if n < 0 && i > 0 {
			return pos + i
		}
	}
	return end
}

// cut chooses where to end a message that may reach up to most. A paragraph or a line outside of code
// ends it where that leaves it half full, any line where it is a quarter full, else the last word,
// else a character.
func (d doc) cut(pos, most int) int {
	span := d.text[pos:most]
	half, quarter := len(span)/2, len(span)/4
	paragraph, line, any, word := 0, 0, 0, 0
	switch d.text[most] {
	case '\n':
		any = len(span)
	case ' ':
		word = len(span)
	}
	for i := len(span) - 1; i > 0; i-- {
		c := span[i]
		if c != '\n' && c != ' ' {
			continue
		}
		inCode := d.at(pos+i)&fence != 0
		switch {
		case c == ' ' && word == 0 && inCode:
			word = i + 1 // a blank in code is never dropped
		case c == ' ' && word == 0:
			word = i
		case c == '\n' && any == 0:
			any = i
		}
		if c == '\n' && !inCode {
			line = max(line, i)
			if span[i-1] == '\n' {
				paragraph = i - 1
				break
			}
		}
		if i < quarter && max(word, any) > 0 {
			break
		}
	}
	switch {
	case paragraph > half:
		return pos + paragraph
	case line > half:
		return pos + line
	case any > quarter:
		return pos + any
	case max(word, any) > 0:
		return pos + max(word, any)
	}
	return d.character(pos, most)
}

// longestCluster bounds how far back the begin of a character is looked for, in runes.
const longestCluster = 32

// character moves a cut before the character that it would part: an accent, a flag, a family of
// emoji. It is not the whole of Unicode's rule, but what people see.
//
// https://unicode.org/reports/tr29/#Grapheme_Cluster_Boundaries
func (d doc) character(pos, most int) int {
	at := most
	for range longestCluster {
		if at <= pos {
			return most
		}
		next, _ := utf8.DecodeRuneInString(d.text[at:])
		prev, n := utf8.DecodeLastRuneInString(d.text[pos:at])
		if !joins(next) && prev != joiner && !(flag(next) && oddFlags(d.text[pos:at])) {
			return at
		}
		at -= n
	}
	return most
}

// joiner makes one character of two.
const joiner = '\u200D'

// joins reports whether a rune belongs to the one before it.
func joins(r rune) bool {
	return r == joiner || unicode.IsMark(r) || r >= 0x1F3FB && r <= 0x1F3FF || r >= 0xE0020 && r <= 0xE007F
}

// flag reports whether a rune is half a flag.
func flag(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// oddFlags reports whether a text ends in the first half of a flag.
func oddFlags(s string) bool {
	n := 0
	for s != "" && n < longestCluster {
		r, size := utf8.DecodeLastRuneInString(s)
		if !flag(r) {
			break
		}
		s, n = s[:len(s)-size], n+1
	}
	return n%2 == 1
}
