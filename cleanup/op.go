package cleanup

import (
	"strconv"
	"strings"
)

// The verbs of a block.
const (
	Drop      = "drop"
	Summarize = "summarize"
	Anchor    = "anchor"
	Release   = "release"
	Collapse  = "collapse"
)

// Bounds of what is read.
const (
	MaxBlock  = 16 << 10 // bytes of a block with both its tags
	MaxHandle = 64       // characters of a handle
	MaxPaths  = 64       // paths of one release
	MaxOps    = 512      // operations of one answer
	maxTurn   = 1 << 20  // the highest number of a turn
)

const (
	openTag   = "<memory_cleanup>"
	closeTag  = "</memory_cleanup>"
	blockMark = "block:"
	blanks    = " \t\r"
)

// Grammar is what a model is told of cleanup blocks.
const Grammar = `To tidy your own context, write this in an answer, the opening tag at the start of a line, one operation a line; it is taken out before anyone reads the answer:
<memory_cleanup>
drop: block:ID
summarize: block:ID "what it said"
anchor: block:ID
release: path, path
collapse: turns N-M "what came of them"
</memory_cleanup>
Originals stay recallable.`

// Op is one operation of a cleanup block.
type Op struct {
	Verb     string   // Drop, Summarize, Anchor, Release or Collapse
	Handle   string   // of drop, summarize and anchor: what stands behind "block:"
	Paths    []string // of release: paths, and handles without "block:"
	From, To int      // of collapse: turns, from 1, inclusive
	Text     string   // of summarize and collapse
}

// verbs says what a line may begin with.
var verbs = [...]string{Drop + ":", Summarize + ":", Anchor + ":", Release + ":", Collapse + ":"}

// parse reads one line of a block; ok is false for everything that is no operation as it should be.
func parse(line string) (op Op, ok bool) {
	for _, v := range verbs {
		rest, found := strings.CutPrefix(line, v)
		if !found {
			continue
		}
		op.Verb, rest = strings.TrimSuffix(v, ":"), strings.Trim(rest, blanks)
		switch op.Verb {
		case Drop, Anchor:
			op.Handle, ok = handle(rest)
		case Summarize:
			var id string
			if id, op.Text, ok = quoted(rest); ok {
				op.Handle, ok = handle(id)
			}
		case Release:
			op.Paths, ok = paths(rest)
		case Collapse:
			var span string
			if span, op.Text, ok = quoted(rest); ok {
				op.From, op.To, ok = turns(span)
			}
		}
		return op, ok
	}
	return op, false
}

// handle reads "block:ID".
func handle(s string) (string, bool) {
	id, ok := strings.CutPrefix(s, blockMark)
	return id, ok && isHandle(id)
}

func isHandle(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_#.:-", rune(c)) {
			return false
		}
	}
	return id != "" && len(id) <= MaxHandle
}

// quoted parts `head "text"`. The text ends with the line, so that a quotation mark within needs no
// backslash; one that has a backslash loses it.
func quoted(s string) (head, text string, ok bool) {
	head, text, ok = strings.Cut(s, `"`)
	if !ok || !strings.HasSuffix(text, `"`) {
		return "", "", false
	}
	text = strings.ReplaceAll(strings.TrimSuffix(text, `"`), `\"`, `"`)
	return strings.Trim(head, blanks), text, strings.TrimSpace(text) != ""
}

// paths reads a list of paths and handles parted by commas.
func paths(s string) ([]string, bool) {
	var out []string
	for p := range strings.SplitSeq(s, ",") {
		p = strings.Trim(p, blanks)
		if id, ok := handle(p); ok {
			p = id
		}
		if p == "" || len(out) == MaxPaths {
			return nil, false
		}
		out = append(out, p)
	}
	return out, true
}

// turns reads "turns N-M".
func turns(s string) (from, to int, ok bool) {
	s, ok = strings.CutPrefix(s, "turns")
	if !ok || strings.TrimLeft(s, blanks) == s {
		return 0, 0, false
	}
	a, b, ok := strings.Cut(s, "-")
	from, okFrom := turn(a)
	to, okTo := turn(b)
	return from, to, ok && okFrom && okTo && from <= to
}

func turn(s string) (int, bool) {
	s = strings.Trim(s, blanks)
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil && n > 0 && n <= maxTurn
}
