package compaction

import "strings"

// jsonHead returns the first lines of JSON: as they stand, or with a line for each value when it stands on
// few lines. ok is false for what is no object, no array and no lines of them.
func jsonHead(text string, width, sniff int) (lines []string, ok bool) {
	head := strings.TrimSpace(text[:min(len(text), sniff)])
	if head == "" || head[0] != '{' && head[0] != '[' {
		return nil, false
	}
	p := jsonLook{in: head, cut: len(text) > sniff, width: width}
	if !p.all() {
		return nil, false
	}
	if own := strings.SplitN(head, "\n", jsonLines+1); len(own) > jsonLines {
		return own[:jsonLines], true
	}
	return p.lines, true
}

// jsonLook reads JSON without recursion and writes it anew, one value a line, as far as it is needed.
type jsonLook struct {
	in    string
	at    int
	cut   bool // in is only the beginning
	width int

	open  []byte // the containers that stand open
	lines []string
	line  strings.Builder
}

// maxDepth bounds the containers in each other that are believed to be JSON.
const maxDepth = 64

// all reads all of the text and reports whether it is JSON as far as it goes.
func (p *jsonLook) all() bool {
	want := byte('v') // v: a value, k: a key, a: what comes after a value, e: a value or the end, f: a key or the end
	for {
		for p.at < len(p.in) && strings.IndexByte(" \t\r\n", p.in[p.at]) >= 0 {
			p.at++
		}
		if p.at == len(p.in) {
			p.newLine()
			return p.cut || len(p.open) == 0 && want == 'a'
		}
		next, ok := p.step(want)
		if !ok {
			return p.cut && p.at == len(p.in) // a string or a word that the end cuts
		}
		want = next
	}
}

// step reads one token and returns what is wanted next.
func (p *jsonLook) step(want byte) (next byte, ok bool) {
	c := p.in[p.at]
	value := want == 'v' || want == 'e'
	switch {
	case want == 'a' && len(p.open) == 0: // lines of JSON: another document
		p.newLine()
		return 'v', c == '{' || c == '['
	case (c == '{' || c == '[') && value && len(p.open) < maxDepth:
		p.write(p.in[p.at : p.at+1])
		p.open = append(p.open, c)
		p.newLine()
		if c == '{' {
			return 'f', true
		}
		return 'e', true
	case (c == '}' || c == ']') && strings.IndexByte("aef", want) >= 0 && p.open[len(p.open)-1] == c-2: // in ASCII, each pair is two apart
		p.open = p.open[:len(p.open)-1]
		p.newLine()
		p.write(p.in[p.at : p.at+1])
		return 'a', true
	case c == ',' && want == 'a':
		p.write(",")
		p.newLine()
		if p.open[len(p.open)-1] == '{' {
			return 'k', true
		}
		return 'v', true
	case c == ':' && want == ':':
		p.write(":")
		p.line.WriteByte(' ')
		return 'v', true
	case c == '"' && (want == 'k' || want == 'f'):
		return ':', p.text()
	case c == '"' && value:
		return 'a', p.text()
	case value:
		return 'a', p.scalar()
	}
	return 0, false
}

// text reads a string.
func (p *jsonLook) text() bool {
	for i := p.at + 1; i < len(p.in); i++ {
		switch c := p.in[i]; {
		case c == '\\':
			i++
		case c < ' ':
			return false
		case c == '"':
			p.write(p.in[p.at : i+1])
			return true
		}
	}
	p.write(p.in[p.at:])
	return false
}

// scalar reads a number, true, false or null.
func (p *jsonLook) scalar() bool {
	end := p.at
	for end < len(p.in) && strings.IndexByte(" \t\r\n,]}", p.in[end]) < 0 {
		end++
	}
	word := p.in[p.at:end]
	ok := word == "true" || word == "false" || word == "null" || word != "" && strings.Trim(word, "+-.0123456789eE") == "" && strings.LastIndexByte(word, '-') <= strings.LastIndexAny(word, "eE")+1
	if end == len(p.in) && p.cut && len(word) < 40 {
		p.at = end
		return false
	}
	p.write(word)
	return ok
}

// write adds to the line, up to its width, and steps over what it read.
func (p *jsonLook) write(s string) {
	p.at += len(s)
	if len(p.lines) >= jsonLines {
		return
	}
	if p.line.Len() == 0 {
		p.line.WriteString(strings.Repeat("  ", min(len(p.open), 8)))
	}
	p.line.WriteString(s[:min(len(s), max(p.width*4-p.line.Len(), 0))])
}

// newLine ends the line.
func (p *jsonLook) newLine() {
	if p.line.Len() > 0 && len(p.lines) < jsonLines {
		p.lines = append(p.lines, p.line.String())
	}
	p.line.Reset()
}
