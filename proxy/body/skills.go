package body

import "bytes"

// list is a list of skills without the entries that stand further up, nil if all are new. An entry is a line
// "- name: text" and the lines behind it up to the next entry or an empty line. A skill that a plugin brings
// again, under its own name before a colon, is the same if its text is.
func (f *finder) list(body []byte) []byte {
	var out []byte
	at := 0
	for _, e := range entries(body) {
		key := skillKey(e.Of(body))
		if !f.skills[key] {
			f.skills[key] = true
			continue
		}
		out = append(out, body[at:e.From]...)
		at = e.To
		f.t.Bytes += e.To - e.From
	}
	if out == nil {
		return nil
	}
	return append(out, body[at:]...)
}

// lineBreak is the end of a line in JSON.
var lineBreak = []byte(`\n`)

// entries are the lines of skills in a reminder as it stands in JSON, each with the line break before it.
func entries(body []byte) []span {
	var found []span
	open := false // the last entry goes on
	_, end := tagsOf(body)
	last := len(body) - len(end)
	for at := nextLine(body, 0); at < last; {
		next := min(nextLine(body, at), last)
		line := bytes.TrimLeft(trimBreak(body[at:next]), " ")
		from, to := at-len(lineBreak), next
		if next < last || bytes.HasSuffix(body[at:next], lineBreak) {
			to -= len(lineBreak)
		}
		switch {
		case skillName(line) != nil:
			found = append(found, span{From: from, To: to})
			open = true
		case len(line) == 0 || bytes.HasPrefix(line, []byte("- ")):
			open = false
		case open:
			found[len(found)-1].To = to
		}
		at = next
	}
	return found
}

// nextLine is where the line behind the one at i begins, or the end.
func nextLine(body []byte, i int) int {
	for i < len(body) {
		n := bytes.IndexByte(body[i:], '\\')
		if n < 0 || i+n+2 > len(body) {
			break
		}
		i += n + 2
		if body[i-1] == 'n' {
			return i
		}
	}
	return len(body)
}

func trimBreak(line []byte) []byte {
	return bytes.TrimSuffix(line, lineBreak)
}

// skillName is the name of a line "- name: text", nil for another.
func skillName(line []byte) []byte {
	rest, ok := bytes.CutPrefix(line, []byte("- "))
	if !ok {
		return nil
	}
	n := bytes.Index(rest, []byte(": "))
	if n <= 0 || n > 128 || bytes.ContainsAny(rest[:n], ` "'\<>*`) {
		return nil
	}
	return rest[:n]
}

// skillKey is what makes two entries the same: the name without its plugin, and the text.
func skillKey(entry []byte) string {
	entry = bytes.TrimLeft(bytes.TrimPrefix(entry, lineBreak), " ")
	name := skillName(trimBreak(entry))
	text := entry[len("- ")+len(name):]
	if n := bytes.LastIndexByte(name, ':'); n >= 0 {
		name = name[n+1:]
	}
	return string(name) + string(text)
}
