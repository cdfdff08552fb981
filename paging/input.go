package paging

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// What the stub of an input keeps at most.
const (
	keptFields = 12  // that are not told as left
	keptText   = 120 // bytes of a command, a query and the like
	keptSmall  = 40  // bytes of JSON of any other value
	leastInput = 200 // bytes of JSON of an input that a stub can stand for
	toldFields = 4   // that left and are told by name
)

// leftField is the field of a stub that says what left. An input that has one is taken for a stub.
const leftField = "paged_out"

// shortFields say what a call does, as tools of several agents name them; more than the beginning is not needed to
// know the call again.
var shortFields = []string{"command", "cmd", "query", "pattern", "regex", "url", "uri", "description", "title", "name", "skill", "subagent_type"}

// member is one of an object, as it stands there.
type member struct {
	name       string
	key, value []byte // with quotes; compact
}

// StubInput is what stands for the input of a call that is out: an object with the fields that tell the call (the
// path; command, query, url cut short; small values), and "paged_out", which says what left, how large it was and how
// to have it back. handle says how to get it back, "" for nothing but reading the file again.
//
//	{"file_path":"a.go","paged_out":"content: 5120 bytes, 140 lines. Re-read the file if needed."}
//
// It is compact JSON and shorter than the input as compact JSON. Where that can not be, and of what is small, no
// object or a stub already, it is the input as it came. The same arguments give the same bytes.
func (t Tools) StubInput(tool, handle string, input []byte) []byte {
	c := over(input)
	all := members(c)
	if c.Peek() != 0 || c.Compact() < leastInput || c.Err() != nil || slices.ContainsFunc(all, func(m member) bool { return m.name == leftField }) {
		return input
	}
	row, _ := t.find(tool)
	paths := row.Path
	if len(paths) == 0 {
		paths = anyPath
	}
	out := append(make([]byte, 0, 256), '{')
	var left []string
	kept, more, addressed := 0, 0, false
	for _, m := range all {
		var value []byte
		whole, isPath := false, has(paths, m.name)
		if kept < keptFields {
			value, whole = keep(m, isPath)
		}
		if value != nil {
			out = append(append(append(append(out, m.key...), ':'), value...), ',')
			kept++
		}
		switch {
		case whole:
			addressed = addressed || isPath && row.Kind != Looks
		case len(left) < toldFields:
			left = append(left, gone(m))
		default:
			more += len(m.value)
		}
	}
	if len(left) == 0 {
		return input
	}
	if more > 0 {
		left = append(left, "others: "+strconv.Itoa(more)+" bytes")
	}
	text := strings.Join(left, "; ") + "."
	if addressed {
		text += " Re-read the file if needed."
	}
	if handle != "" {
		text += " " + handle
	}
	out = json.AppendString(append(out, `"`+leftField+`":`...), text)
	if out = append(out, '}'); len(out) >= c.Compact() {
		return input
	}
	return out
}

// members lists those of the object that is next, none of what is no object.
func members(c *jsonscan.Cursor) (all []member) {
	c.Open('{')
	for c.More() {
		from := c.At()
		name := string(c.Key())
		key := jsonscan.Over(c.Since(from))
		if value := c.Raw(); value != nil {
			all = append(all, member{name, key.String(), compact(value)})
		}
	}
	return all
}

// compact is JSON without white space between values.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if raw[0] == '"' || json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// keep is what a stub keeps of a member, nil for nothing, and whether that is all.
func keep(m member, isPath bool) (value []byte, whole bool) {
	long := isPath && len(m.value) <= maxName
	switch {
	case long || len(m.value) <= keptSmall:
		return m.value, true
	case m.value[0] != '"' || !isPath && !has(shortFields, m.name):
		return nil, false
	}
	text, _ := json.AppendText(nil, m.value)
	if len(text) <= keptText {
		return m.value, true
	}
	n := keptText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return json.AppendString(nil, string(text[:n])+"…"), false
}

// gone tells of a member that left.
func gone(m member) string {
	size, lines := len(m.value), 0
	if m.value[0] == '"' {
		text, _ := json.AppendText(nil, m.value)
		size, lines = len(text), countLines(text)
	}
	told := cutShort(StubName(m.name)) + ": " + strconv.Itoa(size) + " bytes"
	if lines > 0 {
		told += ", " + strconv.Itoa(lines) + " lines"
	}
	return told
}

// cutShort bounds the name of a field.
func cutShort(name string) string {
	if len(name) > keptSmall {
		return strings.ToValidUTF8(name[:keptSmall], "") + "…"
	}
	return name
}

// countLines counts the lines of a text; the last needs no end.
func countLines(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// has reports whether a list has a field's name, without regard to capitals, "_" and "-".
func has(list []string, name string) bool {
	name = near.Plain(name)
	return slices.ContainsFunc(list, func(s string) bool { return near.Plain(s) == name })
}

// sameBegin is how many first bytes two texts share.
func sameBegin(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
