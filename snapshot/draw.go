package snapshot

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidemark-ai/tidemark"
)

// TextOptions direct a drawing. The zero value is good.
type TextOptions struct {
	Now func() time.Time // nil is time.Now
	IDs bool             // each node with its id
}

// maxIndent is how many levels are drawn as lines. A chain of thousands has no terminal that is wide enough, and would
// be as many megabytes of blanks; deeper nodes have their depth as a number.
const maxIndent = 40

// Text draws the tree, a node a line, roots at the margin.
func (t Tree) Text(w io.Writer, o TextOptions) error {
	now := time.Now()
	if o.Now != nil {
		now = o.Now()
	}
	const buffer = 64 << 10
	out := bufio.NewWriterSize(w, buffer)
	closed := make([]bool, maxIndent+1) // by depth: the branch above has ended there
	var line []byte
	for i := range t.Rows {
		r := &t.Rows[i]
		line = line[:0]
		line = appendLines(line, r, closed)
		if r.Depth < len(closed) {
			closed[r.Depth] = r.last
		}
		line = appendNode(line, r, now, o.IDs)
		line = append(line, '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	if t.Repeated > 0 {
		_, _ = fmt.Fprintf(out, "(listed twice, drawn once: %d)\n", t.Repeated) // out remembers a failure
	}
	return out.Flush()
}

// appendLines draws what leads to a node.
func appendLines(line []byte, r *Row, closed []bool) []byte {
	if r.Depth == 0 {
		return line
	}
	for d := 1; d < min(r.Depth, maxIndent); d++ {
		if closed[d] {
			line = append(line, "    "...)
		} else {
			line = append(line, "│   "...)
		}
	}
	if r.Depth > maxIndent {
		line = append(line, "⋯ "...)
		line = strconv.AppendInt(line, int64(r.Depth), 10)
		line = append(line, ' ')
	}
	if r.last {
		return append(line, "└── "...)
	}
	return append(line, "├── "...)
}

// appendNode writes a node: name (snapshot 5m ago, 120 msgs, 84k tokens), or name → session (branch 2h ago, trimmed).
func appendNode(line []byte, r *Row, now time.Time, ids bool) []byte {
	line = append(line, plain(r.Name)...)
	if r.Kind == KindBranch {
		line = append(line, " → "...)
		line = append(line, plain(r.Session)...)
	}
	line = append(line, " ("...)
	line = append(line, plain(r.Kind)...)
	line = append(line, ' ')
	line = append(line, Age(r.Created, now)...)
	if r.Kind != KindBranch { // a branch has grown since its counts were taken
		line = appendSize(line, r)
	}
	if r.Trimmed {
		line = append(line, ", trimmed"...)
	}
	line = append(line, ')')
	for _, t := range r.Tags {
		line = append(line, " #"...)
		line = append(line, plain(t)...)
	}
	if ids && (r.Kind != KindBranch || r.ID != r.Session) {
		line = append(line, "  "...)
		line = append(line, plain(r.ID)...)
	}
	return appendNotes(line, r)
}

// appendSize says how much a node holds, as far as that is known.
func appendSize(line []byte, r *Row) []byte {
	if r.Messages > 0 {
		line = append(line, ", "...)
		line = strconv.AppendInt(line, int64(r.Messages), 10)
		if line = append(line, " msgs"...); r.Messages == 1 {
			line = line[:len(line)-1]
		}
	}
	if r.Tokens > 0 {
		line = append(line, ", "...)
		line = append(line, Short(r.Tokens)...)
		line = append(line, " tokens"...)
	}
	return line
}

// appendNotes says what is unusual about a node's place.
func appendNotes(line []byte, r *Row) []byte {
	if r.Lost {
		line = append(line, " (its parent is not here)"...)
	}
	if r.Cut {
		line = append(line, " (it is its own ancestor: the circle is cut here)"...)
	}
	if r.Below > 0 {
		line = fmt.Appendf(line, " (+%d below)", r.Below)
	}
	return line
}

// Age says how long ago something was, over thirty days its date. What lies ahead, by the clock of another machine, was
// just now, or has its date.
func Age(t, now time.Time) string {
	const day = 24 * time.Hour
	switch d := now.Sub(t); {
	case t.IsZero():
		return "at an unknown time"
	case d < -day || d >= 30*day:
		return t.UTC().Format(time.DateOnly)
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m ago"
	case d < day:
		return strconv.Itoa(int(d/time.Hour)) + "h ago"
	default:
		return strconv.Itoa(int(d/day)) + "d ago"
	}
}

// Short writes tokens for people: 999, 8.4k, 84k, 1.2M.
func Short(n tidemark.Tokens) string {
	const thousand = 1000
	f := float64(n)
	switch {
	case n < thousand:
		return strconv.FormatInt(int64(n), 10)
	case f < 9950:
		return trimZero(f/thousand) + "k"
	case f < 999_500:
		return strconv.FormatFloat(f/thousand, 'f', 0, 64) + "k"
	default:
		return trimZero(f/thousand/thousand) + "M"
	}
}

func trimZero(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

// plain is a text that can do nothing to a terminal: names come from files and archives of others.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
